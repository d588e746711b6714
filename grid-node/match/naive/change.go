package naive

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

func (x *Matcher) refuse(op match.Op, o *oOrder, why match.Reason) {
	r := match.Record{Kind: match.CancelRejected, Order: op.Orig, Other: op.ID, Owner: op.Owner, Book: op.Book, Reason: why}
	if o != nil {
		r.Book = o.book
	}
	x.emit(r)
}

func (x *Matcher) mine(op match.Op) *oOrder {
	o := x.orders[op.Orig]
	if o == nil || op.Owner != 0 && op.Owner != o.owner {
		return nil
	}
	x.find(o.book)
	return o
}

func (x *Matcher) cancel(op match.Op) {
	o := x.mine(op)
	if o == nil {
		x.refuse(op, nil, match.UnknownOrder)
		return
	}
	if x.books[o.book].state == match.Uncrossing {
		x.refuse(op, o, match.NotInState)
		return
	}
	x.pull(o, match.Requested, 0)
	x.l2(o.book, o.where, o.side, o.price)
}

func (x *Matcher) replace(op match.Op) {
	m := x.mine(op)
	if m == nil {
		x.refuse(op, nil, match.UnknownOrder)
		return
	}
	b := x.books[m.book]
	o := *m
	if why := x.amend(op, b, m, &o); why != match.None {
		x.refuse(op, m, why)
		return
	}
	o.party = op.Party
	if op.ID != 0 {
		o.id = op.ID
	}
	only := o.price == m.price && o.stop == m.stop && o.display == m.display && o.leaves <= m.leaves
	if !only {
		x.l3(match.OrderRemoved, m)
	}
	x.drop(m)
	if !only {
		x.l2(m.book, m.where, m.side, m.price)
	}
	x.emit(match.Record{Kind: match.Replaced, Order: op.Orig, Other: o.id, Side: o.side, Price: op.Price, Qty: op.Qty, Owner: o.owner, Book: o.book, Leaves: o.leaves, Cum: o.cum})
	switch {
	case only:
		x.add(&o)
		if o.shown > o.leaves {
			o.shown = o.leaves
			x.l3(match.OrderChanged, &o)
			x.l2(o.book, o.where, o.side, o.price)
		}
	case o.where != 0:
		o.prio = 0
		x.rest(&o)
	default:
		o.prio = 0
		x.trade(b, &o, match.Day)
		x.runStops(b)
	}
}

func (x *Matcher) amend(op match.Op, b *oBook, m, o *oOrder) match.Reason {
	if op.ID != 0 && op.ID != m.id && x.orders[op.ID] != nil {
		return match.DuplicateID
	}
	if s := x.doom(m); s != nil {
		return s.reason()
	}
	if b.state != match.Open && b.state != match.Call {
		return match.NotInState
	}
	if op.Display != 0 && m.market || op.Stop != 0 && m.where != 1 {
		return match.BadField
	}
	if why := b.terms(op, o); why != match.None {
		return why
	}
	if o.leaves <= m.cum {
		return match.QtyFilled
	}
	o.leaves -= m.cum
	if !x.hasRoom(o, false) {
		return match.Full
	}
	if m.where == 0 && m.post && o.price != m.price && b.state == match.Open && x.wouldCross(o) {
		return match.WouldCross
	}
	if m.where == 1 && x.stopReached(b, o) {
		return match.TriggerPassed
	}
	return match.None
}

// --- stops

func (x *Matcher) runStops(b *oBook) {
	for b.lo != nil && b.state == match.Open {
		if x.work >= x.cfg.Work {
			b.busy = true
			return
		}
		l := x.list(b.n, func(o *oOrder) bool {
			return o.where == 1 && (o.side == match.Buy && o.stop <= *b.hi || o.side == match.Sell && o.stop >= *b.lo)
		})
		if len(l) == 0 {
			b.lo, b.hi = nil, nil
			break
		}
		x.activate(b, l[0])
	}
	b.busy = b.state == match.Uncrossing
}

func (x *Matcher) activate(b *oBook, o *oOrder) {
	x.work++
	if s := x.doom(o); s != nil {
		x.sweepOut(o, s)
		return
	}
	x.drop(o)
	x.emit(match.Record{Kind: match.Triggered, Order: o.id, Side: o.side, Owner: o.owner, Book: o.book, Price: o.stop, Leaves: o.leaves, Cum: o.cum})
	tif := match.Day
	if o.ioc {
		tif = match.IOC
	}
	o.where, o.stop, o.prio, o.ioc = 0, 0, 0, false
	had := x.work
	x.work = 0
	x.trade(b, o, tif)
	x.work += had
}

// --- mass cancel

func (x *Matcher) doom(o *oOrder) *oSweep {
	for _, s := range x.sweeps {
		if s.includes(o) {
			return s
		}
	}
	return nil
}

func (s *oSweep) includes(o *oOrder) bool {
	return o.prio <= s.prio && (s.op.Owner == 0 || s.op.Owner == o.owner || s.op.Lapse) && (s.op.Group == 0 || s.op.Group == o.group) &&
		(s.op.Book == match.All || s.op.Book == o.book) && (s.op.Side == 0 || s.op.Side == o.side) && s.ofParty(o)
}

// ofParty looks at the bits of the operation one by one.
func (s *oSweep) ofParty(o *oOrder) bool {
	if s.op.Parties == nil {
		return true
	}
	for n := range 64 * len(s.op.Parties) {
		is := n > 0 && uint32(n) == o.party
		if s.op.Lapse {
			is = s.op.Owner+uint32(n) == o.owner
		}
		if is && s.op.Parties[n/64]&(1<<(n%64)) != 0 {
			return true
		}
	}
	return false
}

// asks is whose orders it is of, 0 for several owners.
func (s *oSweep) asks() uint32 {
	if s.op.Lapse {
		return 0
	}
	return s.op.Owner
}

func (s *oSweep) reason() match.Reason {
	if s.op.Kill {
		return match.Killed
	}
	if s.op.Lapse {
		return match.Disconnected
	}
	return match.MassCancelling
}

func (x *Matcher) sweepOut(o *oOrder, s *oSweep) {
	s.count++
	x.pull(o, s.reason(), s.op.ID)
}

func (x *Matcher) massCancel(op match.Op) {
	if op.Book != match.All && x.find(op.Book) == nil {
		x.reject(op, match.UnknownInstrument)
		return
	}
	if op.Side > match.Sell || (op.Parties != nil) != (op.Kill && op.Parties != nil || op.Lapse) {
		x.reject(op, match.BadField)
		return
	}
	alike := 0
	for _, s := range x.sweeps {
		if s.op.Kill == op.Kill && s.op.Lapse == op.Lapse {
			alike++
		}
	}
	if op.Lapse && alike == 4 || !op.Kill && alike == 16 || alike == 256 {
		x.reject(op, match.Busy)
		return
	}
	s := &oSweep{op: op, prio: x.prio}
	if op.Book != match.All {
		s.book = op.Book
	}
	x.sweeps = append(x.sweeps, s)
	x.emit(match.Record{Kind: match.Accepted, Order: op.ID, Owner: s.asks(), Side: op.Side, Book: op.Book, Reason: s.reason()})
	if len(x.sweeps) == 1 {
		x.sweepSome()
	}
}

func (x *Matcher) proceed() {
	var busy []int
	for n, b := range x.books {
		if b.busy {
			busy = append(busy, int(n))
		}
	}
	sort.Ints(busy)
	switch {
	case len(busy) > 0:
		if b := x.books[uint16(busy[0])]; b.state == match.Uncrossing {
			x.uncrossSome(b)
		} else {
			x.runStops(b)
		}
	case len(x.sweeps) > 0:
		x.sweepSome()
	}
}

// Pending reports whether an operation of kind Continue has something to do.
func (x *Matcher) Pending() bool {
	for _, b := range x.books {
		if b.busy {
			return true
		}
	}
	return len(x.sweeps) > 0
}

// sweepSome visits books, places, queues and orders, each of which costs one.
func (x *Matcher) sweepSome() {
	s := x.sweeps[0]
	for x.work < x.cfg.Work {
		if s.inside {
			x.sweepQueue(s)
			continue
		}
		if int(s.book) >= x.cfg.Books || s.op.Book != match.All && s.book != s.op.Book {
			x.emit(match.Record{Kind: match.MassCancelled, Order: s.op.ID, Owner: s.asks(), Side: s.op.Side, Book: s.op.Book, Cum: s.count})
			x.sweeps = x.sweeps[1:]
			return
		}
		x.work++
		if x.books[s.book] == nil || s.place == 6 {
			s.book, s.place, s.price = s.book+1, 0, nil
			continue
		}
		if l := x.queue(s, false); len(l) > 0 {
			key := l[0].key()
			s.price, s.inside, s.lastPrio = &key, true, 0
		} else {
			s.place, s.price = s.place+1, nil
		}
	}
}

// queue returns the orders of the place of a sweep that are behind the price it visited
// last, or of that price.
func (x *Matcher) queue(s *oSweep, same bool) []*oOrder {
	return x.list(s.book, func(o *oOrder) bool {
		if o.placeNo() != s.place {
			return false
		}
		if same {
			return o.key() == *s.price
		}
		if s.price == nil {
			return true
		}
		if o.where == 2 {
			return false
		}
		if (o.side == match.Buy) == (o.where == 0) {
			return o.key() < *s.price
		}
		return o.key() > *s.price
	})
}

func (x *Matcher) sweepQueue(s *oSweep) {
	n, pulled := s.book, (*oOrder)(nil)
	rest := func() []*oOrder {
		var l []*oOrder
		for _, o := range x.queue(s, true) {
			if o.prio > s.lastPrio && o.prio <= s.prio {
				l = append(l, o)
			}
		}
		return l
	}
	for l := rest(); len(l) > 0 && x.work < x.cfg.Work; l = rest() {
		x.work++
		s.lastPrio = l[0].prio
		if s.includes(l[0]) {
			x.sweepOut(l[0], s)
			pulled = l[0]
		}
	}
	if len(rest()) == 0 {
		s.inside = false
	}
	if pulled != nil {
		x.l2(n, pulled.where, pulled.side, pulled.price)
	}
}
