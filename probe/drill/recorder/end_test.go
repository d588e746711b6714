package recorder

import (
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// gone is ten seconds of orders; those of partition 0 were acknowledged until `until`, and its two
// copies cannot be read.
func gone(until time.Duration) *history.History {
	h := &history.History{Partitions: []wire.PartitionID{0, 1}}
	for p := range wire.PartitionID(2) {
		s := history.Stream{Partition: p, Node: -1}
		for i := range 100 {
			at := int64(i) * int64(100*time.Millisecond)
			o := load.Order{T1: at, T2: at, T3: at + 1, Fate: load.Unknown}
			if p == 1 || at < int64(until) {
				o.Fate, o.Seq = load.Acked, uint64(i+1)
			}
			s.Orders = append(s.Orders, o)
		}
		h.Streams = append(h.Streams, s)
	}
	h.Logs = []history.Log{
		{Partition: 0, Where: "a/1", InSync: true, Error: "no route to host"},
		{Partition: 0, Where: "b/1", InSync: true, Error: "connection refused"},
		{Partition: 0, Where: "c/1", Error: "it learns"},
		{Partition: 1, Where: "d/1", InSync: true, Entries: []history.Entry{{Seq: 1}}},
	}
	return h
}

// That no process holds a log has to be known: a copy that cannot be read is unread, not lost.
func TestNoHolder(t *testing.T) {
	for name, c := range map[string]struct {
		until     time.Duration
		suspected []string
		answered  bool
		change    func(*history.History)
		want      string // in the message of p0; "": it may be held
	}{
		"the grid suspects it":                    {9 * time.Second, []string{"p0"}, false, nil, "DataLossSuspected"},
		"the grid suspects it of another":         {5 * time.Second, []string{"p1"}, false, nil, ""},
		"others answer, and service had ended":    {5 * time.Second, nil, true, nil, "another process of the grid answers"},
		"others answer, and service went on":      {10 * time.Second, nil, true, nil, ""},
		"no node answers":                         {5 * time.Second, nil, false, nil, ""},
		"one copy in sync was read":               {5 * time.Second, []string{"p0"}, true, func(h *history.History) { h.Logs[1].Error = "" }, ""},
		"one copy in sync was read, and is short": {5 * time.Second, []string{"p0"}, true, func(h *history.History) { h.Logs[1].Error, h.Logs[1].Short = "", "ends early" }, ""},
		"no copy was named":                       {5 * time.Second, []string{"p0"}, true, func(h *history.History) { h.Logs = h.Logs[2:] }, ""},
	} {
		h := gone(c.until)
		if c.change != nil {
			c.change(h)
		}
		got := noHolder(h, c.suspected, c.answered)
		if problem := got["p0"]; (problem == "") != (c.want == "") || !strings.Contains(problem, c.want) || got["p1"] != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
