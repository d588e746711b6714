package match

// DigestForm is the version of the digest, and of the snapshot.
const DigestForm = 1

// Digest returns a digest of the state: equal for equal operations, whether they were
// applied or a snapshot was restored. That of orders is maintained; that of books is
// computed here, some 20 ns each.
func (e *Engine) Digest() uint64 { return e.digest(e.sum) }

// Recount computes Digest from the whole state, for tests of the sum.
func (e *Engine) Recount() uint64 {
	var sum uint64
	for n := range e.books {
		b := &e.books[n]
		for place := range uint8(places) {
			e.queues(b, place, func(lev *level) {
				for slot := lev.head; slot != 0; slot = e.orders[slot].next {
					sum += e.orders[slot].digest()
				}
			})
		}
	}
	return e.digest(sum)
}

// queues calls f for each queue of a place, the best first.
func (e *Engine) queues(b *book, place uint8, f func(*level)) {
	if place >= placeMarket {
		f(&b.market[place-placeMarket])
		return
	}
	for key := b.ladders[place].next(0); key != none; key = b.ladders[place].after(key) {
		f(e.level(b, place, key))
	}
}

func (e *Engine) digest(orders uint64) uint64 {
	h := mix(orders, e.pos.ExecHash, e.pos.ExecSeq)
	h = mix(h, e.prio, uint64(e.now))
	for n := range e.books {
		if b := &e.books[n]; b.span != 0 {
			h = b.digest(h, uint16(n))
		}
	}
	for i := range e.sweeps {
		s := &e.sweeps[i]
		h = mix(h, s.id, s.prio)
		h = mix(h, s.count, uint64(s.owner)<<32|uint64(s.group))
		h = mix(h, uint64(s.book)<<32|uint64(s.at)<<16|uint64(s.side)<<8|uint64(s.place), uint64(s.key)<<32|uint64(b2u(s.inside)))
		h = mix(h, e.orders[s.slot].id, 1)
		switch {
		case s.kill:
			h = mix(h, uint64(len(s.parties)), 3)
		case s.lapse:
			h = mix(h, uint64(len(s.parties)), 5)
		}
		for n, w := range s.parties {
			h = mix(h, w, uint64(n))
		}
	}
	return h
}

func (b *book) digest(h uint64, n uint16) uint64 {
	h = mix(h, uint64(b.Tick), uint64(b.Lot))
	h = mix(h, uint64(b.Low), uint64(b.High))
	h = mix(h, uint64(b.Ref), uint64(b.until))
	h = mix(h, uint64(b.bandLo), uint64(b.bandHi))
	h = mix(h, uint64(n)<<48|uint64(b.state)<<40|uint64(b.resume)<<32|uint64(b.last), uint64(b.lo)<<32|uint64(b.hi))
	h = mix(h, uint64(b2u(b.crossed)|b2u(b.triggers)<<1|b2u(b.traded)<<2), uint64(b.auction.price)<<32|uint64(b.auction.next))
	h = mix(h, b.auction.left, b.best[0].shown)
	h = mix(h, b.best[1].shown, 2)
	return mix(h, uint64(b.best[0].key)<<32|uint64(b.best[1].key), uint64(b.best[0].count)<<32|uint64(b.best[1].count))
}

// digest covers what a snapshot carries of an order. Its place in the queue follows from
// prio.
func (o *order) digest() uint64 {
	a := mix(o.id, uint64(o.owner)<<32|uint64(o.group), uint64(o.display)<<32|uint64(o.limit))
	a ^= uint64(o.party) * 0x9e3779b97f4a7c15 // without a party it is that of releases before
	return mix(a^o.prio, uint64(o.key)<<32|uint64(o.leaves)^uint64(o.book)<<24, uint64(o.cum)<<32|uint64(o.shown)^uint64(o.place)<<40^uint64(o.flags)<<48)
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func mix(a, b, c uint64) uint64 {
	return fold(fold(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)^0x8ebc6af09c88c6e3, c^0x589965cc75374cc3)
}
