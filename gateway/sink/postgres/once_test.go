package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
)

// process is a writer of its own.
type process struct {
	cmd   *exec.Cmd
	err   strings.Builder
	ended chan struct{}
}

func start(t *testing.T, o postgres.Options, through uint64, batch int) *process {
	t.Helper()
	w := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), "ORDERGRID_TEST_WRITER="+o.Connection.URLFile, fmt.Sprint("ORDERGRID_TEST_THROUGH=", through), fmt.Sprint("ORDERGRID_TEST_BATCH=", batch))
	w.cmd.Stderr = &w.err
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait() // ProcessState has it
		close(w.ended)
	}()
	t.Cleanup(w.kill)
	return w
}

func (w *process) kill() {
	_ = w.cmd.Process.Kill() // it may have ended
	<-w.ended
}

// exit waits for the process and returns its code.
func (w *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-w.ended:
		return w.cmd.ProcessState.ExitCode()
	case <-time.After(2 * time.Minute):
		t.Fatalf("the writer has not ended: %s", w.err.String())
		return -1
	}
}

// reached waits until the fence is at an entry behind seq, or the writer ends.
func (w *process) reached(t *testing.T, p *downstream.Postgres, seq uint64) uint64 {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		out, err := p.PSQL(t.Context(), "SELECT coalesce(max(seq), 0) FROM ordergrid.fence")
		at, _ := strconv.ParseUint(out, 10, 64) // 0 while the server starts
		select {
		case <-w.ended:
			return at
		default:
		}
		if err == nil && at > seq {
			return at
		}
		if time.Now().After(limit) {
			t.Fatalf("the fence stays at %q (%v) behind %d: %s", out, err, seq, w.err.String())
		}
	}
}

// TestOnceThroughKills: the writer and the server are killed in turn, at any moment of a batch.
func TestOnceThroughKills(t *testing.T) {
	p, o := migrated(t)
	const through, batch = 400_000, 3400
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	at := uint64(0)
	for round := range 16 {
		w := start(t, o, through, batch)
		at = w.reached(t, p, at)
		time.Sleep(time.Duration(random.IntN(40_000)) * time.Microsecond)
		if round%2 == 0 {
			w.kill()
			continue
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		at = w.reached(t, p, at) // the same writer goes on
		w.kill()
	}
	if at == 0 || at == through {
		t.Fatalf("the kills were between entries 0 and %d, want some before the end, %d", at, through)
	}
	w := start(t, o, through, batch)
	if code := w.exit(t); code != 0 {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	prove(t, p, through)
	if days, err := p.PSQL(t.Context(), "SELECT count(*) FILTER (WHERE tableoid = 'ordergrid.orders_default'::regclass), count(DISTINCT tableoid) FROM ordergrid.orders"); days != "0|2" || err != nil {
		t.Errorf("orders in the default partition and tables of days: %s (%v), want 0|2", days, err)
	}
}

// TestStoppedWriter: a process that was stopped in whatever it did, and goes on after its successor has written, writes
// nothing more.
func TestStoppedWriter(t *testing.T) {
	p, o := migrated(t)
	at := uint64(0)
	for round := range 6 {
		w := start(t, o, 1<<40, 3400)
		at = w.reached(t, p, at)
		time.Sleep(time.Duration(round*round) * time.Millisecond)
		if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		next := open(t, o)
		s := newSource()
		s.skip(next.Position().Seq)
		if s.at != next.Position() {
			t.Fatalf("the table is at %+v, the log at %+v", next.Position(), s.at)
		}
		for range 3 {
			if err := next.Write(t.Context(), s.next(500)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if code := w.exit(t); code != exitFenced {
			t.Fatalf("the stopped writer ends with code %d, want %d, fenced: %s", code, exitFenced, w.err.String())
		}
		if err := next.Write(t.Context(), s.next(500)); err != nil {
			t.Fatalf("its successor: %v", err)
		}
		at = s.at.Seq
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
	prove(t, p, at)
}

// TestFenced: a writer whose connection could not be ended is refused by its number alone.
func TestFenced(t *testing.T) {
	p, o := migrated(t)
	first, s := open(t, o), newSource()
	if err := first.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PSQL(t.Context(), "UPDATE ordergrid.fence SET backend = 0"); err != nil {
		t.Fatal(err)
	}
	second := open(t, o)
	if second.Position() != s.at {
		t.Fatalf("the second one is at %+v, want %+v", second.Position(), s.at)
	}
	of := *s
	late := s.next(1000)
	if err := first.Write(t.Context(), late); !errors.Is(err, sink.ErrFenced) {
		t.Fatalf("the first one's batch: %v, want %v", err, sink.ErrFenced)
	}
	of.entries = nil
	if err := second.Write(t.Context(), of.next(100)); err != nil {
		t.Fatal(err)
	}
	prove(t, p, of.at.Seq)
}

// TestEndedConnection: a writer whose connection was ended by its successor reports that it was replaced, not that the
// connection is lost.
func TestEndedConnection(t *testing.T) {
	p, o := migrated(t)
	first, s := open(t, o), newSource()
	if err := first.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatal(err)
	}
	second := open(t, o)
	if n, err := p.PSQL(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ordergrid-sink trades/p0'"); n != "1" || err != nil {
		t.Errorf("%s connections of writers (%v), want 1", n, err)
	}
	if err := first.Write(t.Context(), s.next(10)); !errors.Is(err, sink.ErrFenced) {
		t.Errorf("the first one's batch: %v, want %v", err, sink.ErrFenced)
	}
	if got := second.Position().Seq; got != 1000 {
		t.Errorf("the second one is at %d, want 1000", got)
	}
}

// TestOutage: while the server is away errors are no permanent ones, and they name it.
func TestOutage(t *testing.T) {
	p, o := migrated(t)
	w, s := open(t, o), newSource()
	if err := w.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	target, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, opened := target.Open(t.Context(), 0)
	for what, err := range map[string]error{"write": w.Write(t.Context(), s.next(10)), "open": opened} {
		var permanent *sink.PermanentError
		if err == nil || errors.As(err, &permanent) || errors.Is(err, sink.ErrFenced) {
			t.Errorf("%s: %v, want an error that passes", what, err)
		}
	}
	if want := fmt.Sprintf("127.0.0.1:%d/postgres as postgres", p.Port); opened == nil || !strings.Contains(opened.Error(), want) || strings.Contains(opened.Error(), p.Password) {
		t.Errorf("open: %v, want one with %s", opened, want)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	again := open(t, o)
	s = newSource()
	s.skip(again.Position().Seq)
	if err := again.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatal(err)
	}
	prove(t, p, 2000)
}

// TestWrongBatch: what is not the next part of the log is refused before the server sees it.
func TestWrongBatch(t *testing.T) {
	p, o := migrated(t)
	w, s := open(t, o), newSource()
	if err := w.Write(context.Background(), s.next(100)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sink.Batch){
		"a gap":         func(b *sink.Batch) { b.From++; b.Entries = b.Entries[1:] },
		"an overlap":    func(b *sink.Batch) { b.From-- },
		"a hole":        func(b *sink.Batch) { b.Entries[5].Seq++ },
		"a lost order":  func(b *sink.Batch) { b.Orders++ },
		"a partition":   func(b *sink.Batch) { b.Partition = 3 },
		"another count": func(b *sink.Batch) { b.Entries = b.Entries[:50] },
	} {
		other := newSource()
		other.skip(100)
		b := other.next(100)
		change(b)
		if err := w.Write(t.Context(), b); err == nil {
			t.Errorf("%s is written", name)
		}
	}
	if err := w.Write(t.Context(), s.next(100)); err != nil {
		t.Fatal(err)
	}
	prove(t, p, 200)
}
