package replica

import (
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// execLog is what the entries of a partition that matches did: the records, and after each
// entry the position. Every copy computes its own, none is replicated; copies compare
// positions. It is freed entry by entry with the log.
type execLog struct {
	entries deque[match.Position] // after entry i
	records deque[match.Record]   // the i-th of all, from 0
	base    match.Position        // after the last entry that is freed
	shared  atomic.Pointer[execView]
	traded  atomic.Pointer[[]machine.Instrument] // by number of their book
}

// execView is where other goroutines find what is held, see ExecTape. It is replaced when a
// chunk comes or goes.
type execView struct {
	entries view[match.Position]
	records view[match.Record]
}

// trade lets other goroutines see the instruments, if there are others than before.
func (x *execLog) trade(list []machine.Instrument) {
	if known := x.traded.Load(); known == nil || len(*known) != len(list) {
		own := list // so that the parameter is not on the heap
		x.traded.Store(&own)
	}
}

// share lets other goroutines see the chunks that there are.
func (x *execLog) share() { x.shared.Store(&execView{x.entries.view(), x.records.view()}) }

// lent takes the memory of both from a store, see store.Store.Lend.
func (x *execLog) lent(lend func() []byte) { x.entries.lend, x.records.lend = lend, lend }

// begin forgets everything: the next entry is the one behind base.
func (x *execLog) begin(base uint64, at match.Position) {
	x.entries.begin(base + 1)
	x.records.begin(at.ExecSeq)
	x.base = at
	x.share()
}

// add adds the output of the next entry.
func (x *execLog) add(at match.Position, records []match.Record) {
	grew := false
	for i := range records {
		grew = x.records.push(&records[i]) || grew
	}
	if x.entries.push(&at) || grew {
		x.share()
	}
}

// at returns the position after an entry, from the last one freed to the last one added.
func (x *execLog) at(seq uint64) match.Position {
	if seq < x.entries.first {
		return x.base
	}
	return *x.entries.at(seq)
}

// of returns the number of the first record of an entry that is held, and how many it has.
func (x *execLog) of(seq uint64) (first, n uint64) {
	first = x.at(seq - 1).ExecSeq
	return first, x.at(seq).ExecSeq - first
}

// free frees the first entry.
func (x *execLog) free() {
	x.base = *x.entries.at(x.entries.first)
	if entries, records := x.entries.freeTo(x.entries.first+1), x.records.freeTo(x.base.ExecSeq); entries || records {
		x.share()
	}
}

// bytes returns the memory of what is held.
func (x *execLog) bytes() int64 {
	return int64(len(x.records.chunks))*dequeChunk*match.RecordBytes + int64(len(x.entries.chunks))*dequeChunk*16
}
