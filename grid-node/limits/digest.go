package limits

// DigestForm is the version of the digest, and of the snapshot.
const DigestForm = 1

// Digest returns a digest of the state: equal for equal operations, whether they were
// applied or a snapshot was restored. That of orders and of recent ones is maintained; that
// of the rest is computed here, some nanoseconds for each session, client and party.
func (l *Limits) Digest() uint64 { return l.digest(l.sum) }

// Recount computes Digest from the whole state, for tests of the sum.
func (l *Limits) Recount() uint64 {
	var sum uint64
	for i := range l.orders {
		if l.orders[i].id != 0 {
			sum += l.orders[i].digest()
		}
	}
	for i := range l.held {
		sum += l.recent[(l.head+i)%uint32(len(l.recent))].digest(l.first + uint64(i))
	}
	return l.digest(sum)
}

func (l *Limits) digest(sum uint64) uint64 {
	h := mix(sum, uint64(l.now), l.first<<1|flag(l.killedAll))
	var w [itemMost]uint64
	for c := (Cursor{kind: itemProfile}); c.kind < itemRecent; {
		if n := l.words(c, &w); n > 0 {
			h = mix(h, uint64(c.kind), uint64(n))
			for i := range n {
				h = mix(h, w[i], 1)
			}
		}
		l.next(&c)
	}
	return h
}

// digest covers what a snapshot carries of an order.
func (o *order) digest() uint64 {
	a := mix(o.id, uint64(o.limit), o.small())
	return mix(a^o.charge, uint64(o.leaves), uint64(o.cum))
}

func (o *order) small() uint64 {
	return uint64(o.party)<<32 | uint64(o.symbol)<<16 | uint64(o.side)<<8 | flag(o.traded)
}

// digest covers which one in the ring it is, too: the oldest is forgotten first.
func (r *recent) digest(number uint64) uint64 {
	a := mix(uint64(r.at), uint64(r.price)^number*0x9e3779b97f4a7c15, r.small())
	return mix(a, uint64(r.trigger), uint64(r.qty)^0x9e3779b97f4a7c15)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
