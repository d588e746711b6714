package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
)

// writerEnv makes the test program a writer, to be killed: the address of the broker.
const writerEnv = "ORDERGRID_TEST_KAFKA_WRITER"

// writeUntilKilled opens the writer of grid killed, goes on at its position, and prints a line for each batch.
func writeUntilKilled() {
	x, err := kafka.New(config(&downstream.Kafka{Address: os.Getenv(writerEnv)}, "killed"))
	if err != nil {
		panic(err)
	}
	w, err := x.Open(context.Background(), 0)
	if err != nil {
		panic(err)
	}
	var l makeLog
	l.after(w.Position())
	for {
		b := l.batch(1 + rand.IntN(3000))
		if err := w.Write(context.Background(), b); err != nil {
			panic(err)
		}
		fmt.Println(b.Through.Seq)
	}
}

// Writers are killed in the midst of transactions. The next one finds what the last one committed, and consumers see
// each order once.
func TestKilledWriter(t *testing.T) {
	k := broker(t)
	written := uint64(0)
	const kills = 8
	for i := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+k.Address)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 { // it is in the midst of a batch after that
			if !lines.Scan() {
				t.Fatalf("writer %d ended by itself", i)
			}
			var seq uint64
			if _, err := fmt.Sscan(lines.Text(), &seq); err != nil || seq <= written {
				t.Fatalf("writer %d wrote up to %q after %d: %v", i, lines.Text(), written, err)
			}
			written = seq
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() //nolint:errcheck // it was killed
	}
	w := open(t, target(t, config(k, "killed")))
	if w.Position().Seq < written {
		t.Fatalf("position %d, and %d was reported as written", w.Position().Seq, written)
	}
	all := committed(t, k, "killed.orders", 0)
	checkLog(t, all, w.Position().Seq)
	t.Logf("%d writers were killed, %d orders", kills, len(all))
}

// A broker that is killed and comes again costs the writer, and no order.
func TestKilledBroker(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "outage"))
	w := open(t, x)
	var l makeLog
	for range 2 {
		if err := w.Write(t.Context(), l.batch(500)); err != nil {
			t.Fatal(err)
		}
		before := l
		k.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := w.Write(ctx, l.batch(500))
		cancel()
		if err == nil {
			t.Fatal("a batch was written to a broker that is not there")
		}
		if again := w.Write(t.Context(), l.batch(1)); again == nil {
			t.Fatal("a writer went on after an error")
		}
		w.Close()
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w = open(t, x)
		if w.Position().Seq != before.seq {
			t.Fatalf("position %d, want %d", w.Position().Seq, before.seq)
		}
		l = before
	}
	checkLog(t, committed(t, k, "outage.orders", 0), l.seq)
}
