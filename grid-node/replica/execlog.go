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

// deque is a queue of numbered elements, in chunks.
type deque[T any] struct {
	chunks [][]T
	first  uint64 // the first element held
	next   uint64 // the number of the next one
	origin uint64 // the number of the first place of the first chunk
	spare  []T    // a chunk that is free
}

const dequeChunk = 1024

func (d *deque[T]) begin(at uint64) { *d = deque[T]{first: at, next: at, origin: at} }

func (d *deque[T]) at(i uint64) *T {
	return &d.chunks[(i-d.origin)/dequeChunk][(i-d.origin)%dequeChunk]
}

// push adds an element, and reports whether that took another chunk.
func (d *deque[T]) push(v *T) (grew bool) {
	if int((d.next-d.origin)/dequeChunk) == len(d.chunks) {
		c := d.spare
		if d.spare = nil; c == nil {
			c = make([]T, dequeChunk)
		}
		d.chunks = append(d.chunks, c)
		grew = true
	}
	*d.at(d.next) = *v
	d.next++
	return grew
}

// freeTo frees the elements before i, and reports whether a chunk went with them. A view of
// before has the other chunks at their places still.
func (d *deque[T]) freeTo(i uint64) (shrank bool) {
	for d.first = i; d.first-d.origin >= dequeChunk; d.origin += dequeChunk {
		d.spare, d.chunks[0] = d.chunks[0], nil
		d.chunks = d.chunks[1:]
		shrank = true
	}
	return shrank
}

// view is a deque as another goroutine may read it: elements that were pushed before
// something it has seen, and that are not freed while it reads.
type view[T any] struct {
	chunks [][]T
	origin uint64
}

func (d *deque[T]) view() view[T] { return view[T]{d.chunks, d.origin} }

func (v *view[T]) at(i uint64) *T {
	return &v.chunks[(i-v.origin)/dequeChunk][(i-v.origin)%dequeChunk]
}
