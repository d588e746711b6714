package match

// cross trades a taker with the other side of its book, best price first, then oldest
// first, up to its limit. It returns why the rest must not stay, None if it may.
func (e *Engine) cross(b *book, t *taker) Reason {
	place := t.side.other()
	l := &b.ladders[place]
	why := None
	for t.left > 0 && why == None {
		key := l.best
		if key > t.limit {
			break
		}
		before := e.work
		why = e.crossLevel(b, t, place, key)
		if e.work != before {
			e.levelData(t.book, place, key)
		}
	}
	return why
}

// crossLevel trades with the queue of one price.
func (e *Engine) crossLevel(b *book, t *taker, place uint8, key uint32) Reason {
	lev := e.level(b, place, key)
	ticks := b.ticks(place, key)
	price := b.price(ticks)
	for t.left > 0 && lev.head != 0 {
		if e.work >= e.cfg.Work {
			return WorkLimit
		}
		slot := lev.head
		m := &e.orders[slot]
		switch {
		case len(e.sweeps) > 0 && e.doom(m) != nil:
			e.sweepOut(slot, e.doom(m))
		case m.group != 0 && m.group == t.group && !mutant(mutSelfTrade):
			if t.smp != CancelOldest {
				if t.smp == CancelBoth {
					e.work++
					e.pull(slot, SelfMatch, 0)
				}
				return SelfMatch
			}
			e.pull(slot, SelfMatch, 0)
		default:
			e.fill(b, t, slot, price)
			b.tradedAt(ticks)
		}
		e.work++
	}
	return None
}

// pull takes an order out of the book, for a reason. The caller writes the aggregate.
func (e *Engine) pull(slot uint32, why Reason, by uint64) {
	o := &e.orders[slot]
	e.unlink(slot)
	e.cancelled(o, why, by)
	e.orderData(OrderRemoved, o)
	e.release(slot)
}

// fill trades with the order at the head of its queue.
func (e *Engine) fill(b *book, t *taker, slot uint32, price int64) {
	m := &e.orders[slot]
	lots := min(t.left, m.shown)
	t.left -= lots
	t.cum += lots
	e.take(slot, lots)
	r := e.record(Filled, t.book)
	r.Order, r.Other, r.Side, r.Owner = t.id, m.id, t.side, t.owner
	r.Price, r.Qty, r.Leaves, r.Cum = price, int64(lots)*b.Lot, int64(t.left)*b.Lot, int64(t.cum)*b.Lot
	e.filled(b, m, t.id, price, lots, Passive)
	e.settle(slot, lots)
}

// filled writes the fill of an order in the book.
func (e *Engine) filled(b *book, m *order, with uint64, price int64, lots uint32, flags uint8) {
	r := e.record(Filled, m.book)
	r.Order, r.Other, r.Side, r.Owner, r.Flags = m.id, with, m.side(), m.owner, flags
	r.Price, r.Qty, r.Leaves, r.Cum = price, int64(lots)*b.Lot, int64(m.leaves)*b.Lot, int64(m.cum)*b.Lot
}

// settle does what follows from a fill for an order in the book: it leaves, it shows its
// next part, or it stays where it is.
func (e *Engine) settle(slot, lots uint32) {
	m := &e.orders[slot]
	switch {
	case m.leaves == 0:
		e.unlink(slot)
		e.orderTraded(OrderRemoved, m, lots)
		e.release(slot)
	case m.shown == 0:
		e.orderTraded(OrderRemoved, m, lots)
		e.refresh(slot)
		b := &e.books[m.book]
		r := e.record(Restated, m.book)
		r.Order, r.Side, r.Owner, r.Qty, r.Leaves, r.Cum = m.id, m.side(), m.owner, int64(m.shown)*b.Lot, int64(m.leaves)*b.Lot, int64(m.cum)*b.Lot
		e.orderData(OrderAdded, m)
	default:
		e.orderTraded(OrderChanged, m, lots)
	}
}

// fillable returns None if a FOK can be filled in full: by orders that it may trade with,
// without visiting more than an operation may.
func (e *Engine) fillable(b *book, t *taker) Reason {
	if mutant(mutFOKPartial) {
		return None
	}
	place := t.side.other()
	l := &b.ladders[place]
	need, visits := uint64(t.left), uint64(e.work)
	for key := l.best; key <= t.limit && key != none; key = l.after(key) {
		for slot := e.level(b, place, key).head; slot != 0; slot = e.orders[slot].next {
			m := &e.orders[slot]
			usable := true
			switch {
			case len(e.sweeps) > 0 && e.doom(m) != nil:
				usable = false
			case m.group != 0 && m.group == t.group:
				if t.smp != CancelOldest {
					return Unfilled
				}
				usable = false
			}
			visits++
			if usable && m.display != 0 {
				visits += (uint64(m.leaves-m.shown) + uint64(m.display) - 1) / uint64(m.display)
			}
			if visits > uint64(e.cfg.Work) {
				return WorkLimit
			}
			if usable {
				if need <= uint64(m.leaves) {
					return None
				}
				need -= uint64(m.leaves)
			}
		}
	}
	return Unfilled
}

// tradedAt records the price of a trade, for stops.
func (b *book) tradedAt(ticks uint32) {
	b.last, b.traded = ticks, true
	if !b.triggers {
		b.lo, b.hi, b.triggers = ticks, ticks, true
		return
	}
	b.lo, b.hi = min(b.lo, ticks), max(b.hi, ticks)
}
