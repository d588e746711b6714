package validate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

const ms = int64(time.Millisecond)

// good is ten orders of one stream, one every 10 ms, acknowledged after 1 ms, in the logs of two
// copies and in the files of two pods, of which the second took over with entry 6, and one
// confirmed read of each.
func good() *history.History {
	h := &history.History{Scenario: "kill-primary", Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}, {Pod: "b"}}}
	s := history.Stream{ID: fixorder.ID{Run: 5}, Node: -1, Sessions: 1}
	var log []history.Entry
	for i := range int64(10) {
		epoch := uint64(2 + i/5)
		at := 100*ms + i*10*ms
		s.Orders = append(s.Orders, load.Order{T1: at, T2: at, T3: at + ms, Seq: uint64(i + 1), Epoch: epoch, Copies: 2, Fate: load.Acked})
		e := history.Entry{Seq: uint64(i + 1), Epoch: epoch, Lineage: 1, Hash: uint64(1000 + i), Index: i}
		if i > 0 {
			e.Prev = log[i-1].Hash
		}
		log = append(log, e)
		h.Reads = append(h.Reads, history.Read{Call: at + 2*ms, Return: at + 3*ms, Index: i, Seq: e.Seq, CommitSeq: e.Seq, Epoch: epoch, Node: int(i / 5)})
	}
	h.Streams = []history.Stream{s}
	clone := func(from, to int) []history.Entry { return append([]history.Entry(nil), log[from:to]...) }
	h.Logs = []history.Log{{Where: "a/1", InSync: true, Entries: clone(0, 10)}, {Where: "b/1", InSync: true, Primary: true, Entries: clone(0, 10)}}
	h.Sinks = []history.Log{{Where: "a/x.log", Entries: clone(0, 6)}, {Where: "b/x.log", Entries: clone(4, 10)}}
	h.Reps = []history.Rep{{Number: 1, Partitions: h.Partitions, Ready: 50 * ms, From: 145 * ms, To: 145 * ms, Served: 152 * ms, Redundant: 180 * ms}}
	return h
}

func TestGood(t *testing.T) {
	r := Check(good())
	if !r.OK() {
		t.Fatalf("violations %v, unread %v", r.Violations, r.Unread)
	}
	p := r.Partitions[0]
	if p.Entries != 10 || p.Copies != 2 || p.Downstream != 10 || p.Repeats != 2 || !p.Control || r.Model.Reads != 10 || r.Orders.Acked != 10 {
		t.Fatalf("%+v, %+v, %+v", p, r.Orders, r.Model)
	}
}

// Each row violates one guarantee in an otherwise good history. The judge has to find it: this
// proves that PASS is meaningful.
func TestEveryBrokenPromiseIsSeen(t *testing.T) {
	drop := func(l *history.Log, i int) { l.Entries = append(l.Entries[:i:i], l.Entries[i+1:]...) }
	for name, c := range map[string]struct {
		change func(*history.History)
		want   string // in a violation, or in an unread item
	}{
		"the last acknowledged order is in no copy": {func(h *history.History) {
			for i := range h.Logs {
				drop(&h.Logs[i], 9)
			}
			drop(&h.Sinks[1], 5)
		}, "lost 1"},
		"one copy ends early":                   {func(h *history.History) { drop(&h.Logs[1], 9) }, "lost 1"},
		"a hole in a copy":                      {func(h *history.History) { drop(&h.Logs[1], 4) }, "differs"},
		"copies differ in a byte":               {func(h *history.History) { h.Logs[1].Entries[7].Hash++ }, "entry 8 differs"},
		"the chain is broken in both":           {func(h *history.History) { h.Logs[0].Entries[7].Prev++; h.Logs[1].Entries[7].Prev++ }, "chain breaks 1"},
		"an order is there twice":               {func(h *history.History) { twice(h) }, "duplicates 1"},
		"a refused order is there":              {func(h *history.History) { h.Streams[0].Orders[3].Fate = load.Rejected }, "refused but there 1"},
		"the message was changed":               {func(h *history.History) { h.Logs[0].Entries[2].Corrupt = true }, "corrupt 1"},
		"acknowledged elsewhere":                {func(h *history.History) { h.Streams[0].Orders[3].Seq = 40 }, "misplaced 1"},
		"two orders acknowledged at one place":  {func(h *history.History) { h.Streams[0].Orders[3].Seq = 5 }, "duplicates"},
		"an epoch falls in the log":             {func(h *history.History) { h.Logs[0].Entries[8].Epoch = 2 }, "follows one of epoch"},
		"downstream lacks the last":             {func(h *history.History) { drop(&h.Sinks[1], 5) }, "downstream, stream 0: lost 1"},
		"downstream lacks one in the middle":    {func(h *history.History) { h.Sinks[0].Entries = h.Sinks[0].Entries[:3] }, "downstream, stream 0: lost 1"},
		"a sink skips a line":                   {func(h *history.History) { drop(&h.Sinks[0], 2) }, "seq 4} follows"},
		"a sink repeats a line":                 {func(h *history.History) { h.Sinks[0].Entries = append(h.Sinks[0].Entries, h.Sinks[0].Entries[5]) }, "follows"},
		"a sink goes back an epoch":             {func(h *history.History) { h.Sinks[1].Entries[4].Epoch = 1 }, "epoch 1, seq 9} follows"},
		"a sink has another entry":              {func(h *history.History) { h.Sinks[0].Entries[1].Hash++ }, "has hash"},
		"a sink is ahead of the log":            {func(h *history.History) { h.Sinks[1].Entries[5].Seq = 11 }, "the log ends at 10"},
		"acknowledged, then not found":          {func(h *history.History) { h.Reads[7].Seq = 0 }, "not linearizable"},
		"found at another place":                {func(h *history.History) { h.Reads[7].Seq = 3 }, "not linearizable"},
		"a read from an older prefix":           {func(h *history.History) { h.Reads[7].CommitSeq = 2 }, "stale read"},
		"a read out of an old epoch":            {func(h *history.History) { h.Reads[7].Epoch = 2 }, "read 7 at b was answered out of epoch 2"},
		"an order out of an old epoch":          {func(h *history.History) { h.Streams[0].Orders[7].Epoch = 2 }, "order 7 of stream 0 was answered out of epoch 2"},
		"the log is not in the order of time":   {func(h *history.History) { swap(h) }, "stands at"},
		"a copy cannot be read":                 {func(h *history.History) { h.Logs[0].Error = "refused" }, "refused"},
		"no copy at all":                        {func(h *history.History) { h.Logs = nil }, "no copy"},
		"a sink cannot be read":                 {func(h *history.History) { h.Sinks[0].Error = "line 3" }, "line 3"},
		"there are sinks, and none of this one": {func(h *history.History) { h.Sinks = []history.Log{{Partition: 1}} }, "no sink file"},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.change(h)
			r := Check(h)
			if all := fmt.Sprint(r.Violations, r.Unread); r.OK() || !strings.Contains(all, c.want) {
				t.Fatalf("violations %q, unread %q; want one with %q", r.Violations, r.Unread, c.want)
			}
		})
	}
}

// twice puts order 2 into the logs again, as entry 11.
func twice(h *history.History) {
	for i := range h.Logs {
		e := h.Logs[i].Entries
		again := e[2]
		again.Seq, again.Prev, again.Hash, again.Epoch = 11, e[9].Hash, 5000, 3
		h.Logs[i].Entries = append(e, again)
	}
}

// swap exchanges the places of orders 3 and 4, everywhere.
func swap(h *history.History) {
	for _, logs := range [][]history.Log{h.Logs, h.Sinks[:1]} {
		for i := range logs {
			e := logs[i].Entries
			e[3].Index, e[4].Index = e[4].Index, e[3].Index
		}
	}
	h.Sinks[1].Entries[0].Index = 3
	o := h.Streams[0].Orders
	o[3].Seq, o[4].Seq = o[4].Seq, o[3].Seq
	h.Reads[3].Seq, h.Reads[4].Seq, h.Reads[3].CommitSeq = 5, 4, 5
}

// Allowed histories must not be reported as violations.
func TestAllowed(t *testing.T) {
	for name, change := range map[string]func(*history.History){
		"an order without an answer, not there": func(h *history.History) {
			h.Streams[0].Orders = append(h.Streams[0].Orders, load.Order{T1: 900 * ms, T2: 900 * ms, T3: 950 * ms, Fate: load.Unknown})
		},
		"an order without an answer, there": func(h *history.History) {
			o := &h.Streams[0].Orders[9]
			o.Fate, o.Seq, o.Epoch = load.Unknown, 0, 0
		},
		"a copy that still catches up": func(h *history.History) { h.Logs[0].InSync, h.Logs[0].Entries = false, h.Logs[0].Entries[:4] },
		"a refused order, not there": func(h *history.History) {
			h.Streams[0].Orders = append(h.Streams[0].Orders, load.Order{Fate: load.Rejected})
		},
		"a foreign order": func(h *history.History) {
			for _, l := range []*history.Log{&h.Logs[0], &h.Logs[1], &h.Sinks[1]} {
				n := len(l.Entries)
				l.Entries = append(l.Entries, history.Entry{Seq: 11, Epoch: 3, Lineage: 1, Prev: l.Entries[n-1].Hash, Hash: 7000, Stream: history.Foreign})
			}
		},
		"no sinks": func(h *history.History) { h.Sinks = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			change(h)
			if r := Check(h); !r.OK() {
				t.Fatalf("violations %q, unread %q", r.Violations, r.Unread)
			}
		})
	}
}

func TestOutage(t *testing.T) {
	h := good()
	// Orders 5 and 6 are answered 20 ms late, together: a gap from 141 to 171 ms.
	h.Streams[0].Orders[5].T3, h.Streams[0].Orders[6].T3 = 171*ms, 171*ms
	h.Reps[0].Served = 172 * ms
	h.Reps[0].Redundant = 200 * ms
	h.Stalls = []history.Stall{{At: 150 * ms, Len: 9 * ms}, {At: 300 * ms, Len: 50 * ms}}
	o := NewTimeline(h).Outage(&h.Reps[0])
	if o.Worst != 30*time.Millisecond || o.First != o.Worst || o.Stall != 9*time.Millisecond || o.Redundant != 55*time.Millisecond || o.Failed != 0 {
		t.Fatalf("%+v", o)
	}
	if o.Before.N != 5 || o.Before.Max != time.Millisecond || o.During.Max != 21*time.Millisecond {
		t.Fatalf("%+v", o)
	}
	if !o.Disturbed() {
		t.Error("a stall of a third of the outage does not count")
	}
	h.Calm = []history.Span{{From: 100 * ms, To: 145 * ms}}
	if n := NewTimeline(h).Noise(); len(n) != 1 || n[0] != 10*time.Millisecond {
		t.Errorf("noise %v, want 10 ms: the gap of the fault is not noise", n)
	}
}

func TestQuantile(t *testing.T) {
	twenty := make([]int64, 20)
	for i := range twenty {
		twenty[i] = int64(i + 1)
	}
	for _, c := range []struct {
		q    float64
		want int64
	}{{0, 1}, {0.5, 10}, {0.95, 19}, {0.99, 20}, {1, 20}} {
		if got := Quantile(twenty, c.q); got != c.want {
			t.Errorf("quantile %v of 1..20 is %d, want %d", c.q, got, c.want)
		}
	}
	if Quantile([]int64(nil), 0.5) != 0 {
		t.Error("without values: not 0")
	}
}
