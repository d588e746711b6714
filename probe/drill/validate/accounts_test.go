package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

func words(a *Accounts) string {
	return fmt.Sprintf("lost %d, not in all copies %d, not downstream %d, duplicated %d, gaps %d, out of order %d, unknown found %d, absent %d, refused %d, misplaced %d, corrupt %d, receipts %d, unjudged %d",
		len(a.Lost), a.MissingInCopies, a.MissingDownstream, a.Duplicated, a.Gaps, a.OutOfOrder, a.UnknownFound, a.UnknownAbsent, a.RefusedFound, a.Misplaced, a.Corrupt, a.RepeatedReceipts, a.Unjudged)
}

const clean = "lost 0, not in all copies 0, not downstream 0, duplicated 0, gaps 0, out of order 0, unknown found 0, absent 0, refused 0, misplaced 0, corrupt 0, receipts 0, unjudged 0"

func without(l *history.Log, i int) { l.Entries = append(l.Entries[:i:i], l.Entries[i+1:]...) }

func TestAccounts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.History)
		want   string
	}{
		"good": {func(*history.History) {}, clean},
		"in no place": {func(h *history.History) {
			without(&h.Logs[0], 9)
			without(&h.Logs[1], 9)
			without(&h.Sinks[1], 5)
		}, "lost 1, not in all copies 0, not downstream 0, duplicated 0, gaps 0"},
		"downstream only":                 {func(h *history.History) { without(&h.Logs[0], 9); without(&h.Logs[1], 9) }, "lost 0, not in all copies 1, not downstream 0, duplicated 0, gaps 0"},
		"one copy lacks it":               {func(h *history.History) { without(&h.Logs[1], 4) }, "lost 0, not in all copies 1, not downstream 0, duplicated 0, gaps 1"},
		"a copy that catches up lacks it": {func(h *history.History) { h.Logs[1].InSync = false; without(&h.Logs[1], 9) }, clean},
		"only a copy that catches up has it": {func(h *history.History) {
			h.Logs[1].InSync = false
			without(&h.Logs[0], 9)
			without(&h.Sinks[1], 5)
		}, "lost 1, not in all copies 0"},
		"not downstream":    {func(h *history.History) { without(&h.Sinks[1], 5) }, "lost 0, not in all copies 0, not downstream 1, duplicated 0, gaps 0"},
		"downstream a hole": {func(h *history.History) { without(&h.Sinks[0], 2) }, "lost 0, not in all copies 0, not downstream 1, duplicated 0, gaps 1"},
		"no sinks":          {func(h *history.History) { h.Sinks = nil }, clean},
		"twice in the log":  {twice, "lost 0, not in all copies 0, not downstream 0, duplicated 1, gaps 0"},
		"in another partition too": {func(h *history.History) {
			other := h.Logs[0]
			other.Partition, other.Entries = wire.PartitionID(1), append([]history.Entry(nil), h.Logs[0].Entries[4])
			h.Logs = append(h.Logs, other)
		}, "lost 0, not in all copies 0, not downstream 0, duplicated 1, gaps 0"},
		"a line twice": {func(h *history.History) { h.Sinks[0].Entries = append(h.Sinks[0].Entries, h.Sinks[0].Entries[5]) },
			"lost 0, not in all copies 0, not downstream 0, duplicated 1, gaps 0"},
		"downstream at another place too": {func(h *history.History) {
			e := h.Sinks[1].Entries[2]
			e.Seq = 11
			h.Sinks[1].Entries = append(h.Sinks[1].Entries, e)
		}, "duplicated 1, gaps 0"},
		"two orders of a session change places": {swap, "duplicated 0, gaps 0, out of order 2"}, // once in each copy
		"an epoch falls":                        {func(h *history.History) { h.Logs[0].Entries[8].Epoch = 2 }, "gaps 0, out of order 1"},
		"no answer, there": {func(h *history.History) {
			o := &h.Streams[0].Orders[9]
			o.Fate, o.Seq, o.Epoch = load.Unknown, 0, 0
		}, "unknown found 1, absent 0, refused 0"},
		"no answer, not there": {func(h *history.History) {
			h.Streams[0].Orders = append(h.Streams[0].Orders, load.Order{Fate: load.Unknown})
		}, "unknown found 0, absent 1, refused 0"},
		"refused, there":       {func(h *history.History) { h.Streams[0].Orders[3].Fate = load.Rejected }, "refused 1, misplaced 0"},
		"never created, there": {func(h *history.History) { h.Logs[0].Entries[3].Index = 77 }, "refused 1, misplaced 0"},
		"elsewhere":            {func(h *history.History) { h.Streams[0].Orders[3].Seq = 40 }, "misplaced 1, corrupt 0"},
		"changed":              {func(h *history.History) { h.Logs[0].Entries[2].Corrupt = true }, "corrupt 1"},
		"a receipt twice":      {func(h *history.History) { h.Streams[0].Orders[3].Seq = 5 }, "receipts 1"},
		"nothing could be read": {func(h *history.History) { h.Logs[0].Error, h.Logs[1].Error = "x", "x" },
			"lost 0, not in all copies 0, not downstream 0, duplicated 0, gaps 0, out of order 0, unknown found 0, absent 0, refused 0, misplaced 0, corrupt 0, receipts 0, unjudged 10"},
		"no process holds the log": {func(h *history.History) {
			h.Logs[0].Error, h.Logs[1].Error = "x", "x"
			h.Drill = &history.Drill{NoHolder: map[string]string{"p0": "the only process is new"}}
			without(&h.Sinks[1], 5)
		}, "lost 1, not in all copies 9, not downstream 0"},
		"a far place downstream": {func(h *history.History) { h.Sinks[1].Entries[5].Seq = 1 << 60 }, "misplaced 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.change(h)
			got := words(Take(h))
			if !strings.Contains(got, c.want) {
				t.Fatalf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Entries from before the run are ignored, and gaps count from there.
func TestAccountsBehindABase(t *testing.T) {
	h := good()
	for _, logs := range [][]history.Log{h.Logs, h.Sinks} {
		for i := range logs {
			for j := range logs[i].Entries {
				logs[i].Entries[j].Seq += 500
			}
		}
	}
	for i := range h.Streams[0].Orders {
		h.Streams[0].Orders[i].Seq += 500
	}
	for i := range h.Reads {
		h.Reads[i].Seq += 500
		h.Reads[i].CommitSeq += 500
	}
	h.Logs[0].Entries[0].Prev, h.Logs[1].Entries[0].Prev = 99, 99
	h.Bases = []history.Base{{Seq: 500, Hash: 99, Known: true}}
	if got := words(Take(h)); got != clean {
		t.Error(got)
	}
	if r := Check(h); !r.OK() {
		t.Errorf("violations %q, unread %q", r.Violations, r.Unread)
	}
	h.Bases[0].Seq = 499
	if got := words(Take(h)); !strings.Contains(got, "gaps 1,") {
		t.Error(got)
	}
	h.Bases[0] = history.Base{Seq: 500, Hash: 98, Known: true}
	if r := Check(h); r.OK() {
		t.Error("the first entry does not follow the earlier log, which was not reported")
	}
}

// many is n orders in two streams of two sessions each, in two copies and one sink.
func many(n int) *history.History {
	h := &history.History{Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}}}
	h.Streams = []history.Stream{{ID: fixorder.ID{Run: 5}, Node: -1, Sessions: 2}, {ID: fixorder.ID{Run: 5, Probe: 1}, Node: -1, Sessions: 2}}
	var log []history.Entry
	for i := range n {
		s, at := i%2, int64(i)*ms
		index := int64(len(h.Streams[s].Orders))
		h.Streams[s].Orders = append(h.Streams[s].Orders, load.Order{T1: at, T2: at, T3: at + ms, Seq: uint64(i + 1), Epoch: 1, Copies: 2, Fate: load.Acked, Thread: uint8(index % 2)})
		log = append(log, history.Entry{Seq: uint64(i + 1), Epoch: 1, Lineage: 1, Hash: uint64(1000 + i), Stream: s, Index: index})
	}
	h.Logs = []history.Log{{Where: "a", InSync: true, Entries: log}, {Where: "b", InSync: true, Entries: log}}
	h.Sinks = []history.Log{{Where: "a/x.log", Entries: log[:n/2+7]}, {Where: "b/x.log", Entries: log[n/2:]}}
	return h
}

// The control finds exactly the modifications, whatever else is wrong with the logs.
func TestNegativeControl(t *testing.T) {
	for name, change := range map[string]func(*history.History){
		"good":     func(*history.History) {},
		"no sinks": func(h *history.History) { h.Sinks = nil },
		"some lost": func(h *history.History) {
			for _, l := range []*history.Log{&h.Logs[0], &h.Logs[1], &h.Sinks[0]} {
				l.Entries = append(l.Entries[:50:50], l.Entries[60:]...)
			}
		},
		"one copy is empty":      func(h *history.History) { h.Logs[1].Entries = nil },
		"only the sink has them": func(h *history.History) { h.Logs[0].Entries, h.Logs[1].Entries = nil, nil },
		"one copy is short":      func(h *history.History) { h.Logs[1].Entries = h.Logs[1].Entries[:900] },
	} {
		for seed := range uint64(20) {
			h := many(1000)
			change(h)
			real := Take(h)
			if c := NegativeControl(h, real, 17, 5, seed); !c.OK() || c.Dropped != 17 || c.Repeated != 5 {
				t.Fatalf("%s, seed %d: %+v", name, seed, c)
			}
		}
	}
	h := many(1000)
	h.Logs[0].Entries, h.Logs[1].Entries, h.Sinks = nil, nil, nil
	if c := NegativeControl(h, Take(h), 17, 5, 1); c.OK() {
		t.Errorf("nothing to remove, but the control passes: %+v", c)
	}
}

// A judge that misses something is detected.
func TestControlSeesABlindJudge(t *testing.T) {
	for _, c := range []Control{{}, {Dropped: 3, Repeated: 1, Lost: 2, Duplicated: 1, Gaps: 3}, {Dropped: 3, Repeated: 1, Lost: 3, Gaps: 3}, {Dropped: 3, Lost: 3, Duplicated: 1, Gaps: 3}, {Dropped: 3, Repeated: 1, Lost: 3, Duplicated: 1}} {
		if c.OK() {
			t.Errorf("%+v is content", c)
		}
	}
}
