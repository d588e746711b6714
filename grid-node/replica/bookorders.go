package replica

import (
	"fmt"
	"math"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A book is read order by order in pages, each as it is after the last entry that is stored. So that a reader can put pages
// of several entries together, and goes on from there, what changes is kept from the first question on, while there are
// questions. That is no part of the state: each copy has it of the books that it is asked for. Entries do the same on every
// copy, and so their changes have the same places.

// bookTape has the last changes of a book.
type bookTape struct {
	book  uint16
	from  wire.OrdersAt // all behind it are in list
	list  []wire.ShownChange
	asked int64 // Mono
}

const (
	mostTapes    = 32               // books of a partition that are read order by order
	mostTaped    = 4096             // changes of each
	tapePatience = 10 * time.Second // without a question
)

// readOrders answers a ReadOrders, or has its answer wait.
func (r *Replica) readOrders(conn uint64, frame []byte) error {
	var m wire.ReadOrders
	if err := wire.DecodeReadOrders(frame, &m); err != nil {
		return err
	}
	refuse := func(code wire.Code, behind uint64, text string) {
		r.reject(conn, wire.TypeReadOrders, m.ReqID, 0, code, 0, behind, text)
	}
	if r.execs == nil {
		refuse(wire.CodeUnsupported, 0, "the partition stores orders and does not match")
		return nil
	}
	if r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadOrders, m.ReqID, 0)
		return nil
	}
	last, hash := r.store.Last()
	book, known := r.live.Books.Book(string(m.Symbol))
	switch {
	case !known:
		refuse(wire.CodeUnknownInstrument, 0, fmt.Sprintf("symbol %q has no book in %s", m.Symbol, r.part))
		return nil
	case len(r.views) == mostViews:
		refuse(wire.CodeOverloaded, 0, tooManyViews)
		return nil
	case m.Since.Seq > last:
		refuse(wire.CodeOverloaded, m.Since.Seq-last, fmt.Sprintf("entry %d is not stored here yet; retry", m.Since.Seq))
		return nil
	}
	t := r.tapeOf(book, last)
	if t == nil {
		refuse(wire.CodeCapacity, mostTapes, fmt.Sprintf("%d books of %s are read order by order, allowed: no more at a time; retry when others are not", mostTapes, r.part))
		return nil
	}
	a := wire.OrdersShown{ReqID: m.ReqID, Seq: last, Hash: hash, Book: book}
	r.shown(&a, t, &m)
	r.view(bookView{t: wire.TypeReadOrders, conn: conn, reqID: m.ReqID, need: last, since: r.now.Mono, frame: wire.AppendOrdersShown(nil, r.part, &a)}, mutant(mutOrdersUncommitted))
	return nil
}

// tapeOf returns the tape of a book, which begins now if there is none; nil: there are too many.
func (r *Replica) tapeOf(book uint16, last uint64) *bookTape {
	for i := range r.tapes {
		if t := &r.tapes[i]; t.book == book {
			t.asked = r.now.Mono
			return t
		}
	}
	if len(r.tapes) == mostTapes {
		return nil
	}
	r.live.Books.Watch(book, true)
	r.tapes = append(r.tapes, bookTape{book: book, from: wire.OrdersAt{Seq: last, Index: math.MaxUint32}, asked: r.now.Mono})
	return &r.tapes[len(r.tapes)-1]
}

// shown fills in the changes and the orders of an answer.
func (r *Replica) shown(a *wire.OrdersShown, t *bookTape, m *wire.ReadOrders) {
	in := &r.live.Books.Instruments()[a.Book]
	a.PriceDigits, a.QtyDigits = in.PriceDigits, in.QtyDigits
	a.Through = wire.OrdersAt{Seq: a.Seq, Index: math.MaxUint32}
	since, from := m.Since, m.From
	if since.Seq == 0 || since.Before(t.from) && !mutant(mutOrdersSkip) {
		a.Flags |= wire.OrdersAnew
		since, from = a.Through, wire.OrdersPlace{Side: uint8(match.Buy)}
	}
	for i := t.behind(since); i < len(t.list); i++ {
		if a.NChanges == m.Most {
			a.Flags |= wire.OrdersMore
			a.Through, a.To = t.list[i-1].At, from
			return
		}
		a.Rows = wire.AppendShownChange(a.Rows, &t.list[i])
		a.NChanges++
	}
	place := match.Place{Side: match.Side(from.Side), Price: from.Price, Prio: from.Prio, Order: from.Order}
	var space [wire.MostShown]match.Shown
	list, to, ok := r.live.Books.Orders(a.Book, place, int(m.Most), space[:0])
	if !ok { // the place cannot be found any more: from the beginning, with the next question
		to = match.Place{Side: match.Buy}
		*a = wire.OrdersShown{ReqID: a.ReqID, Seq: a.Seq, Hash: a.Hash, Book: a.Book, PriceDigits: a.PriceDigits, QtyDigits: a.QtyDigits, Through: a.Through, Flags: wire.OrdersAnew}
	}
	for i := range list {
		o := &list[i]
		if o.Side == match.Buy {
			a.NBids++
		}
		a.Rows = wire.AppendShownOrder(a.Rows, &wire.ShownOrder{ID: o.Order, Prio: o.Prio, Price: o.Price, Qty: o.Qty})
	}
	a.NOrders = uint16(len(list))
	a.To = wire.OrdersPlace{Side: uint8(to.Side), Price: to.Price, Prio: to.Prio, Order: to.Order}
	if to == match.End {
		a.Flags |= wire.OrdersComplete
	}
}

// behind returns where the changes behind a place begin.
func (t *bookTape) behind(at wire.OrdersAt) int {
	lo, hi := 0, len(t.list)
	for lo < hi {
		if mid := (lo + hi) / 2; at.Before(t.list[mid].At) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// tape keeps what an entry changed in the books that are read order by order.
func (r *Replica) tape(seq uint64) {
	changes := r.live.Books.Shown()
	for i := range r.tapes {
		t := &r.tapes[i]
		n := uint32(0)
		for j := range changes {
			if c := &changes[j]; c.Book == t.book {
				n++
				t.add(wire.ShownChange{At: wire.OrdersAt{Seq: seq, Index: n}, Kind: shownKind(c), Side: uint8(c.Side), ID: c.Order, Prio: c.Prio, Price: c.Price, Qty: c.Qty, Traded: c.Traded})
			}
		}
	}
}

// add keeps a change, and forgets the older half if there are too many.
func (t *bookTape) add(c wire.ShownChange) {
	if len(t.list) == mostTaped {
		t.from = t.list[mostTaped/2-1].At
		t.list = t.list[:copy(t.list, t.list[mostTaped/2:])]
	}
	t.list = append(t.list, c)
}

func shownKind(c *match.Change) uint8 {
	switch {
	case c.Traded > 0:
		return wire.ShownTraded
	case c.Kind == match.OrderAdded:
		return wire.ShownAdded
	case c.Kind == match.OrderChanged:
		return wire.ShownChanged
	}
	return wire.ShownRemoved
}

// endTapes forgets the changes of books that are not asked for any more.
func (r *Replica) endTapes() {
	for i := 0; i < len(r.tapes); {
		if r.now.Mono-r.tapes[i].asked <= int64(tapePatience) {
			i++
			continue
		}
		r.live.Books.Watch(r.tapes[i].book, false)
		last := len(r.tapes) - 1
		r.tapes[i], r.tapes[last] = r.tapes[last], bookTape{}
		r.tapes = r.tapes[:last]
	}
}
