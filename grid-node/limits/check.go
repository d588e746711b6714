package limits

import "math/bits"

// verdict is what a message leads to if it is not refused.
type verdict struct {
	p      *Party
	r      *profile
	y      *symbol
	charge uint64
	limit  int64
	level  uint64 // of the session, after the message
	at     int64  // when it has that
	rated  bool
}

// Check returns what Apply would, and changes nothing.
func (l *Limits) Check(op *Op) Reason {
	var v verdict
	now := op.Time
	switch op.Kind {
	case Enter, Amend:
		return l.judgeEnter(op, now, &v)
	case Replace:
		return l.judgeReplace(op, now, &v)
	case Cancel:
		return l.judgeSender(op, now, &v)
	}
	return BadField
}

// judgeSender finds the party and counts the message.
func (l *Limits) judgeSender(op *Op, now int64, v *verdict) Reason {
	if op.Party == 0 || int(op.Party) >= len(l.parties) || l.parties[op.Party].Client == 0 {
		return UnknownParty
	}
	v.p = &l.parties[op.Party]
	s := &l.sessions[v.p.Session]
	r := &l.profiles[s.profile]
	if r.Rate == 0 {
		return None
	}
	v.level, v.at = s.refill(&r.Rules, now)
	v.rated = true
	need := uint64(second)
	if op.Kind != Cancel {
		need += uint64(r.Reserve) * second
	}
	if v.level < need {
		return TooManyMessages
	}
	v.level -= second
	return None
}

// refill returns how many messages a session may send, in 1/second, and the time of that.
func (s *session) refill(r *Rules, now int64) (level uint64, at int64) {
	full := uint64(r.Burst) * second
	switch passed := distance(s.at, now); {
	case passed >= full/uint64(r.Rate)+1:
		return full, now
	case now < s.at: // the clock was set back, or is that of another node: no time has passed
		return min(full, s.level), s.at
	default:
		return min(full, s.level+passed*uint64(r.Rate)), now
	}
}

// judgePerson checks who sends an order.
func (l *Limits) judgePerson(v *verdict) Reason {
	p := v.p
	if l.killedAll || l.killed[Session].has(0, p.Session) || l.killed[Trader].has(0, p.Trader) || l.killed[Desk].has(0, p.Desk) ||
		l.killed[Algorithm].has(0, p.Algorithm) || l.killed[Client].has(0, p.Client) {
		return Killed
	}
	if l.algorithms[p.Algorithm].profile != 0 {
		return Halted
	}
	n := l.clients[p.Client].profile
	v.r = &l.profiles[n]
	if n == 0 || !l.authorised.has(n, p.Trader) {
		return NotAuthorised
	}
	return None
}

func (l *Limits) judgeEnter(op *Op, now int64, v *verdict) Reason {
	if why := l.judgeSender(op, now, v); why != None {
		return why
	}
	if why := l.judgePerson(v); why != None {
		return why
	}
	if int(op.Symbol) >= len(l.symbols) || l.symbols[op.Symbol].multiplier == 0 {
		return UnknownSymbol
	}
	v.y = &l.symbols[op.Symbol]
	switch {
	case l.restricted.has(l.clients[v.p.Client].profile, uint32(op.Symbol)):
		return RestrictedSymbol
	case op.Side != Buy && op.Side != Sell:
		return BadField
	case op.Qty <= 0:
		return BadQty
	}
	need, why := l.judgeSize(op, op.Side, v)
	switch {
	case why != None || op.Kind == Amend:
		return why
	case v.r.DuplicateWindow != 0 && l.duplicate(op, now):
		return Duplicate
	case op.Unkept && v.r.DuplicateWindow != 0 && !l.roomy(now):
		return Full
	case op.Unkept:
		return None
	}
	if why := l.judgeCredit(v.p.Client, need); why != None {
		return why
	}
	switch {
	case op.ID == 0 || l.find(op.ID) != 0:
		return BadID
	case l.open == l.cfg.Orders || v.r.DuplicateWindow != 0 && !l.roomy(now):
		return Full
	}
	return None
}

func (l *Limits) judgeReplace(op *Op, now int64, v *verdict) Reason {
	if why := l.judgeSender(op, now, v); why != None {
		return why
	}
	if why := l.judgePerson(v); why != None {
		return why
	}
	return l.judgeRevision(op, v)
}

// judgeRevision checks what Orig is to become, for the party that entered it.
func (l *Limits) judgeRevision(op *Op, v *verdict) Reason {
	slot := l.find(op.Orig)
	if slot == 0 {
		return UnknownOrder
	}
	o := &l.orders[slot]
	v.p, v.y = &l.parties[o.party], &l.symbols[o.symbol]
	n := l.clients[v.p.Client].profile
	v.r = &l.profiles[n]
	if op.Kind == Replace && l.restricted.has(n, uint32(o.symbol)) {
		return RestrictedSymbol
	}
	if op.Qty <= o.cum {
		return BadQty
	}
	if _, why := l.judgeSize(op, o.side, v); why != None {
		return why
	}
	need, _ := value(v.charge, op.Qty-o.cum, v.y.multiplier)
	if had := l.uses(o); need > had {
		if why := l.judgeCredit(v.p.Client, need-had); why != None {
			return why
		}
	}
	if op.ID != 0 && op.ID != op.Orig && l.find(op.ID) != 0 {
		return BadID
	}
	return None
}

// judgeSize checks quantity, price and value, and returns the value.
func (l *Limits) judgeSize(op *Op, side Side, v *verdict) (int64, Reason) {
	if v.r.MaxVolume != 0 && op.Qty > v.r.MaxVolume {
		return 0, MaxVolume
	}
	if why := v.price(op, side); why != None {
		return 0, why
	}
	n, ok := value(v.charge, op.Qty, v.y.multiplier)
	switch {
	case !ok:
		return 0, Overflow
	case v.r.MaxValue != 0 && n > v.r.MaxValue && !mutant(mutNoMaxValue):
		return 0, MaxValue
	}
	return n, None
}

// judgeCredit checks that so much more can be used.
func (l *Limits) judgeCredit(n uint32, need int64) Reason {
	if c := &l.clients[n]; !c.has(need) {
		return ClientCredit
	}
	if c := &l.clients[0]; !c.has(need) {
		return TotalCredit
	}
	return None
}

func (c *client) has(need int64) bool {
	used := c.open + c.executed
	return used <= c.here && need <= c.here-used
}

// uses returns the credit that an order uses.
func (l *Limits) uses(o *order) int64 {
	n, _ := value(o.charge, o.leaves, l.symbols[o.symbol].multiplier)
	return n
}

// value returns price x quantity x multiplier, and whether it is below 2^63.
func value(price uint64, qty int64, multiplier uint32) (int64, bool) {
	hi, lo := bits.Mul64(price, uint64(qty))
	if mutant(mutOverflow) {
		hi = 0
	}
	hi2, n := bits.Mul64(lo, uint64(multiplier))
	if mutant(mutOverflow) {
		return int64(n &^ (1 << 63)), true
	}
	return int64(n), hi|hi2|n>>63 == 0
}
