package validate

import (
	"math"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

const second = int64(time.Second)

// run is n seconds of an order every 10 ms, answered after 1 ms, and a drill.
func run(n int64, reps ...history.Rep) *history.History {
	h := &history.History{Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}}, Reps: reps, Drill: &history.Drill{}}
	s := history.Stream{ID: fixorder.ID{Run: 1}, Node: -1, Sessions: 1}
	for i := range n * 100 {
		at := (i + 1) * second / 100
		s.Orders = append(s.Orders, load.Order{T1: at, T2: at, T3: at + second/1000, Seq: uint64(i + 1), Epoch: 1, Fate: load.Acked})
	}
	h.Streams = []history.Stream{s}
	return h
}

func fault(from, to int64) history.Rep {
	return history.Rep{Partitions: []wire.PartitionID{0}, Ready: from - second, From: from, To: from, Healed: from, Served: to, Redundant: to}
}

func TestWindows(t *testing.T) {
	h := run(300, fault(10*second, 12*second), fault(14*second, 15*second), fault(40*second, 41*second), fault(100*second, 250*second))
	want := []history.Span{{From: 9 * second, To: 16 * second}, {From: 39 * second, To: 42 * second}, {From: 99 * second, To: 159 * second}, {From: 158 * second, To: 218 * second}, {From: 217 * second, To: 251 * second}}
	got := Windows(h)
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
	// A fault that never ended is checked until the end.
	never := fault(290*second, 0)
	if got := Windows(run(300, never)); len(got) != 1 || got[0].To != math.MaxInt64 {
		t.Errorf("%v", got)
	}
	h.Drill = nil
	if got := Windows(h); len(got) != 1 || got[0].From != math.MinInt64 {
		t.Errorf("a scenario is checked as a whole: %v", got)
	}
}

// Observations during a fault are judged; reads include the orders they ask for, however old.
func TestCheckLooksAtFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.History)
		broken bool
	}{
		"good": {func(*history.History) {}, false},
		"order of time, in a fault": {func(h *history.History) {
			o := h.Streams[0].Orders
			o[1105].Seq, o[1106].Seq = o[1106].Seq, o[1105].Seq
		}, true},
		"read of an old order, not found": {func(h *history.History) {
			h.Reads = []history.Read{{Call: 11 * second, Return: 11*second + 1, Index: 5, CommitSeq: 1090, Epoch: 1}}
		}, true},
		"read of an old order, found": {func(h *history.History) {
			h.Reads = []history.Read{{Call: 11 * second, Return: 11*second + 1, Index: 5, Seq: 6, CommitSeq: 1100, Epoch: 1}}
		}, false},
		"an older epoch, in a fault": {func(h *history.History) {
			for i := 1100; i < len(h.Streams[0].Orders); i++ {
				h.Streams[0].Orders[i].Epoch = 2
			}
			h.Streams[0].Orders[1150].Epoch = 1
		}, true},
	} {
		h := run(20, fault(11*second, 12*second))
		c.change(h)
		r := CheckModel(h)
		if (len(r.Violations) > 0) != c.broken {
			t.Errorf("%s: %q", name, r.Violations)
		}
		if r.Orders < 200 || r.Orders > 500 {
			t.Errorf("%s: %d orders were checked, the fault has about 300", name, r.Orders)
		}
	}
}
