package match

// touch remembers that the best of a book may have changed.
func (e *Engine) touch(n uint16) {
	if e.dirty != int(n) {
		e.publish()
		e.dirty = int(n)
	}
}

// publish writes the best of each side of the book touched, if it changed.
func (e *Engine) publish() {
	if e.dirty < 0 || e.cfg.Data&L1 == 0 {
		e.dirty = -1
		return
	}
	n := uint16(e.dirty)
	e.dirty = -1
	b := &e.books[n]
	for p := range uint8(2) {
		now := best{key: b.ladders[p].best}
		if now.key != none {
			lev := e.level(b, p, now.key)
			now.shown, now.count = lev.shown, lev.count
		}
		if now == b.best[p] {
			continue
		}
		b.best[p] = now
		r := e.record(BestChanged, n)
		r.Side, r.Count, r.Qty = Buy+Side(p), now.count, int64(now.shown)*b.Lot
		if now.key != none {
			r.Price = b.price(b.ticks(p, now.key))
		}
	}
}

// levelData writes the aggregate of a price after it changed.
func (e *Engine) levelData(n uint16, place uint8, key uint32) {
	if place >= placeStopBuy || e.cfg.Data&(L1|L2) == 0 {
		return
	}
	e.touch(n)
	if e.cfg.Data&L2 == 0 {
		return
	}
	b := &e.books[n]
	r := e.record(LevelChanged, n)
	r.Side, r.Price = Buy+Side(place), b.price(b.ticks(place, key))
	if b.ladders[place].refs[key>>pageBits].page != 0 {
		lev := e.level(b, place, key)
		r.Qty, r.Count = int64(lev.shown)*b.Lot, lev.count
	}
}

// orderData writes what is shown of an order.
func (e *Engine) orderData(k Kind, o *order) { e.orderTraded(k, o, 0) }

// orderTraded is orderData where it is because so many lots that were shown traded.
func (e *Engine) orderTraded(k Kind, o *order, lots uint32) {
	if o.place >= placeStopBuy {
		return
	}
	if e.tap != nil && e.tap.watches(o.book) {
		e.tap.add(e, k, o, lots)
	}
	if e.cfg.Data&L3 == 0 {
		return
	}
	b := &e.books[o.book]
	r := e.record(k, o.book)
	r.Order, r.Side, r.Price = o.id, o.side(), b.price(b.ticks(o.place, o.key))
	if k != OrderRemoved {
		r.Qty = int64(o.shown) * b.Lot
	}
}
