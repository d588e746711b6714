package match

// level returns the queue of a place, whose page must be there.
func (e *Engine) level(b *book, place uint8, key uint32) *level {
	if place >= placeMarket {
		return &b.market[place-placeMarket]
	}
	return &e.pages[b.ladders[place].refs[key>>pageBits].page][key&(pageSize-1)]
}

// room reports whether there is memory for another order at this key.
func (e *Engine) room(b *book, place uint8, key uint32) bool {
	return e.resting < e.cfg.Orders && e.roomPage(b, place, key)
}

func (e *Engine) roomPage(b *book, place uint8, key uint32) bool {
	return e.paged < e.cfg.Pages || place >= placeMarket || b.ladders[place].refs[key>>pageBits].page != 0
}

// alloc returns a free slot. There must be one.
func (e *Engine) alloc() uint32 {
	slot, rest, top := e.free, e.orders[e.free].next, e.top
	if slot == 0 {
		top++
		slot, rest = top, 0
	}
	e.free, e.top = rest, top
	e.resting++
	return slot
}

// release makes an unlinked slot free.
func (e *Engine) release(slot uint32) {
	o := &e.orders[slot]
	e.ids.drop(o.id, slot)
	if o.next, e.free = e.free, slot; slot == e.entered {
		e.entered = 0
	}
	e.resting--
}

func (e *Engine) allocPage() uint32 {
	p := e.freePg
	if p != 0 {
		e.freePg, e.pages[p][0].count = e.pages[p][0].count, 0
	} else {
		e.topPg++
		p = e.topPg
	}
	e.paged++
	return p
}

// link puts an order at the end of the queue of its place and key, with a new priority
// unless it has one.
func (e *Engine) link(slot uint32) {
	o := &e.orders[slot]
	b := &e.books[o.book]
	if o.place < placeMarket {
		l := &b.ladders[o.place]
		if l.refs[o.key>>pageBits].page == 0 {
			l.refs[o.key>>pageBits].page = e.allocPage()
		}
		l.set(o.key) // of a queue that has orders too: which has none cannot be predicted
	}
	if o.prio == 0 {
		e.prio++
		o.prio = e.prio
	}
	lev := e.level(b, o.place, o.key)
	lev.count++
	lev.shown += uint64(o.shown)
	lev.total += uint64(o.leaves)
	e.chain(lev, slot)
	e.count(o, 1)
	e.sum += o.digest()
}

// count counts an order that comes into the book or leaves it, if it has no party.
func (e *Engine) count(o *order, by int) {
	if o.party == 0 {
		e.unnamed += by
	}
}

// chain makes an order the last of a queue.
func (e *Engine) chain(lev *level, slot uint32) {
	o := &e.orders[slot]
	if mutant(mutKeepPriority) && lev.tail != 0 && e.orders[lev.tail].prio > o.prio {
		o.prev, o.next = 0, lev.head
		e.orders[lev.head].prev, lev.head = slot, slot
		return
	}
	head, tail := lev.head, lev.tail
	o.prev, o.next = tail, 0
	e.orders[tail].next = slot
	if tail == 0 {
		head = slot
	}
	lev.head, lev.tail = head, slot
}

// unchain takes an order out of its queue, and pending sweeps past it.
func (e *Engine) unchain(lev *level, slot uint32) {
	o := &e.orders[slot]
	for i := range e.sweeps {
		if e.sweeps[i].slot == slot {
			e.sweeps[i].slot = o.next
		}
	}
	prev, next := o.prev, o.next
	e.orders[prev].next = next
	e.orders[next].prev = prev
	head, tail := lev.head, lev.tail
	if prev == 0 {
		head = next
	}
	if next == 0 {
		tail = prev
	}
	lev.head, lev.tail = head, tail
}

// unlink takes an order out of the book. Its slot stays taken.
func (e *Engine) unlink(slot uint32) {
	o := &e.orders[slot]
	b := &e.books[o.book]
	lev := e.level(b, o.place, o.key)
	e.sum -= o.digest()
	e.count(o, -1)
	e.unchain(lev, slot)
	lev.count--
	lev.shown -= uint64(o.shown)
	lev.total -= uint64(o.leaves)
	if o.place < placeMarket {
		l := &b.ladders[o.place]
		if l.clear(o.key, lev.head == 0) {
			p := l.refs[o.key>>pageBits].page
			l.refs[o.key>>pageBits].page = 0
			e.pages[p][0].count, e.freePg = e.freePg, p
			e.paged--
		}
	}
}

// take removes lots that traded from an order in the book, whose shown part they came
// from. It reports whether the order is still where it was.
func (e *Engine) take(slot, lots uint32) {
	o := &e.orders[slot]
	lev := e.level(&e.books[o.book], o.place, o.key)
	e.sum -= o.digest()
	o.leaves -= lots
	o.cum += lots
	o.shown -= lots
	lev.shown -= uint64(lots)
	lev.total -= uint64(lots)
	e.sum += o.digest()
}

// refresh shows the next part of an iceberg, at the end of its queue.
func (e *Engine) refresh(slot uint32) {
	o := &e.orders[slot]
	lev := e.level(&e.books[o.book], o.place, o.key)
	e.sum -= o.digest()
	o.shown = min(o.display, o.leaves)
	lev.shown += uint64(o.shown)
	if !mutant(mutIcebergKeeps) {
		e.unchain(lev, slot)
		e.prio++
		o.prio = e.prio
		e.chain(lev, slot)
	}
	e.sum += o.digest()
}
