package match

// Tap gets what changes in the orders that some books show, beside the output: it is no part of what the engine does, and
// copies may have different ones.
type Tap struct {
	Changes []Change // the caller takes them
	books   []uint64 // those that are watched, a bit each
	watched int
}

// Change is one of what a book shows of an order. An order that loses its priority is removed and added again.
type Change struct {
	Order      uint64 // its id
	Prio       uint64 // rises along the queue of a price
	Price, Qty int64  // its price, and what it shows from here on, 0 if it is removed
	Traded     int64  // of what it showed, if it is a trade's doing
	Book       uint16
	Kind       Kind // OrderAdded, OrderChanged, OrderRemoved
	Side       Side
}

// Tap gives the engine a tap, nil for none.
func (e *Engine) Tap(t *Tap) { e.tap = t }

// Watch adds a book to those that the tap is of, or takes it out.
func (t *Tap) Watch(book uint16, on bool) {
	for int(book>>6) >= len(t.books) {
		t.books = append(t.books, 0)
	}
	word, bit := &t.books[book>>6], uint64(1)<<(book&63)
	if on != (*word&bit != 0) {
		*word ^= bit
		t.watched += 2*int(b2u(on)) - 1
	}
}

// None reports whether it is of no book.
func (t *Tap) None() bool { return t.watched == 0 }

func (t *Tap) watches(book uint16) bool {
	return int(book>>6) < len(t.books) && t.books[book>>6]>>(book&63)&1 != 0
}

func (t *Tap) add(e *Engine, k Kind, o *order, lots uint32) {
	b := &e.books[o.book]
	c := Change{Order: o.id, Prio: o.prio, Price: b.price(b.ticks(o.place, o.key)), Traded: int64(lots) * b.Lot, Book: o.book, Kind: k, Side: o.side()}
	if k != OrderRemoved {
		c.Qty = int64(o.shown) * b.Lot
	}
	t.Changes = append(t.Changes, c)
}

// Shown is what a book shows of an order.
type Shown struct {
	Order, Prio uint64
	Price, Qty  int64
	Side        Side
}

// Place is one in a book, behind an order that was there.
type Place struct {
	Side        Side
	Price       int64
	Prio, Order uint64 // 0: before all orders of the side
}

// End is behind all orders.
var End = Place{Side: Sell + 1}

// mostPassed orders of a price are passed over to find a place whose order has left: some 100 µs if each is far from the
// next in memory.
const mostPassed = 1 << 11

// Orders appends what a book shows behind a place, order by order: bids before asks, the best price first, by priority;
// at most so many. It returns the place behind them. It visits each of them once, unless the order of the place has left:
// then also those before it at its price, and false if these are too many to look at.
func (e *Engine) Orders(n uint16, from Place, most int, out []Shown) ([]Shown, Place, bool) {
	if int(n) >= len(e.books) || e.books[n].span == 0 || from.Side < Buy || from.Side > Sell {
		return out, End, true
	}
	b := &e.books[n]
	for ; from.Side <= Sell; from = (Place{Side: from.Side + 1}) {
		place := uint8(from.Side - Buy)
		key, slot, ok := e.behind(b, place, from)
		if !ok {
			return out, from, false
		}
		for key != none {
			for ; slot != 0; slot = e.orders[slot].next {
				if most == 0 {
					return out, from, true
				}
				most--
				o := &e.orders[slot]
				s := Shown{Order: o.id, Prio: o.prio, Price: b.price(b.ticks(place, key)), Qty: int64(o.shown) * b.Lot, Side: from.Side}
				out = append(out, s)
				from = Place{Side: from.Side, Price: s.Price, Prio: s.Prio, Order: s.Order}
			}
			if key = b.ladders[place].after(key); key != none {
				slot = e.level(b, place, key).head
			}
		}
	}
	return out, End, true
}

// behind finds the first order of a side behind a place: its key, none if there is none, and its slot, which is 0 if it is the
// first of the next key.
func (e *Engine) behind(b *book, place uint8, from Place) (key, slot uint32, ok bool) {
	l := &b.ladders[place]
	if from.Prio == 0 {
		if key = l.best; key != none {
			slot = e.level(b, place, key).head
		}
		return key, slot, true
	}
	if from.Price < b.Low || from.Price > b.High {
		return none, 0, true
	}
	key = b.ticks(place, uint32((from.Price-b.Low)/b.Tick)) // ticks and keys turn into each other in the same way
	at := l.next(key)
	if at != key {
		if at != none {
			slot = e.level(b, place, at).head
		}
		return at, slot, true
	}
	if s := e.ids.find(e.orders, from.Order); s != 0 {
		if o := &e.orders[s]; &e.books[o.book] == b && o.place == place && o.key == key && o.prio == from.Prio {
			return key, o.next, true
		}
	}
	passed := 0
	for slot = e.level(b, place, key).head; slot != 0 && e.orders[slot].prio <= from.Prio; slot = e.orders[slot].next {
		if passed++; passed > mostPassed {
			return key, 0, false
		}
	}
	return key, slot, true
}
