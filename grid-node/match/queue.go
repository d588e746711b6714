package match

// level returns the queue of a place, whose page must be there.
func (e *Engine) level(b *book, place uint8, key uint32) *level {
	if place >= placeMarket {
		return &b.market[place-placeMarket].level
	}
	return &e.pages[b.ladders[place].refs[key>>pageBits].page].levels[key&(pageSize-1)]
}

// volume returns the sum of a queue, whose page must be there.
func (e *Engine) volume(b *book, place uint8, key uint32) *volume {
	if place >= placeMarket {
		return &b.market[place-placeMarket].volume
	}
	return &e.pages[b.ladders[place].refs[key>>pageBits].page].volumes[key&(pageSize-1)]
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
	slot := e.free
	if slot != 0 {
		e.free = e.orders[slot].next
	} else {
		e.top++
		slot = e.top
	}
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
		e.freePg, e.pages[p].volumes[0].count = e.pages[p].volumes[0].count, 0
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
		if l := &b.ladders[o.place]; l.refs[o.key>>pageBits].page == 0 {
			l.refs[o.key>>pageBits].page = e.allocPage()
		}
	}
	if o.prio == 0 {
		e.prio++
		o.prio = e.prio
	}
	lev := e.level(b, o.place, o.key)
	if lev.head == 0 && o.place < placeMarket {
		b.ladders[o.place].set(o.key)
	}
	vol := e.volume(b, o.place, o.key)
	vol.count++
	vol.shown += uint64(o.shown)
	vol.total += uint64(o.leaves)
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
	o.prev, o.next = lev.tail, 0
	if lev.tail != 0 {
		e.orders[lev.tail].next = slot
	} else {
		lev.head = slot
	}
	lev.tail = slot
}

// unchain takes an order out of its queue, and pending sweeps past it.
func (e *Engine) unchain(lev *level, slot uint32) {
	o := &e.orders[slot]
	for i := range e.sweeps {
		if e.sweeps[i].slot == slot {
			e.sweeps[i].slot = o.next
		}
	}
	if o.prev != 0 {
		e.orders[o.prev].next = o.next
	} else {
		lev.head = o.next
	}
	if o.next != 0 {
		e.orders[o.next].prev = o.prev
	} else {
		lev.tail = o.prev
	}
}

// unlink takes an order out of the book. Its slot stays taken.
func (e *Engine) unlink(slot uint32) {
	o := &e.orders[slot]
	b := &e.books[o.book]
	lev := e.level(b, o.place, o.key)
	e.sum -= o.digest()
	e.count(o, -1)
	e.unchain(lev, slot)
	vol := e.volume(b, o.place, o.key)
	vol.count--
	vol.shown -= uint64(o.shown)
	vol.total -= uint64(o.leaves)
	if lev.head == 0 && o.place < placeMarket {
		l := &b.ladders[o.place]
		if l.clear(o.key) {
			p := l.refs[o.key>>pageBits].page
			l.refs[o.key>>pageBits].page = 0
			e.pages[p].volumes[0].count, e.freePg = e.freePg, p
			e.paged--
		}
	}
}

// take removes lots that traded from an order in the book, whose shown part they came
// from. It reports whether the order is still where it was.
func (e *Engine) take(slot, lots uint32) {
	o := &e.orders[slot]
	vol := e.volume(&e.books[o.book], o.place, o.key)
	e.sum -= o.digest()
	o.leaves -= lots
	o.cum += lots
	o.shown -= lots
	vol.shown -= uint64(lots)
	vol.total -= uint64(lots)
	e.sum += o.digest()
}

// refresh shows the next part of an iceberg, at the end of its queue.
func (e *Engine) refresh(slot uint32) {
	o := &e.orders[slot]
	lev := e.level(&e.books[o.book], o.place, o.key)
	e.sum -= o.digest()
	o.shown = min(o.display, o.leaves)
	e.volume(&e.books[o.book], o.place, o.key).shown += uint64(o.shown)
	if !mutant(mutIcebergKeeps) {
		e.unchain(lev, slot)
		e.prio++
		o.prio = e.prio
		e.chain(lev, slot)
	}
	e.sum += o.digest()
}
