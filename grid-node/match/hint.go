package match

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// An operation waits for memory several times: for the place of its id, the order, the
// queue, the neighbour in it. A caller that has several operations, as a wake-up of a node
// brings them, loads ahead: HintFar some operations before an operation is applied,
// HintNear a few before. Both change nothing, and what they miss only costs time.

// HintFar starts to load the place of the id and the book.
func (e *Engine) HintFar(op *Op) {
	id := op.Orig
	if op.Kind == Enter {
		id = op.ID
		if int(op.Book) < len(e.books) {
			b := unsafe.Pointer(&e.books[op.Book])
			prefetch.Line(b)
			prefetch.Line(unsafe.Add(b, 64))
			prefetch.Line(unsafe.Add(b, 128))
		}
	}
	prefetch.Line(unsafe.Pointer(&e.ids.table[e.ids.hash(id)&e.ids.mask]))
}

// HintPlace starts to load a place of a table of the caller's.
func HintPlace(table []uint64, at uint32) { prefetch.Line(unsafe.Pointer(&table[at])) }

// HintNear starts to load the order that is meant, or the queue of a new one.
func (e *Engine) HintNear(op *Op) {
	if op.Kind != Enter {
		h := e.ids.hash(op.Orig)
		for i := h & e.ids.mask; e.ids.table[i] != 0; i = (i + 1) & e.ids.mask {
			if x := e.ids.table[i]; uint32(x>>32) == h {
				prefetch.Line(unsafe.Pointer(&e.orders[uint32(x)]))
				return
			}
		}
		return
	}
	if p, key := e.hintPage(op); p != nil {
		prefetch.Line(unsafe.Pointer(&p.levels[key&(pageSize-1)]))
		prefetch.Line(unsafe.Pointer(&p.volumes[key&(pageSize-1)]))
	}
}

// hintPage returns the page in which a new limit order may rest, nil for none.
func (e *Engine) hintPage(op *Op) (*page, uint32) {
	if int(op.Book) >= len(e.books) || op.Side != Buy && op.Side != Sell || op.Type != Limit {
		return nil, 0
	}
	b := &e.books[op.Book]
	if b.span == 0 {
		return nil, 0
	}
	at, why := b.offset(op.Price)
	if why != None {
		return nil, 0
	}
	key := b.ticks(op.Side.place(), at)
	return &e.pages[b.ladders[op.Side.place()].refs[key>>pageBits].page], key
}

// HintNext starts to load the neighbours in the queue, for an operation that is next.
func (e *Engine) HintNext(op *Op) {
	if op.Kind == Enter {
		if p, key := e.hintPage(op); p != nil {
			prefetch.Line(unsafe.Pointer(&e.orders[p.levels[key&(pageSize-1)].tail]))
		}
		return
	}
	slot := e.ids.find(e.orders, op.Orig)
	if slot == 0 {
		return
	}
	o := &e.orders[slot]
	b := &e.books[o.book]
	prefetch.Line(unsafe.Pointer(&e.orders[o.prev]))
	prefetch.Line(unsafe.Pointer(&e.orders[o.next]))
	prefetch.Line(unsafe.Pointer(e.level(b, o.place, o.key)))
	prefetch.Line(unsafe.Pointer(e.volume(b, o.place, o.key)))
}
