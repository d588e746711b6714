// Package shown keeps a book order by order, of answers to ReadOrders: pages of orders, each as they are after another
// entry, and what changed between. It does no I/O.
package shown

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Sides of orders, with the values of FIX tag 54.
const (
	Buy  uint8 = 1
	Sell uint8 = 2
)

// Order is what a book shows of an order, in the units of the instrument.
type Order struct {
	ID         uint64 // the entry that it began with
	Prio       uint64 // rises along the queue of a price
	Price, Qty int64
	Side       uint8
}

// Place is a place in a book, bids before asks, the best price first. One without priority is before all of its side.
type Place struct {
	Side  uint8
	Price int64
	Prio  uint64
}

// Place returns where the order is.
func (o *Order) Place() Place { return Place{o.Side, o.Price, o.Prio} }

// End is behind all orders.
var End = Place{Side: Sell + 1}

// Compare is -1, 0 or 1 as p is before, at or behind q.
func (p Place) Compare(q Place) int {
	if p.Side != q.Side {
		return cmp.Compare(p.Side, q.Side)
	}
	if c := worse(p.Side, p.Price, q.Price); c != 0 && p.Prio != 0 && q.Prio != 0 {
		return c
	}
	return cmp.Compare(p.Prio, q.Prio)
}

// worse is 1 if a is the worse price of a side.
func worse(side uint8, a, b int64) int {
	if side == Buy {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// Event is a change of a book.
type Event struct {
	At     wire.OrdersAt
	Kind   uint8 // wire.Shown…
	Order  Order // as it is after it; Qty 0: it is gone
	Traded int64 // by this much it shows less, of ShownTraded
}

// Place returns where the order is, or was.
func (e *Event) Place() Place { return e.Order.Place() }

// level is the queue of a price.
type level struct {
	price  int64
	orders []Order
}

// Book is what a book shows. The zero Book has to be read.
type Book struct {
	Through     wire.OrdersAt // it is as after this
	Complete    bool          // all orders are there
	PriceDigits uint8
	QtyDigits   uint8
	sides       [2][]level
	at          map[uint64]Place
	read        Place            // orders up to it are there
	next        wire.OrdersPlace // to ask for
}

// Ask fills in what is to be asked for next.
func (b *Book) Ask(m *wire.ReadOrders) {
	m.Since, m.From = b.Through, b.next
	if b.next.Side == 0 {
		m.From.Side = Buy
	}
}

// BehindAll makes the book one that asks for changes behind a place, and for no orders.
func (b *Book) BehindAll(through wire.OrdersAt) {
	*b = Book{Through: through, next: wire.OrdersPlace{Side: wire.OrdersEnd}, read: End}
}

// Len returns how many orders are there.
func (b *Book) Len() int { return len(b.at) }

// Forget makes the book one that has to be read.
func (b *Book) Forget() { *b = Book{} }

// Apply brings the book up to an answer to what Ask asked for, and calls event, if it is not nil, with each change of an
// order that is there or was. It reports whether what was there before is not continued: then the book was read from its
// beginning. An error means that the answer does not fit: the book is to be forgotten.
func (b *Book) Apply(m *wire.OrdersShown, event func(*Event)) (anew bool, err error) {
	if anew = m.Flags&wire.OrdersAnew != 0; anew {
		b.Forget()
	}
	if b.at == nil {
		b.at = map[uint64]Place{}
	}
	if m.Through.Before(b.Through) {
		return anew, fmt.Errorf("orders of a book: an answer through %v, allowed: not before %v", m.Through, b.Through)
	}
	for i := range int(m.NChanges) {
		c := m.Change(i)
		if !b.Through.Before(c.At) || m.Through.Before(c.At) {
			return anew, fmt.Errorf("orders of a book: a change at %v, allowed: behind %v, through %v", c.At, b.Through, m.Through)
		}
		b.Through = c.At
		e := Event{At: c.At, Kind: c.Kind, Order: Order{c.ID, c.Prio, c.Price, c.Qty, c.Side}, Traded: c.Traded}
		if e.Place().Compare(b.read) > 0 {
			continue // a page to come has it
		}
		if err := b.change(&e); err != nil {
			return anew, err
		}
		if event != nil {
			event(&e)
		}
	}
	b.Through, b.PriceDigits, b.QtyDigits = m.Through, m.PriceDigits, m.QtyDigits
	for i := range int(m.NOrders) {
		o, side := m.Order(i)
		x := Order{o.ID, o.Prio, o.Price, o.Qty, side}
		if x.Place().Compare(b.read) <= 0 {
			return anew, fmt.Errorf("orders of a book: order %d at %v, allowed: behind %v", x.ID, x.Place(), b.read)
		}
		if err := b.add(x); err != nil {
			return anew, err
		}
		b.read = x.Place()
	}
	if m.Flags&wire.OrdersMore == 0 {
		b.next = m.To
		b.read = Place{m.To.Side, m.To.Price, m.To.Prio}
		b.Complete = m.Flags&wire.OrdersComplete != 0
	}
	return anew, nil
}

// change does what an event says.
func (b *Book) change(e *Event) error {
	switch e.Kind {
	case wire.ShownAdded:
		return b.add(e.Order)
	case wire.ShownRemoved:
		return b.remove(&e.Order)
	}
	o := b.find(&e.Order)
	switch {
	case o == nil:
		return fmt.Errorf("orders of a book: a change of order %d, which is not there", e.Order.ID)
	case e.Kind == wire.ShownTraded && o.Qty-e.Traded != e.Order.Qty:
		return fmt.Errorf("orders of a book: order %d shows %d, and %d after a trade of %d", e.Order.ID, o.Qty, e.Order.Qty, e.Traded)
	case e.Order.Qty == 0:
		return b.remove(&e.Order)
	}
	o.Qty = e.Order.Qty
	return nil
}

// levelOf finds the place of a price among the levels of a side.
func (b *Book) levelOf(side uint8, price int64) (int, bool) {
	return slices.BinarySearchFunc(b.sides[side-1], price, func(l level, price int64) int { return worse(side, l.price, price) })
}

func byPrio(o Order, prio uint64) int { return cmp.Compare(o.Prio, prio) }

// find returns an order that is at the place and has the id of o, nil if there is none.
func (b *Book) find(o *Order) *Order {
	if at, found := b.levelOf(o.Side, o.Price); found {
		l := &b.sides[o.Side-1][at]
		if i, found := slices.BinarySearchFunc(l.orders, o.Prio, byPrio); found && l.orders[i].ID == o.ID {
			return &l.orders[i]
		}
	}
	return nil
}

func (b *Book) add(o Order) error {
	if at, there := b.at[o.ID]; there {
		return fmt.Errorf("orders of a book: order %d at %v is there already, at %v", o.ID, o.Place(), at)
	}
	list := &b.sides[o.Side-1]
	at, found := b.levelOf(o.Side, o.Price)
	if !found {
		*list = slices.Insert(*list, at, level{price: o.Price})
	}
	l := &(*list)[at]
	i, found := slices.BinarySearchFunc(l.orders, o.Prio, byPrio)
	if found {
		return fmt.Errorf("orders of a book: order %d at %v, where order %d is", o.ID, o.Place(), l.orders[i].ID)
	}
	l.orders = slices.Insert(l.orders, i, o)
	b.at[o.ID] = o.Place()
	return nil
}

func (b *Book) remove(o *Order) error {
	if b.find(o) == nil {
		return fmt.Errorf("orders of a book: order %d at %v leaves, which is not there", o.ID, o.Place())
	}
	list := &b.sides[o.Side-1]
	at, _ := b.levelOf(o.Side, o.Price)
	l := &(*list)[at]
	i, _ := slices.BinarySearchFunc(l.orders, o.Prio, byPrio)
	if l.orders = slices.Delete(l.orders, i, i+1); len(l.orders) == 0 {
		*list = slices.Delete(*list, at, at+1)
	}
	delete(b.at, o.ID)
	return nil
}

// Page calls f with the orders behind a place, at most so many, and returns the place behind them, which is End behind the
// last. f must not change the book.
func (b *Book) Page(from Place, most int, f func(*Order)) Place {
	if from.Side == 0 {
		from.Side = Buy
	}
	for ; from.Side <= Sell; from = (Place{Side: from.Side + 1}) {
		list := b.sides[from.Side-1]
		at, found, i := 0, false, 0
		if from.Prio != 0 {
			at, found = b.levelOf(from.Side, from.Price)
		}
		if found {
			var there bool
			if i, there = slices.BinarySearchFunc(list[at].orders, from.Prio, byPrio); there {
				i++
			}
		}
		for ; at < len(list); at, i = at+1, 0 {
			for ; i < len(list[at].orders); i++ {
				if most--; most < 0 {
					return from
				}
				o := &list[at].orders[i]
				f(o)
				from = o.Place()
			}
		}
	}
	return End
}

// Orders returns all of a side, the best first.
func (b *Book) Orders(side uint8) (list []Order) {
	for _, l := range b.sides[side-1] {
		list = append(list, l.orders...)
	}
	return list
}

// All is the index of OrdersAt that is behind all changes of an entry.
const All = math.MaxUint32
