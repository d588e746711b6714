package match

// runStops enters the stops that trades have triggered, until there are none or the
// operation has done its work. Then the book is pending.
func (e *Engine) runStops(n uint16, b *book) {
	for b.triggers && b.state == Open {
		if e.work >= e.cfg.Work {
			e.setBusy(n, true)
			return
		}
		slot := e.triggered(b)
		if slot == 0 {
			b.triggers = false
			break
		}
		e.activate(b, slot)
	}
	e.setBusy(n, b.state == Uncrossing)
}

// triggered returns the next stop that the trades have reached: buys from the lowest
// trigger up, then sells from the highest down, each the oldest first.
func (e *Engine) triggered(b *book) uint32 {
	if key := b.ladders[placeStopBuy].best; key != none && key <= b.hi {
		return e.level(b, placeStopBuy, key).head
	}
	if key := b.ladders[placeStopSell].best; key != none && b.mirror(key) >= b.lo {
		return e.level(b, placeStopSell, key).head
	}
	return 0
}

// activate turns a stop into a market or limit order.
func (e *Engine) activate(b *book, slot uint32) {
	e.work++
	m := &e.orders[slot]
	if s := e.doom(m); s != nil {
		e.sweepOut(slot, s)
		return
	}
	e.unlink(slot)
	o := *m
	r := e.record(Triggered, o.book)
	r.Order, r.Side, r.Owner, r.Price = o.id, o.side(), o.owner, b.price(b.ticks(o.place, o.key))
	r.Leaves, r.Cum = int64(o.leaves)*b.Lot, int64(o.cum)*b.Lot
	o.place -= placeStopBuy
	o.key = b.ticks(o.place, o.limit)
	o.prio = 0
	tif := Day
	if o.flags&flagIOC != 0 {
		tif = IOC
	}
	o.flags &^= flagIOC
	before := e.work
	e.work = 0 // an order's own bound
	e.trade(b, &o, tif, slot)
	e.work += before
}

// setBusy marks whether a book has pending work.
func (e *Engine) setBusy(n uint16, busy bool) {
	w, bit := &e.busy[n>>6], uint64(1)<<(n&63)
	switch was := *w&bit != 0; {
	case busy && !was:
		*w |= bit
		e.nBusy++
	case !busy && was:
		*w &^= bit
		e.nBusy--
	}
}
