package match

// trade runs an order that is not in the book through it.
func (x *oracle) trade(b *oBook, o *oOrder, tif TIF) {
	why := None
	if b.state == Open {
		if tif == FOK {
			why = x.fillable(b, o)
		}
		if why == None {
			why = x.cross(b, o)
		}
		if o.leaves == 0 {
			return
		}
		if why == None && (tif != Day || o.market) {
			why = Unfilled
		}
	}
	if why == None && !x.hasRoom(o, false) {
		why = Full
	}
	if why != None {
		x.cancelled(o, why, 0)
		return
	}
	x.rest(o)
}

func (x *oracle) rest(o *oOrder) {
	if o.prio == 0 {
		x.prio++
		o.prio = x.prio
	}
	o.shown = o.leaves
	if o.display > 0 && o.display < o.leaves {
		o.shown = o.display
	}
	x.orders[o.id] = o
	x.l3(OrderAdded, o)
	x.l2(o.book, o.where, o.side, o.price)
}

func (x *oracle) cancelled(o *oOrder, why Reason, by uint64) {
	x.emit(Record{Kind: Cancelled, Order: o.id, Other: by, Side: o.side, Leaves: o.leaves, Cum: o.cum, Owner: o.owner, Book: o.book, Reason: why})
}

func (x *oracle) pull(o *oOrder, why Reason, by uint64) {
	delete(x.orders, o.id)
	x.cancelled(o, why, by)
	x.l3(OrderRemoved, o)
}

func (x *oracle) limitOf(b *oBook, o *oOrder) int64 {
	switch {
	case !o.market:
		return o.price
	case o.side == Buy:
		return b.bandHi
	}
	return b.bandLo
}

func (x *oracle) cross(b *oBook, o *oOrder) Reason {
	for o.leaves > 0 {
		l := x.side(b.n, opposite(o.side))
		if len(l) == 0 || !reaches(o.side, x.limitOf(b, o), l[0].price) {
			return None
		}
		price, changed, why := l[0].price, false, None
		for o.leaves > 0 && why == None {
			l = x.side(b.n, opposite(o.side))
			if len(l) == 0 || l[0].price != price {
				break
			}
			if x.work >= x.cfg.Work {
				why = WorkLimit
				break
			}
			m := l[0]
			if s := x.doom(m); s != nil {
				x.sweepOut(m, s)
			} else if m.group != 0 && m.group == o.group {
				if o.smp == CancelNewest {
					why = SelfMatch
					break
				}
				x.pull(m, SelfMatch, 0)
				if o.smp == CancelBoth {
					why = SelfMatch
				}
			} else {
				x.fill(b, o, m, price)
			}
			changed = true
			x.work++
		}
		if changed {
			x.l2(b.n, 0, opposite(o.side), price)
		}
		if why != None {
			return why
		}
	}
	return None
}

func (x *oracle) fill(b *oBook, o, m *oOrder, price int64) {
	q := min(o.leaves, m.shown)
	o.leaves, o.cum = o.leaves-q, o.cum+q
	m.leaves, m.cum, m.shown = m.leaves-q, m.cum+q, m.shown-q
	x.fillRecord(o, m.id, price, q, 0)
	x.fillRecord(m, o.id, price, q, Passive)
	switch {
	case m.leaves == 0:
		delete(x.orders, m.id)
		x.l3(OrderRemoved, m)
	case m.shown == 0:
		x.l3(OrderRemoved, m)
		m.shown = min(m.display, m.leaves)
		x.prio++
		m.prio = x.prio
		x.emit(Record{Kind: Restated, Order: m.id, Side: m.side, Owner: m.owner, Book: m.book, Qty: m.shown, Leaves: m.leaves, Cum: m.cum})
		x.l3(OrderAdded, m)
	default:
		x.l3(OrderChanged, m)
	}
	b.traded(price)
}

func (x *oracle) fillRecord(o *oOrder, with uint64, price, q int64, flags uint8) {
	x.emit(Record{Kind: Filled, Order: o.id, Other: with, Side: o.side, Owner: o.owner, Book: o.book, Price: price, Qty: q, Leaves: o.leaves, Cum: o.cum, Flags: flags})
}

func (b *oBook) traded(price int64) {
	b.last = &price
	if b.lo == nil || price < *b.lo {
		b.lo = &price
	}
	if b.hi == nil || price > *b.hi {
		b.hi = &price
	}
}

func (x *oracle) fillable(b *oBook, o *oOrder) Reason {
	need, visits := o.leaves, int64(x.work)
	for _, m := range x.side(b.n, opposite(o.side)) {
		if !reaches(o.side, x.limitOf(b, o), m.price) {
			break
		}
		visits++
		own := m.group != 0 && m.group == o.group
		if x.doom(m) != nil {
			own = true
		} else if own && o.smp != CancelOldest {
			return Unfilled
		}
		if !own && m.display > 0 {
			for hidden := m.leaves - m.shown; hidden > 0; hidden -= m.display {
				visits++
			}
		}
		if visits > int64(x.cfg.Work) {
			return WorkLimit
		}
		if own {
			continue
		}
		if need -= m.leaves; need <= 0 {
			return None
		}
	}
	return Unfilled
}

// --- market data

func (x *oracle) l3(k Kind, o *oOrder) {
	if x.cfg.Data&L3 == 0 || o.where != 0 {
		return
	}
	r := Record{Kind: k, Order: o.id, Side: o.side, Price: o.price, Book: o.book}
	if k != OrderRemoved {
		r.Qty = o.shown
	}
	x.emit(r)
}

func (x *oracle) aggregate(n uint16, s Side, price int64) (shown int64, count uint32) {
	for _, o := range x.orders {
		if o.book == n && o.where == 0 && o.side == s && o.price == price {
			shown += o.shown
			count++
		}
	}
	return shown, count
}

func (x *oracle) l2(n uint16, where int, s Side, price int64) {
	if where != 0 {
		return
	}
	if x.dirty != x.books[n] {
		x.publish()
		x.dirty = x.books[n]
	}
	if x.cfg.Data&L2 == 0 {
		return
	}
	r := Record{Kind: LevelChanged, Side: s, Price: price, Book: n}
	r.Qty, r.Count = x.aggregate(n, s, price)
	x.emit(r)
}

func (x *oracle) publish() {
	b := x.dirty
	x.dirty = nil
	if b == nil || x.cfg.Data&L1 == 0 {
		return
	}
	for s := Buy; s <= Sell; s++ {
		r := Record{Kind: BestChanged, Side: s, Book: b.n}
		if l := x.side(b.n, s); len(l) > 0 {
			r.Price = l[0].price
			r.Qty, r.Count = x.aggregate(b.n, s, r.Price)
		}
		if old := b.best[s-1]; old.Price != r.Price || old.Qty != r.Qty || old.Count != r.Count {
			b.best[s-1] = r
			x.emit(r)
		}
	}
}
