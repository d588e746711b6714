package validate

import (
	"slices"

	"github.com/ordergrid/ordergrid/internal/audit"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// sequence checks whether the orders of each session are in the order in which they were sent.
// Direct probers send each order independently.
type sequence struct {
	h    *history.History
	last map[int][]int64 // by stream and session: the youngest order seen
}

func newSequence(h *history.History, m marks) *sequence {
	q := &sequence{h: h, last: map[int][]int64{}}
	for s := range m {
		if h.Streams[s].Node < 0 {
			q.last[s] = slices.Repeat([]int64{-1}, 256)
		}
	}
	return q
}

// see returns 1 for an order that comes after a younger one of its session.
func (q *sequence) see(e *history.Entry) int64 {
	last := q.last[e.Stream]
	if last == nil {
		return 0
	}
	of := &last[q.h.Streams[e.Stream].Orders[e.Index].Thread]
	if e.Index < *of {
		return 1
	}
	*of = e.Index
	return 0
}

// maxPlace bounds the memory that a damaged sink can make a judge allocate: 2^36 entries.
const maxPlace = 1 << 36

// far reports whether a place is far beyond the log: the order is misplaced, and counts as that.
func far(there *audit.Set, i uint64) bool { return i >= maxPlace || i > there.Room()+64<<20 }

// repeatedReceipts counts acknowledged orders of a partition whose receipt names the place of
// another order.
func repeatedReceipts(h *history.History, m marks) (n int64) {
	var seqs []uint64
	for s := range m {
		for i := range h.Streams[s].Orders {
			if o := &h.Streams[s].Orders[i]; o.Fate == load.Acked {
				seqs = append(seqs, o.Seq)
			}
		}
	}
	audit.Twice(seqs, func(uint64) { n++ })
	return n
}
