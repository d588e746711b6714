package limits

// recent is an order that was entered, to find duplicates of it until a time.
type recent struct {
	at                  int64
	price, trigger, qty int64
	party               uint32
	symbol              uint16
	side                Side
	flags               uint8 // 1 market, 2 stop
}

func recentOf(op *Op) recent {
	r := recent{price: op.Price, trigger: op.Trigger, qty: op.Qty, party: op.Party, symbol: op.Symbol, side: op.Side}
	if op.Market {
		r.flags, r.price = 1, 0
	}
	if op.Stop {
		r.flags |= 2
	} else {
		r.trigger = 0
	}
	return r
}

func (r *recent) small() uint64 {
	return uint64(r.party)<<32 | uint64(r.symbol)<<16 | uint64(r.side)<<8 | uint64(r.flags)
}

func (l *Limits) key(r *recent) uint32 {
	return l.byKey.hash(fold(uint64(r.price)^0x589965cc75374cc3, uint64(r.qty)^0xa0761d6478bd642f)^uint64(r.trigger), r.small())
}

// like returns the place in the ring of the last order equal to r, and whether there is one.
func (l *Limits) like(r *recent) (slot uint32, found bool) {
	h := l.key(r)
	for i := h & l.byKey.mask; ; i = (i + 1) & l.byKey.mask {
		e := l.byKey.places[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) == h {
			q := &l.recent[uint32(e)-1]
			if q.price == r.price && q.qty == r.qty && q.trigger == r.trigger && q.small() == r.small() {
				return uint32(e) - 1, true
			}
		}
	}
}

// duplicate reports whether an equal order is remembered at the time now.
func (l *Limits) duplicate(op *Op, now int64) bool {
	r := recentOf(op)
	slot, found := l.like(&r)
	return found && !l.past(slot, now)
}

// past reports whether the time of an order is over, by the window that its client has now.
func (l *Limits) past(slot uint32, now int64) bool {
	r := &l.recent[slot]
	return over(r.at, now, l.profiles[l.clients[l.parties[r.party].Client].profile].DuplicateWindow)
}

// roomy reports whether another order can be remembered at the time now.
func (l *Limits) roomy(now int64) bool {
	return int(l.held) < len(l.recent) || l.past(l.head, now)
}

// remember keeps an order, for which there is room. It forgets up to two whose time is
// over, so the ring is never full of them.
func (l *Limits) remember(op *Op) {
	for n := 0; n < 2 && l.held > 0 && l.past(l.head, l.now); n++ {
		l.forget()
	}
	r := recentOf(op)
	r.at = l.now
	l.keep(&r)
}

func (l *Limits) keep(r *recent) {
	if slot, found := l.like(r); found {
		l.byKey.drop(l.key(r), slot)
	}
	slot := l.head + l.held
	if int(slot) >= len(l.recent) {
		slot -= uint32(len(l.recent))
	}
	l.recent[slot] = *r
	l.byKey.put(l.key(r), slot)
	l.sum += r.digest(l.first + uint64(l.held))
	l.held++
}

func (l *Limits) forget() {
	r := &l.recent[l.head]
	if slot, found := l.like(r); found && slot == l.head {
		l.byKey.drop(l.key(r), slot)
	}
	l.sum -= r.digest(l.first)
	l.head, l.first = l.head+1, l.first+1
	if int(l.head) == len(l.recent) {
		l.head = 0
	}
	l.held--
}
