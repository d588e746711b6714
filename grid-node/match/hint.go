package match

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// An operation waits for memory several times: for the place of its id, the order, the
// queue, the neighbour in it. A caller that has several operations loads ahead: HintFar some
// operations before an operation is applied, HintNear a few before, HintNext with what that
// found. They change nothing, and what they miss only costs time. A node uses HintFar.

// HintFar starts to load the place of the id and the book.
func (e *Engine) HintFar(op *Op) {
	id := op.Orig
	if op.Kind == Enter {
		id = op.ID
	}
	b := unsafe.Pointer(&e.books[min(int(op.Book), len(e.books)-1)])
	prefetch.Four(e.ids.home(id), b, unsafe.Add(b, 64), unsafe.Add(b, 128))
}

// HintPlace starts to load a place of a table of the caller's.
func HintPlace(table []uint64, at uint32) { prefetch.Line(unsafe.Pointer(&table[at])) }

// Hint is what HintNear found, for HintNext.
type Hint struct {
	lev    *level // of a new limit order: the queue that it comes to first
	trades bool   // with that queue; else it rests there
	slot   uint32 // of the order that is meant, if the operation is none of a new one
}

// HintNear starts to load the order that is meant, or the queue of a new one.
func (e *Engine) HintNear(op *Op) (h Hint) {
	if op.Kind == Enter {
		if h.lev, h.trades = e.hintLevel(op); h.lev != nil {
			prefetch.Line(unsafe.Pointer(h.lev))
		}
		return h
	}
	hash := e.ids.hash(op.Orig)
	for i := hash & e.ids.mask; e.ids.table[i] != 0; i = (i + 1) & e.ids.mask {
		if x := e.ids.table[i]; uint32(x>>32) == hash {
			h.slot = uint32(x)
			prefetch.Line(unsafe.Pointer(&e.orders[h.slot]))
			break
		}
	}
	return h
}

// hintLevel returns the queue that a new limit order comes to first: that which it trades with, or else that in which it
// rests. It is nil for none.
func (e *Engine) hintLevel(op *Op) (lev *level, trades bool) {
	if int(op.Book) >= len(e.books) || !op.Side.known() || op.Type != Limit {
		return nil, false
	}
	b := &e.books[op.Book]
	if b.span == 0 {
		return nil, false
	}
	at, why := b.offset(op.Price)
	if why != None {
		return nil, false
	}
	key := b.ticks(op.Side.place(), at)
	if best := b.ladders[op.Side.other()].best; best <= b.mirror(key) {
		return e.level(b, op.Side.other(), best), true
	}
	return e.level(b, op.Side.place(), key), false
}

// HintNext starts to load the neighbours in the queue, for an operation that is next. Operations
// in between may have changed what was found: then something else is loaded.
func (e *Engine) HintNext(h *Hint) {
	switch {
	case h.slot != 0:
		o := &e.orders[h.slot]
		b := &e.books[o.book]
		prefetch.Four(unsafe.Pointer(&e.orders[o.prev]), unsafe.Pointer(&e.orders[o.next]), unsafe.Pointer(e.level(b, o.place, o.key)), unsafe.Pointer(b))
	case h.lev == nil:
	case h.trades:
		prefetch.Line(unsafe.Pointer(&e.orders[h.lev.head]))
	default:
		prefetch.Line(unsafe.Pointer(&e.orders[h.lev.tail]))
	}
}
