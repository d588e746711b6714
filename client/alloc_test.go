package client

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestSubmitAllocatesNothing(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		answerInPlace(g.primary)
		s := openTest(t, g.dial(t, io))
		fix, ctx := testOrder(1), context.Background()
		timed, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for name, ctx := range map[string]context.Context{"background": ctx, "deadline": timed} {
			if n := allocsPerRun(2000, func() {
				if _, err := s.Submit(ctx, fix); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations per Submit, want 0", name, n)
			}
		}
		var pending atomic.Int64
		done := func(_ Receipt, err error) {
			if err != nil {
				t.Error(err)
			}
			pending.Add(-1)
		}
		if n := allocsPerRun(200, func() {
			pending.Store(16)
			for range 16 {
				if err := s.Enqueue(fix, done); err != nil {
					t.Fatal(err)
				}
			}
			s.Push()
			for pending.Load() > 0 {
				time.Sleep(10 * time.Microsecond)
			}
		}); n != 0 {
			t.Errorf("%v allocations per 16 asynchronous orders, want 0", n)
		}
	})
}

func TestReadAllocatesNothing(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 1)
		readInPlace(g.primary)
		c := g.dial(t, io)
		r := openReader(t, c)
		var pending atomic.Int64
		done := func(v *OrderView, err error) {
			if err != nil || len(v.FIX()) == 0 || v.Side() != '1' || string(v.ClOrdID()) != "T000001" {
				t.Error(v, err)
			}
			pending.Add(-1)
		}
		key := []byte("T000001")
		for name, read := range map[string]func() error{
			"reader by id":      func() error { return r.Enqueue(1, done) },
			"reader by ClOrdID": func() error { return r.EnqueueByClOrdID(key, done) },
			"client by id": func() error {
				return c.GetAsync(wire.OrderID{Partition: testPartition, Seq: 1}, done, WithMode(Leased))
			},
			"client by ClOrdID": func() error { return c.GetByClOrdIDAsync(key, done) },
		} {
			round := func() {
				pending.Store(16)
				for range 16 {
					check(t, read())
				}
				r.Push()
				for pending.Load() > 0 {
					time.Sleep(10 * time.Microsecond)
				}
			}
			for range 1024/16 + 1 { // every slot of the window has a key buffer
				round()
			}
			if n := allocsPerRun(200, round); n != 0 {
				t.Errorf("%s: %v allocations per 16 asynchronous reads, want 0", name, n)
			}
		}
	})
}

// readInPlace answers every Get with one order, from one buffer.
func readInPlace(n *fakeNode) {
	var mu sync.Mutex // two connections share the buffer
	var out []byte
	entry := fakeEntry(1, string(testOrder(1)))
	n.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeGet {
			return false
		}
		var m wire.Get
		wire.DecodeGet(frame, &m)
		mu.Lock()
		defer mu.Unlock()
		out = wire.AppendGetReply(out[:0], testPartition, &wire.GetReply{ReqID: m.ReqID, Epoch: 1, CommitSeq: 1, Entry: entry})
		c.Write(out)
		return true
	})
}

// allocsPerRun is testing.AllocsPerRun without its GOMAXPROCS(1), under which a
// pinned reader and the fake node would take turns by preemption.
func allocsPerRun(runs int, f func()) uint64 {
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / uint64(runs)
}

// answerInPlace acks every Submit from one buffer: AllocsPerRun counts the whole
// process, the fake included.
func answerInPlace(n *fakeNode) {
	var out []byte
	var seq uint64 = 100
	n.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		seq++
		out = wire.AppendAck(out[:0], testPartition, &wire.Ack{ClientSeq: m.ClientSeq, Seq: seq, Epoch: m.Epoch, Slot: m.Slot, Copies: 1})
		c.Write(out)
		return true
	})
}

func BenchmarkSubmitFake(b *testing.B) {
	for _, mode := range []IO{IONet, IOBlocking, IOPinned} {
		b.Run(mode.String(), func(b *testing.B) {
			g := newFakeGrid(b, 1)
			answerInPlace(g.primary)
			s := openTest(b, g.dial(b, func(c *Config) { c.IO = mode }))
			fix := testOrder(1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Submit(context.Background(), fix); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
