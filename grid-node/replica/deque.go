package replica

import "unsafe"

// deque is a queue of numbered elements, in chunks. What is pushed for each order costs mostly the
// memory that it is written to: a page that is used for the first time costs some microseconds, as
// much as the order. So chunks are cut from blocks that are lent, where there are any: these are
// present, and come back to the deque when they are free. Others are of the Go heap.
type deque[T any] struct {
	chunks []chunk[T]
	first  uint64 // the first element held
	next   uint64 // the number of the next one
	origin uint64 // the number of the first place of the first chunk
	spare  []T    // a chunk of the Go heap that is free

	lend func() []byte // returns a block, nil for none now; nil: no block is lent. T must have no pointers
	rest []byte        // of a block
	free [][]T         // chunks of blocks that are free
}

// chunk has dequeChunk elements.
type chunk[T any] struct {
	items []T
	lent  bool
}

const dequeChunk = 1024

// begin forgets everything: element at is the next one.
func (d *deque[T]) begin(at uint64) {
	for len(d.chunks) > 0 {
		d.freeFirst()
	}
	*d = deque[T]{first: at, next: at, origin: at, lend: d.lend, rest: d.rest, free: d.free}
}

func (d *deque[T]) at(i uint64) *T {
	return &d.chunks[(i-d.origin)/dequeChunk].items[(i-d.origin)%dequeChunk]
}

// push adds an element, and reports whether that took another chunk.
func (d *deque[T]) push(v *T) (grew bool) {
	if int((d.next-d.origin)/dequeChunk) == len(d.chunks) {
		d.chunks = append(d.chunks, d.take())
		grew = true
	}
	*d.at(d.next) = *v
	d.next++
	return grew
}

// take returns a chunk that is free.
func (d *deque[T]) take() chunk[T] {
	if n := len(d.free); n > 0 {
		c := d.free[n-1]
		d.free = d.free[:n-1]
		return chunk[T]{c, true}
	}
	var t T
	size := dequeChunk * int(unsafe.Sizeof(t))
	if len(d.rest) < size && d.lend != nil {
		d.rest = d.lend()
	}
	if len(d.rest) >= size {
		b := d.rest[:size]
		d.rest = d.rest[size:]
		return chunk[T]{unsafe.Slice((*T)(unsafe.Pointer(&b[0])), dequeChunk), true}
	}
	c := d.spare
	if d.spare = nil; c == nil {
		c = make([]T, dequeChunk)
	}
	return chunk[T]{c, false}
}

// freeTo frees the elements before i, and reports whether a chunk went with them. A view of
// before has the other chunks at their places still.
func (d *deque[T]) freeTo(i uint64) (shrank bool) {
	for d.first = i; d.first-d.origin >= dequeChunk; d.origin += dequeChunk {
		d.freeFirst()
		shrank = true
	}
	return shrank
}

// freeFirst frees the first chunk.
func (d *deque[T]) freeFirst() {
	if c := d.chunks[0]; c.lent {
		d.free = append(d.free, c.items)
	} else {
		d.spare = c.items
	}
	d.chunks[0] = chunk[T]{}
	d.chunks = d.chunks[1:]
}

// view is a deque as another goroutine may read it: elements that were pushed before
// something it has seen, and that are not freed while it reads.
type view[T any] struct {
	chunks []chunk[T]
	origin uint64
}

func (d *deque[T]) view() view[T] { return view[T]{d.chunks, d.origin} }

func (v *view[T]) at(i uint64) *T {
	return &v.chunks[(i-v.origin)/dequeChunk].items[(i-v.origin)%dequeChunk]
}
