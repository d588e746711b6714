package match

// cancel is Cancel.
func (e *Engine) cancel(op *Op) {
	slot, why := e.mine(op)
	if why == None && e.books[e.orders[slot].book].state == Uncrossing {
		why = NotInState
	}
	if why != None {
		e.refuse(op, slot, why)
		return
	}
	o := &e.orders[slot]
	n, place, key := o.book, o.place, o.key
	e.pull(slot, Requested, 0)
	e.levelData(n, place, key)
}

// mine finds the order that op means.
func (e *Engine) mine(op *Op) (slot uint32, why Reason) {
	slot = e.ids.find(e.orders, op.Orig)
	if slot == 0 || op.Owner != 0 && e.orders[slot].owner != op.Owner {
		return 0, UnknownOrder
	}
	e.lookup(e.orders[slot].book)
	return slot, None
}

// refuse writes that a cancel or replace was not done.
func (e *Engine) refuse(op *Op, slot uint32, why Reason) {
	n := op.Book
	if slot != 0 {
		n = e.orders[slot].book
	}
	r := e.record(CancelRejected, n)
	r.Order, r.Other, r.Owner, r.Reason = op.Orig, op.ID, op.Owner, why
}

// replace is Replace. An order keeps its priority if only its quantity goes down.
func (e *Engine) replace(op *Op) {
	slot, why := e.mine(op)
	if why != None {
		e.refuse(op, 0, why)
		return
	}
	m := &e.orders[slot]
	b := &e.books[m.book]
	o := *m
	if why = e.amend(op, b, m, &o); why != None {
		e.refuse(op, slot, why)
		return
	}
	keeps := o.key == m.key && o.limit == m.limit && o.display == m.display && o.leaves <= m.leaves
	if !keeps && !mutant(mutKeepPriority) {
		o.prio = 0
	}
	if o.party = op.Party; m.party != o.party {
		e.answers(m, o.party)
	}
	before, n, place, key := m.shown, m.book, m.place, m.key
	if !keeps {
		e.orderData(OrderRemoved, m)
		e.unlink(slot)
		e.levelData(n, place, key)
	}
	if op.ID != 0 && op.ID != m.id {
		e.rename(slot, op.ID, keeps)
	}
	o.id = m.id
	r := e.record(Replaced, n)
	r.Order, r.Other, r.Side, r.Price, r.Qty, r.Owner = op.Orig, o.id, o.side(), op.Price, op.Qty, o.owner
	r.Leaves, r.Cum = int64(o.leaves)*b.Lot, int64(o.cum)*b.Lot
	switch {
	case keeps:
		e.shrink(slot, o.leaves, 0)
		if m.shown != before {
			e.orderData(OrderChanged, m)
			e.levelData(n, place, key)
		}
	case o.place >= placeStopBuy:
		e.rest(slot, &o)
	default:
		e.trade(b, &o, Day, slot)
		e.runStops(n, b)
	}
}

// amend checks a replace and sets its terms in o, a copy of m.
func (e *Engine) amend(op *Op, b *book, m, o *order) Reason {
	switch {
	case op.ID != 0 && op.ID != m.id && e.ids.find(e.orders, op.ID) != 0:
		return DuplicateID
	case e.doom(m) != nil:
		return e.doom(m).why()
	case b.state != Open && b.state != Call:
		return NotInState
	case op.Display != 0 && m.flags&flagMkt != 0, op.Stop != 0 && (m.place < placeStopBuy || m.place >= placeMarket):
		return BadField
	}
	if why := b.terms(op, o); why != None {
		return why
	}
	if o.leaves <= m.cum {
		return QtyFilled
	}
	o.leaves -= m.cum
	switch {
	case !e.roomPage(b, o.place, o.key):
		return Full
	case o.place < placeStopBuy && o.flags&flagPost != 0 && o.key != m.key && b.state == Open && b.crosses(o):
		return WouldCross
	case (o.place == placeStopBuy || o.place == placeStopSell) && b.reached(o):
		return TriggerPassed
	}
	return None
}

// answers makes another party answer for an order in the book.
func (e *Engine) answers(m *order, party uint32) {
	e.sum -= m.digest()
	e.count(m, -1)
	m.party = party
	e.count(m, 1)
	e.sum += m.digest()
}

// rename gives an order another id.
func (e *Engine) rename(slot uint32, id uint64, linked bool) {
	o := &e.orders[slot]
	if linked {
		e.sum -= o.digest()
	}
	e.ids.drop(o.id, slot)
	o.id = id
	e.ids.put(id, slot)
	if linked {
		e.sum += o.digest()
	}
}

// shrink reduces what is left of an order, hidden lots first, filled ones among them.
func (e *Engine) shrink(slot, leaves, filled uint32) {
	o := &e.orders[slot]
	lev := e.level(&e.books[o.book], o.place, o.key)
	e.sum -= o.digest()
	lev.total -= uint64(o.leaves - leaves)
	if leaves < o.shown {
		lev.shown -= uint64(o.shown - leaves)
		o.shown = leaves
	}
	o.leaves = leaves
	o.cum += filled
	e.sum += o.digest()
}
