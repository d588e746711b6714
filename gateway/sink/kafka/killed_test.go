package kafka_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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

// A broker that is killed in the midst of a transaction and restarts costs the writer, and no order.
func TestKilledBroker(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "outage"))
	w := open(t, x)
	var l makeLog
	for range 2 {
		if err := w.Write(t.Context(), l.batch(500)); err != nil {
			t.Fatal(err)
		}
		// A broker that is alone can lose the end of a transaction that it acknowledged less than some milliseconds
		// before: TestUnfinished has what is done then.
		committed(t, k, "outage.orders", 0)
		waitSettled(t, k, "outage.orders", "outage.orders.positions")
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

// waitSettled waits until no transaction is open in a partition 0.
func waitSettled(t *testing.T, k *downstream.Kafka, topics ...string) {
	t.Helper()
	adm := admin(t, k)
	downstream.WaitFor(t, "the end of transactions", func() bool {
		stable, err1 := adm.ListCommittedOffsets(t.Context(), topics...)
		last, err2 := adm.ListEndOffsets(t.Context(), topics...)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics {
			a, _ := stable.Lookup(topic, 0)
			b, _ := last.Lookup(topic, 0)
			if a.Offset != b.Offset {
				return false
			}
		}
		return true
	})
}

// A transaction that stays open although the writer before is fenced is not written upon: the end of the next one would
// decide over it too. It is named, and once it is aborted the writer goes on where it was.
func TestUnfinished(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "unfinished"))
	var l makeLog
	w := open(t, x)
	if err := w.Write(t.Context(), l.batch(100)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	other, err := kgo.NewClient(kgo.SeedBrokers(k.Address), kgo.TransactionalID("unfinished"), kgo.DefaultProduceTopic("unfinished.orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := other.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	_, err = tryOpen(t, x)
	refused(t, "an open transaction", err, "topic unfinished.orders, partition 0 has an unfinished transaction from offset ")
	if err := other.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	w = open(t, x)
	if w.Position().Seq != 100 {
		t.Fatalf("position %d, want 100", w.Position().Seq)
	}
	if err := w.Write(t.Context(), l.batch(100)); err != nil {
		t.Fatal(err)
	}
	checkLog(t, committed(t, k, "unfinished.orders", 0), 200)
	w.Close()
	// What another program added is seen too.
	produce(t, k.Address, "unfinished.orders", "x")
	_, err = tryOpen(t, x)
	refused(t, "a foreign record", err, "the last order in topic unfinished.orders, partition 0 is entry ?, and by topic unfinished.orders.positions it is entry 200")
}
