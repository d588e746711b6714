package limits

// Apply applies an operation and returns why it is refused, or None. A message that is
// refused counts as a message, unless there were too many; nothing else of it is kept. An
// outcome that is refused (UnknownOrder, Beyond, or a reason of Check for Revised) means
// that the book is not the one that these limits go with.
func (l *Limits) Apply(op *Op) Reason {
	l.tick(op.Time)
	var v verdict
	why := BadField
	switch op.Kind {
	case Enter:
		if why = l.judgeEnter(op, l.now, &v); why == None {
			l.enter(op, &v)
		}
	case Amend:
		why = l.judgeEnter(op, l.now, &v)
	case Replace:
		why = l.judgeReplace(op, l.now, &v)
	case Cancel:
		why = l.judgeSender(op, l.now, &v)
	case Revised:
		if why = l.judgeRevision(op, &v); why == None {
			l.revise(op, &v)
		}
		return why
	case Filled:
		return l.fill(op)
	case Done:
		return l.done(op.ID)
	}
	if v.rated && why != TooManyMessages {
		s := &l.sessions[l.parties[op.Party].Session]
		s.level, s.at = v.level, v.at
	}
	return why
}

func (l *Limits) enter(op *Op, v *verdict) {
	if v.r.DuplicateWindow != 0 {
		l.remember(op)
	}
	if op.Unkept {
		return
	}
	o := order{id: op.ID, charge: v.charge, limit: v.limit, leaves: op.Qty, party: op.Party, symbol: op.Symbol, side: op.Side}
	l.add(&o)
	l.use(&o, l.uses(&o))
}

// use changes the credit in use by orders.
func (l *Limits) use(o *order, n int64) {
	l.clients[l.parties[o.party].Client].open += n
	l.clients[0].open += n
}

func (l *Limits) revise(op *Op, v *verdict) {
	slot := l.find(op.Orig)
	o := l.orders[slot]
	l.use(&o, -l.uses(&o))
	l.remove(slot)
	o.charge, o.limit, o.leaves = v.charge, v.limit, op.Qty-o.cum
	if op.ID != 0 {
		o.id = op.ID
	}
	l.add(&o)
	l.use(&o, l.uses(&o))
}

// fill is Filled. An execution uses the lesser of its value and what the order was charged:
// so no execution uses more credit than was checked.
func (l *Limits) fill(op *Op) Reason {
	slot := l.find(op.ID)
	if slot == 0 {
		return UnknownOrder
	}
	o := &l.orders[slot]
	if !mutant(mutFillBeyond) && (op.Qty <= 0 || op.Qty > o.leaves || o.side == Buy && op.Price > o.limit || o.side == Sell && op.Price < o.limit) {
		return Beyond
	}
	y := &l.symbols[o.symbol]
	y.last, y.traded = op.Price, true
	charged, _ := value(o.charge, op.Qty, y.multiplier)
	n, ok := value(magnitude(op.Price), op.Qty, y.multiplier)
	if !ok || n > charged {
		n = charged
	}
	c := &l.clients[l.parties[o.party].Client]
	c.executed += n
	l.clients[0].executed += n
	l.use(o, -charged)
	first := !o.traded
	p := &l.parties[o.party]
	l.sum -= o.digest()
	o.leaves, o.cum, o.traded = o.leaves-op.Qty, o.cum+op.Qty, true
	l.sum += o.digest()
	if o.leaves == 0 {
		l.remove(slot)
	}
	if first && p.Algorithm != 0 {
		return l.repeat(p)
	}
	return None
}

// repeat counts an order of an algorithm that was executed.
func (l *Limits) repeat(p *Party) Reason {
	n := l.clients[p.Client].profile
	r, a := &l.profiles[n], &l.algorithms[p.Algorithm]
	if r.Repeats == 0 || a.profile != 0 {
		return None
	}
	l.note(itemAlgorithm, p.Algorithm)
	if a.count == 0 || r.RepeatWindow != 0 && over(a.start, l.now, r.RepeatWindow) {
		a.start, a.count = l.now, 0
	}
	if a.count++; a.count < r.Repeats {
		return None
	}
	a.profile = n
	return Repeated
}

func (l *Limits) done(id uint64) Reason {
	slot := l.find(id)
	if slot == 0 {
		return UnknownOrder
	}
	o := &l.orders[slot]
	l.use(o, -l.uses(o))
	l.remove(slot)
	return None
}
