package naive

import "github.com/ordergrid/ordergrid/grid-node/match"

// trade runs an order that is not in the book through it.
func (x *Matcher) trade(b *oBook, o *oOrder, tif match.TIF) {
	why := match.None
	if b.state == match.Open {
		if tif == match.FOK {
			why = x.fillable(b, o)
		}
		if why == match.None {
			why = x.cross(b, o)
		}
		if o.leaves == 0 {
			return
		}
		if why == match.None && (tif != match.Day || o.market) {
			why = match.Unfilled
		}
	}
	if why == match.None && !x.hasRoom(o, false) {
		why = match.Full
	}
	if why != match.None {
		x.cancelled(o, why, 0)
		return
	}
	x.rest(o)
}

func (x *Matcher) rest(o *oOrder) {
	if o.prio == 0 {
		x.prio++
		o.prio = x.prio
	}
	o.shown = o.leaves
	if o.display > 0 && o.display < o.leaves {
		o.shown = o.display
	}
	x.add(o)
	x.l3(match.OrderAdded, o)
	x.l2(o.book, o.where, o.side, o.price)
}

func (x *Matcher) cancelled(o *oOrder, why match.Reason, by uint64) {
	x.emit(match.Record{Kind: match.Cancelled, Order: o.id, Other: by, Side: o.side, Leaves: o.leaves, Cum: o.cum, Owner: o.owner, Book: o.book, Reason: why})
}

func (x *Matcher) pull(o *oOrder, why match.Reason, by uint64) {
	x.drop(o)
	x.cancelled(o, why, by)
	x.l3(match.OrderRemoved, o)
}

func (x *Matcher) limitOf(b *oBook, o *oOrder) int64 {
	switch {
	case !o.market:
		return o.price
	case o.side == match.Buy:
		return b.bandHi
	}
	return b.bandLo
}

func (x *Matcher) cross(b *oBook, o *oOrder) match.Reason {
	for o.leaves > 0 {
		l := x.side(b.n, opposite(o.side))
		if len(l) == 0 || !reaches(o.side, x.limitOf(b, o), l[0].price) {
			return match.None
		}
		price, changed, why := l[0].price, false, match.None
		for o.leaves > 0 && why == match.None {
			l = x.side(b.n, opposite(o.side))
			if len(l) == 0 || l[0].price != price {
				break
			}
			if x.work >= x.cfg.Work {
				why = match.WorkLimit
				break
			}
			m := l[0]
			if s := x.doom(m); s != nil {
				x.sweepOut(m, s)
			} else if m.group != 0 && m.group == o.group {
				if o.smp == match.CancelNewest {
					why = match.SelfMatch
					break
				}
				x.pull(m, match.SelfMatch, 0)
				if o.smp == match.CancelBoth {
					why = match.SelfMatch
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
		if why != match.None {
			return why
		}
	}
	return match.None
}

func (x *Matcher) fill(b *oBook, o, m *oOrder, price int64) {
	q := min(o.leaves, m.shown)
	o.leaves, o.cum = o.leaves-q, o.cum+q
	m.leaves, m.cum, m.shown = m.leaves-q, m.cum+q, m.shown-q
	x.fillRecord(o, m.id, price, q, 0)
	x.fillRecord(m, o.id, price, q, match.Passive)
	switch {
	case m.leaves == 0:
		x.drop(m)
		x.l3(match.OrderRemoved, m)
	case m.shown == 0:
		x.l3(match.OrderRemoved, m)
		m.shown = min(m.display, m.leaves)
		x.drop(m)
		x.prio++
		m.prio = x.prio
		x.add(m)
		x.emit(match.Record{Kind: match.Restated, Order: m.id, Side: m.side, Owner: m.owner, Book: m.book, Qty: m.shown, Leaves: m.leaves, Cum: m.cum})
		x.l3(match.OrderAdded, m)
	default:
		x.l3(match.OrderChanged, m)
	}
	b.traded(price)
}

func (x *Matcher) fillRecord(o *oOrder, with uint64, price, q int64, flags uint8) {
	x.emit(match.Record{Kind: match.Filled, Order: o.id, Other: with, Side: o.side, Owner: o.owner, Book: o.book, Price: price, Qty: q, Leaves: o.leaves, Cum: o.cum, Flags: flags})
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

func (x *Matcher) fillable(b *oBook, o *oOrder) match.Reason {
	need, visits := o.leaves, int64(x.work)
	for _, m := range x.side(b.n, opposite(o.side)) {
		if !reaches(o.side, x.limitOf(b, o), m.price) {
			break
		}
		visits++
		own := m.group != 0 && m.group == o.group
		if x.doom(m) != nil {
			own = true
		} else if own && o.smp != match.CancelOldest {
			return match.Unfilled
		}
		if !own && m.display > 0 {
			for hidden := m.leaves - m.shown; hidden > 0; hidden -= m.display {
				visits++
			}
		}
		if visits > int64(x.cfg.Work) {
			return match.WorkLimit
		}
		if own {
			continue
		}
		if need -= m.leaves; need <= 0 {
			return match.None
		}
	}
	return match.Unfilled
}

// --- market data

func (x *Matcher) l3(k match.Kind, o *oOrder) {
	if x.cfg.Data&match.L3 == 0 || o.where != 0 {
		return
	}
	r := match.Record{Kind: k, Order: o.id, Side: o.side, Price: o.price, Book: o.book}
	if k != match.OrderRemoved {
		r.Qty = o.shown
	}
	x.emit(r)
}

func (x *Matcher) aggregate(n uint16, s match.Side, price int64) (shown int64, count uint32) {
	for _, o := range x.orders {
		if o.book == n && o.where == 0 && o.side == s && o.price == price {
			shown += o.shown
			count++
		}
	}
	return shown, count
}

func (x *Matcher) l2(n uint16, where int, s match.Side, price int64) {
	if where != 0 {
		return
	}
	if x.dirty != x.books[n] {
		x.publish()
		x.dirty = x.books[n]
	}
	if x.cfg.Data&match.L2 == 0 {
		return
	}
	r := match.Record{Kind: match.LevelChanged, Side: s, Price: price, Book: n}
	r.Qty, r.Count = x.aggregate(n, s, price)
	x.emit(r)
}

func (x *Matcher) publish() {
	b := x.dirty
	x.dirty = nil
	if b == nil || x.cfg.Data&match.L1 == 0 {
		return
	}
	for s := match.Buy; s <= match.Sell; s++ {
		r := match.Record{Kind: match.BestChanged, Side: s, Book: b.n}
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
