package validate

import (
	"math/bits"
	"slices"

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

// places are sequence numbers that are taken, from 0.
type places struct{ words []uint64 }

func (b *places) set(i uint64) {
	if i >= maxPlace || i/64 > uint64(len(b.words))+1<<20 { // far beyond the log: the order is misplaced, and counts as that
		return
	}
	for i/64 >= uint64(len(b.words)) {
		b.words = append(b.words, 0)
	}
	b.words[i/64] |= 1 << (i % 64)
}

// holes below the highest.
func (b *places) holes() int64 {
	n := len(b.words)
	if n == 0 {
		return 0
	}
	taken := 0
	for _, w := range b.words {
		taken += bits.OnesCount64(w)
	}
	return int64(n*64-bits.LeadingZeros64(b.words[n-1])) - int64(taken)
}

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
	slices.Sort(seqs)
	for i := 1; i < len(seqs); i++ {
		if seqs[i] == seqs[i-1] {
			n++
		}
	}
	return n
}
