package replica

import "github.com/ordergrid/ordergrid/grid-node/match"

// execLog is what the entries of a partition that matches did: the records, and after each
// entry the position. Every copy computes its own, none is replicated; copies compare
// positions. It is freed entry by entry with the log.
type execLog struct {
	entries deque[match.Position] // after entry i
	records deque[match.Record]   // the i-th of all, from 0
	base    match.Position        // after the last entry that is freed
}

// begin forgets everything: the next entry is the one behind base.
func (x *execLog) begin(base uint64, at match.Position) {
	x.entries.begin(base + 1)
	x.records.begin(at.ExecSeq)
	x.base = at
}

// add adds the output of the next entry.
func (x *execLog) add(at match.Position, records []match.Record) {
	for i := range records {
		x.records.push(&records[i])
	}
	x.entries.push(&at)
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
	x.entries.freeTo(x.entries.first + 1)
	x.records.freeTo(x.base.ExecSeq)
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

func (d *deque[T]) push(v *T) {
	if int((d.next-d.origin)/dequeChunk) == len(d.chunks) {
		c := d.spare
		if d.spare = nil; c == nil {
			c = make([]T, dequeChunk)
		}
		d.chunks = append(d.chunks, c)
	}
	*d.at(d.next) = *v
	d.next++
}

// freeTo frees the elements before i.
func (d *deque[T]) freeTo(i uint64) {
	for d.first = i; d.first-d.origin >= dequeChunk; d.origin += dequeChunk {
		d.spare = d.chunks[0]
		n := copy(d.chunks, d.chunks[1:])
		d.chunks[n] = nil
		d.chunks = d.chunks[:n]
	}
}
