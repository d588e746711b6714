package sink

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// run starts a Runner that does not wait long after errors; it ends with the test, or with stop.
func run(t *testing.T, c *client.Client, m Target, name string, change ...func(*Config)) (r *Runner, stop func()) {
	t.Helper()
	cfg := Config{Client: c, Target: m, Grid: "dev", Sink: name}
	for _, f := range change {
		f(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.pauses = pauses{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

// holds reports whether the target holds all orders.
func (m *memory) holds(acked map[wire.OrderID]string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range acked {
		if m.log(id.Partition).at.Seq < id.Seq {
			return false
		}
	}
	return true
}

// checkAll checks that the target holds each order once, at its place.
func (m *memory) checkAll(t *testing.T, acked map[wire.OrderID]string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		t.Error(m.broken)
	}
	found := map[wire.OrderID]string{}
	for p, l := range m.logs {
		seq := uint64(0)
		for _, e := range l.entries {
			if order.Seq(e) != seq+1 && seq != 0 {
				t.Fatalf("%s: entry %d behind %d", p, order.Seq(e), seq)
			}
			if seq = order.Seq(e); order.Kind(e[4]) == order.KindOrder {
				found[wire.OrderID{Partition: p, Seq: seq}] = string(order.ClOrdID(e))
			}
		}
		t.Logf("%s: %d entries in %d batches, the largest of %d", p, len(l.entries), l.batches, l.largest)
	}
	for id, clOrdID := range acked {
		if found[id] != clOrdID {
			t.Fatalf("order %s was acknowledged as %s; the target has %q there", clOrdID, id, found[id])
		}
	}
}

// A target that fails before and after batches are durable, and is slow, holds each entry once all the same.
func TestRunner(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "one")
	c := downstream.Dial(t, g)
	m := newMemory()
	var failures atomic.Int64
	m.fail = func(bool) error {
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		if rand.IntN(10) == 0 {
			failures.Add(1)
			return errors.New("an error that is meant")
		}
		return nil
	}
	r, stop := run(t, c, m, "one", func(c *Config) { c.MaxEntries = 7 })
	load := downstream.StartLoad(t, c, 8)
	downstream.WaitFor(t, "3000 orders", func() bool { return load.Count() > 3000 })
	acked := load.Stop()
	downstream.WaitFor(t, "the target to hold them", func() bool { return m.holds(acked) })
	m.checkAll(t, acked)
	m.mu.Lock()
	if failures.Load() == 0 || m.opened < 2 {
		t.Errorf("%d failures, %d times opened", failures.Load(), m.opened)
	}
	for _, l := range m.logs {
		if l.largest > 7 {
			t.Errorf("a batch of %d entries, allowed: 7", l.largest)
		}
	}
	m.mu.Unlock()
	downstream.WaitFor(t, "lag 0", func() bool {
		s := r.Status() // though the last error may be of a batch that was durable
		return s.Ready && s.Partitions[0].LagSeconds == 0 && s.Partitions[1].LagSeconds == 0
	})
	stop()
	// The positions that sinks tell are entries too. They must not make the next ones.
	end := commitSeq(t, c, 0)
	again, err := New(Config{Client: c, Target: m, Grid: "dev", Sink: "one"})
	if err != nil {
		t.Fatal(err)
	}
	again.limits.quiet = 10 * time.Millisecond // so that they are written at once
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	again.Run(ctx)
	if now := commitSeq(t, c, 0); now > end+2 {
		t.Errorf("a sink without orders made %d entries", now-end)
	}
}

func commitSeq(t *testing.T, c *client.Client, p wire.PartitionID) uint64 {
	t.Helper()
	end, err := c.ReadLog(t.Context(), p, "", 1<<62, nil)
	if err != nil {
		t.Fatal(err)
	}
	return end.CommitSeq
}

// Two processes of one sink fence each other, and nothing is written twice.
func TestTwoRunners(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "two")
	c := downstream.Dial(t, g)
	m := newMemory()
	a, _ := run(t, c, m, "two")
	b, _ := run(t, downstream.Dial(t, g), m, "two")
	load := downstream.StartLoad(t, c, 4)
	fenced := func() (n int) {
		for _, r := range []*Runner{a, b} {
			n += int(counter(t, r, kindFenced))
		}
		return n
	}
	downstream.WaitFor(t, "fencing to and fro", func() bool { return fenced() >= 4 && load.Count() > 500 })
	acked := load.Stop()
	downstream.WaitFor(t, "the target to hold them", func() bool { return m.holds(acked) })
	m.checkAll(t, acked)
}

// A target of another history, or that lost what it held, stops the sink of the partition: it says so, and goes on
// when it is mended.
func TestOtherHistory(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "other")
	c := downstream.Dial(t, g)
	load := downstream.StartLoad(t, c, 2)
	downstream.WaitFor(t, "100 orders", func() bool { return load.Count() > 100 })
	acked := load.Stop()
	m := newMemory()
	l := m.log(0)
	l.at = client.Position{Seq: 20, Hash: 0xbad, Lineage: 1}
	r, _ := run(t, c, m, "other")
	permanent(t, r, "the target holds entry 20 of p0 with hash 0000000000000bad of lineage 1, and the grid's log has hash ")
	m.mu.Lock()
	l.at = client.Position{}
	m.mu.Unlock()
	downstream.WaitFor(t, "the target to hold them", func() bool { return m.holds(acked) })
	m.checkAll(t, acked)

	unknown, _ := run(t, c, newMemory(), "nothere")
	permanent(t, unknown, `sink "nothere" of p0`)
}

// permanent waits for a permanent error of partition 0.
func permanent(t *testing.T, r *Runner, want string) {
	t.Helper()
	downstream.WaitFor(t, "an error", func() bool { return r.Status().Partitions[0].Error != nil })
	e := r.Status().Partitions[0].Error
	if e.Kind != kindPermanent || !strings.Contains(e.Text, want) {
		t.Errorf("error %+v, want a permanent one with %q", e, want)
	}
	if r.Status().Ready {
		t.Error("ready with a permanent error")
	}
}

// A sink that is new begins behind what was freed, and tells how much that is; one that lost what it held does not.
func TestFreed(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "first,second", "--memory-limit", "96Mi", "--", "--retention", "free-downstream", "--high-watermark", "20")
	c := downstream.Dial(t, g)
	first, second := newMemory(), newMemory()
	_, stop := run(t, c, first, "first")
	_, stopSecond := run(t, c, second, "second")
	load := downstream.StartLoad(t, c, 16)
	downstream.WaitFor(t, "entries to be freed", func() bool { return freed(t, c) > 0 })
	load.Stop()
	stop()
	stopSecond()
	again := newMemory()
	r, _ := run(t, c, again, "first")
	downstream.WaitFor(t, "the new target to get entries", func() bool { return r.Status().Partitions[0].Orders > 0 })
	s := r.Status().Partitions[0]
	again.mu.Lock()
	begins := order.Seq(again.logs[0].entries[0])
	again.mu.Unlock()
	if s.SkippedEntries == 0 || s.SkippedEntries+1 != begins || s.Error != nil {
		t.Errorf("status %+v; the target begins at entry %d", s, begins)
	}
	lost := newMemory()
	lost.log(0).at = client.Position{Seq: 1}
	r, _ = run(t, c, lost, "second")
	permanent(t, r, "the target holds p0 up to entry 1, and the log begins behind entry ")
}

func freed(t *testing.T, c *client.Client) uint64 {
	t.Helper()
	var reject *client.RejectError
	_, err := c.ReadLog(t.Context(), 0, "", 1, func(client.LogEntry) error { return errors.New("enough") })
	if errors.As(err, &reject) && errors.Is(err, client.ErrSnapshotRequired) {
		return reject.Detail
	}
	return 0
}

// A grid where nothing is committed is no error; one that does not answer is, until it does.
func TestSilence(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "silence")
	c := downstream.Dial(t, g)
	m := newMemory()
	r, stop := run(t, c, m, "silence")
	stop()
	r.patience = 300 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go r.Run(ctx)
	downstream.WaitFor(t, "readiness", func() bool { return r.Status().Ready })
	time.Sleep(4 * r.patience)
	if s := r.Status(); !s.Ready {
		t.Errorf("without orders: %+v", s.Partitions[0].Error)
	}
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	downstream.WaitFor(t, "an error that the grid refuses connections", func() bool {
		s := r.Status()
		e := s.Partitions[0].Error
		return !s.Ready && e != nil && e.Kind == kindFollow && strings.Contains(e.Text, "refused")
	})
}
