package match

import (
	"math"
	"math/bits"
)

// reject writes that the order of op did not enter.
func (e *Engine) reject(op *Op, why Reason) {
	r := e.record(Rejected, op.Book)
	r.Order, r.Side, r.Price, r.Qty, r.Owner, r.Reason = op.ID, op.Side, op.Price, op.Qty, op.Owner, why
}

// lookup returns a book, after a halt that is over has ended; nil for none.
func (e *Engine) lookup(n uint16) *book {
	if int(n) >= len(e.books) || e.books[n].span == 0 {
		return nil
	}
	b := &e.books[n]
	if b.state == Halted && b.until != 0 && e.now >= b.until {
		e.become(n, b, b.resume, 0, Expired)
	}
	return b
}

// taker is an order on its way through the other side of the book.
type taker struct {
	id           uint64
	left, cum    uint32
	limit        uint32 // the last key of the other side that it may trade with
	owner, group uint32
	book         uint16
	side         Side
	smp          SMP
}

// known reports whether there is such a side, in one comparison: which of the two it is cannot be predicted.
func (s Side) known() bool { return s-Buy <= Sell-Buy }

// other returns the place of the orders that a side trades with.
func (s Side) other() uint8 { return uint8(2 - s) }

// place returns where limit orders of a side rest.
func (s Side) place() uint8 { return uint8(s - 1) }

// enter is Enter.
func (e *Engine) enter(op *Op) {
	b := e.lookup(op.Book)
	var o order // field by field: as a whole it would be copied before what was just written is there
	o.id, o.owner, o.group, o.party, o.book = op.ID, op.Owner, op.Group, op.Party, op.Book
	if why := e.admit(op, b, &o); why != None {
		e.reject(op, why)
		return
	}
	r := e.record(Accepted, op.Book)
	r.Order, r.Side, r.Price, r.Qty, r.Leaves, r.Owner = op.ID, op.Side, op.Price, op.Qty, op.Qty, op.Owner
	if o.place >= placeStopBuy {
		e.rest(e.adopt(&o), &o)
		return
	}
	e.trade(b, &o, op.TIF, 0)
	e.runStops(op.Book, b)
}

// trade runs an order through the book. What is left rests, in slot if that is not 0, or
// is cancelled.
func (e *Engine) trade(b *book, o *order, tif TIF, slot uint32) {
	t := taker{id: o.id, left: o.leaves, cum: o.cum, owner: o.owner, group: o.group, book: o.book, side: o.side(), smp: SMP(o.flags & flagSMP)}
	t.limit = b.mirror(o.key)
	if o.flags&flagMkt != 0 {
		t.limit = b.bandKey(t.side)
	}
	why := None
	if b.state == Open {
		if tif == FOK {
			why = e.fillable(b, &t)
		}
		if why == None {
			why = e.cross(b, &t)
		}
	}
	o.leaves, o.cum = t.left, t.cum
	if t.left == 0 {
		e.leave(slot)
		return
	}
	if why == None && b.state == Open && (tif != Day || o.flags&flagMkt != 0) {
		why = Unfilled
	}
	if why == None && slot != 0 && !e.roomPage(b, o.place, o.key) {
		why = Full
	}
	if why != None {
		e.cancelled(o, why, 0)
		e.leave(slot)
		return
	}
	if slot == 0 {
		slot = e.adopt(o)
	}
	e.rest(slot, o)
}

// adopt gives a new order a slot.
func (e *Engine) adopt(o *order) uint32 {
	slot := e.alloc()
	e.ids.put(o.id, slot)
	e.entered = slot
	return slot
}

// leave frees the slot of an order that is in no queue.
func (e *Engine) leave(slot uint32) {
	if slot != 0 {
		e.release(slot)
	}
}

// rest puts an order into its queue.
func (e *Engine) rest(slot uint32, o *order) {
	o.shown = o.leaves
	if o.display != 0 {
		o.shown = min(o.display, o.leaves)
	}
	e.orders[slot].set(o)
	e.link(slot)
	e.orderData(OrderAdded, &e.orders[slot])
	e.levelData(o.book, o.place, o.key)
}

// cancelled writes that an order left with something unfilled.
func (e *Engine) cancelled(o *order, why Reason, by uint64) {
	b := &e.books[o.book]
	r := e.record(Cancelled, o.book)
	r.Order, r.Other, r.Side, r.Reason, r.Owner = o.id, by, o.side(), why, o.owner
	r.Leaves, r.Cum = int64(o.leaves)*b.Lot, int64(o.cum)*b.Lot
}

// admit checks a new order and completes o. It changes nothing else.
func (e *Engine) admit(op *Op, b *book, o *order) Reason {
	switch {
	case op.ID == 0:
		return BadID
	case e.ids.find(e.orders, op.ID) != 0:
		return DuplicateID
	case b == nil:
		return UnknownInstrument
	case !op.Side.known(), op.Type < Limit || op.Type > StopMarket, op.TIF > FOK, op.SMP > CancelBoth:
		return BadField
	}
	stop := op.Type >= StopLimit
	switch {
	case stop && (op.TIF == FOK || op.Post), op.Post && (op.Type != Limit || op.TIF != Day), !stop && op.Stop != 0,
		op.Display != 0 && (op.Type != Limit && op.Type != StopLimit || op.TIF != Day):
		return BadField
	case b.state != Open && b.state != Call, b.state == Call && (op.TIF != Day && !stop || op.Post):
		return NotInState
	}
	o.place = op.Side.place()
	o.flags = uint8(op.SMP)
	if o.flags == 0 {
		o.flags = uint8(CancelNewest)
	}
	if op.Post {
		o.flags |= flagPost
	}
	if op.TIF == IOC {
		o.flags |= flagIOC
	}
	if op.Type == Market || op.Type == StopMarket {
		o.flags |= flagMkt
	}
	if stop {
		o.place += placeStopBuy
	} else if op.Type == Market && b.state == Call {
		o.place += placeMarket
	}
	if why := b.terms(op, o); why != None {
		return why
	}
	switch {
	case (b.state == Call || stop || op.Type == Limit && op.TIF == Day) && !e.room(b, o.place, o.key):
		return Full
	case op.Post && b.crosses(o):
		return WouldCross
	case stop && b.reached(o):
		return TriggerPassed
	}
	return None
}

// terms checks price, stop price, quantity and display quantity, and sets them in o, whose
// place and flags are known. The limit of a limit order goes into limit and key.
func (b *book) terms(op *Op, o *order) Reason {
	lots, why := b.lots(op.Qty)
	if why != None {
		return why
	}
	if op.Display < 0 || op.Display > op.Qty || op.Display%b.Lot != 0 {
		return BadDisplay
	}
	o.leaves, o.display = lots, 0
	if op.Display != op.Qty {
		o.display = uint32(op.Display / b.Lot)
	}
	if o.flags&flagMkt != 0 {
		if op.Price != 0 {
			return OutsideBand
		}
	} else {
		if o.limit, why = b.offset(op.Price); why != None {
			return why
		}
		hi, lo := bits.Mul64(uint64(max(op.Price, -op.Price)), uint64(op.Qty))
		if hi != 0 || lo > math.MaxInt64 {
			return Overflow
		}
	}
	at := o.limit
	if o.place == placeStopBuy || o.place == placeStopSell {
		if at, why = b.offset(op.Stop); why != None {
			return why
		}
	}
	if o.place < placeMarket {
		o.key = b.ticks(o.place, at)
	}
	return None
}

// lots converts a quantity.
func (b *book) lots(qty int64) (uint32, Reason) {
	n := qty
	if b.Lot != 1 {
		n = qty / b.Lot
	}
	switch {
	case qty <= 0 || n*b.Lot != qty:
		return 0, BadQty
	case n > MaxLots:
		return 0, QtyTooLarge
	}
	return uint32(n), None
}

// band returns the lowest and the highest price that an order may have.
func (b *book) band() (lo, hi int64) {
	if mutant(mutBandStands) {
		return b.Low, b.High
	}
	return b.bandLo, b.bandHi
}

// offset converts a price to ticks above the lowest.
func (b *book) offset(price int64) (uint32, Reason) {
	if lo, hi := b.band(); price < lo || price > hi {
		return 0, OutsideBand
	}
	d := price - b.Low
	n := d
	if b.Tick != 1 {
		n = d / b.Tick
	}
	if n*b.Tick != d {
		return 0, OffTick
	}
	return uint32(n), None
}

// crosses reports whether a limit order would trade on entry.
func (b *book) crosses(o *order) bool { return b.ladders[o.side().other()].best <= b.mirror(o.key) }

// reached reports whether the last trade has triggered a stop.
func (b *book) reached(o *order) bool {
	if !b.traded {
		return false
	}
	at := b.ticks(o.place, o.key)
	return o.place == placeStopBuy && b.last >= at || o.place == placeStopSell && b.last <= at
}

// bandKey returns the last key of the other side that a market order may trade with: the
// end of the price band.
func (b *book) bandKey(s Side) uint32 {
	if s == Buy {
		return uint32((b.bandHi - b.Low) / b.Tick)
	}
	return b.mirror(uint32((b.bandLo - b.Low) / b.Tick))
}
