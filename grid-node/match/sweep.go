package match

import "math/bits"

// How many mass cancels can be pending, and how many more of the kill switch; what the
// number of a party, or that of an owner of a lapse, is below.
const (
	maxSweeps  = 16
	maxKills   = 256
	maxLapses  = 4 // each is of all owners that are due
	maxParties = 1 << 20
)

// sweep is a mass cancel that has not visited all orders yet. It takes effect when it is
// applied: an order it includes never trades after it, whether or not it was visited.
type sweep struct {
	id     uint64
	prio   uint64 // orders up to here
	count  uint64 // cancelled so far
	owner  uint32
	group  uint32
	book   uint16 // All for all
	side   Side   // 0 for both
	at     uint16 // next: book, place, and the orders of its queue from slot on, then those
	place  uint8  // with keys from key on
	inside bool   // slot counts, 0 at the end of the queue
	kill   bool
	lapse  bool
	key    uint32
	slot   uint32
	// parties has a bit for each party that is included; nil: all orders. Of a lapse it has one
	// for each owner, from owner on.
	parties []uint64
}

// why is the reason of its cancels.
func (s *sweep) why() Reason {
	switch {
	case s.kill:
		return Killed
	case s.lapse:
		return Disconnected
	}
	return MassCancelling
}

// full reports whether there is no place for a further mass cancel.
func (e *Engine) full(kill, lapse bool) bool {
	n := 0
	for i := range e.sweeps {
		if e.sweeps[i].kill == kill && e.sweeps[i].lapse == lapse {
			n++
		}
	}
	switch {
	case kill:
		return n == maxKills
	case lapse:
		return n == maxLapses
	}
	return n == maxSweeps
}

// Full reports whether a further mass cancel is refused: as many as there may be are pending.
func (e *Engine) Full() bool { return e.full(false, false) }

// LapsesFull reports whether a further lapse is refused.
func (e *Engine) LapsesFull() bool { return e.full(false, true) }

// Kills returns how many mass cancels of the kill switch are pending, and how many can be.
func (e *Engine) Kills() (pending, most int) {
	for i := range e.sweeps {
		pending += int(b2u(e.sweeps[i].kill))
	}
	return pending, maxKills
}

// massCancel is MassCancel.
func (e *Engine) massCancel(op *Op) {
	switch {
	case op.Book != All && e.lookup(op.Book) == nil:
		e.reject(op, UnknownInstrument)
		return
	case op.Side > Sell:
		e.reject(op, BadField)
		return
	case len(op.Parties) > maxParties/64 || op.Parties != nil && !op.Kill && !op.Lapse || op.Lapse && (op.Kill || op.Parties == nil):
		e.reject(op, BadField)
		return
	case e.full(op.Kill, op.Lapse):
		e.reject(op, Busy)
		return
	}
	s := sweep{id: op.ID, prio: e.prio, owner: op.Owner, group: op.Group, book: op.Book, side: op.Side, kill: op.Kill, lapse: op.Lapse, parties: op.Parties}
	if op.Book != All {
		s.at = op.Book
	}
	r := e.record(Accepted, op.Book)
	r.Order, r.Owner, r.Side, r.Reason = op.ID, s.asks(), op.Side, s.why()
	e.sweeps = append(e.sweeps, s)
	if len(e.sweeps) == 1 {
		e.sweepSome()
	}
}

// doom returns the mass cancel that includes an order, nil for none.
func (e *Engine) doom(o *order) *sweep {
	if mutant(mutSweepLate) {
		return nil
	}
	for i := range e.sweeps {
		if s := &e.sweeps[i]; s.includes(o) && !(s.kill && mutant(mutKilledTrades)) {
			return s
		}
	}
	return nil
}

// asks returns the owner whose orders a mass cancel is of, 0 for those of several.
func (s *sweep) asks() uint32 {
	if s.lapse {
		return 0
	}
	return s.owner
}

func (s *sweep) includes(o *order) bool {
	return o.prio <= s.prio && s.whose(o) && (s.group == 0 || s.group == o.group) &&
		(s.book == All || s.book == o.book) && (s.side == 0 || s.side == o.side())
}

// whose reports whether an order is of those that are included.
func (s *sweep) whose(o *order) bool {
	if s.lapse {
		return o.owner >= s.owner && s.bit(o.owner-s.owner)
	}
	return (s.owner == 0 || s.owner == o.owner) && (s.parties == nil || s.has(o.party))
}

// has reports whether a party is included. Party 0, which is none, never is.
func (s *sweep) has(party uint32) bool { return party != 0 && s.bit(party) }

func (s *sweep) bit(n uint32) bool {
	return int(n>>6) < len(s.parties) && s.parties[n>>6]>>(n&63)&1 != 0
}

// sweepOut cancels an order for a mass cancel. The caller writes the aggregate.
func (e *Engine) sweepOut(slot uint32, s *sweep) {
	s.count++
	e.pull(slot, s.why(), s.id)
}

// proceed is Continue: the pending book with the lowest number, or else a part of the
// first mass cancel.
func (e *Engine) proceed() {
	if e.nBusy > 0 {
		for i, w := range e.busy {
			if w != 0 {
				e.resumeBook(uint16(i<<6 + bits.TrailingZeros64(w)))
				return
			}
		}
	}
	if len(e.sweeps) > 0 {
		e.sweepSome()
	}
}

// resumeBook goes on with an auction or with stops.
func (e *Engine) resumeBook(n uint16) {
	b := &e.books[n]
	if b.state == Uncrossing {
		e.uncrossSome(n, b)
	} else {
		e.runStops(n, b)
	}
}

// sweepSome visits some orders of the first mass cancel: books by number, buys before
// sells, limit orders before stops before market orders, best price first, oldest first.
// A queue and a place count as a visit each.
func (e *Engine) sweepSome() {
	s := &e.sweeps[0]
	for e.work < e.cfg.Work {
		if s.inside {
			e.sweepQueue(s)
			continue
		}
		if !e.sweepNext(s) {
			r := e.record(MassCancelled, s.book)
			r.Order, r.Owner, r.Side, r.Cum = s.id, s.asks(), s.side, int64(s.count)
			copy(e.sweeps, e.sweeps[1:])
			e.sweeps = e.sweeps[:len(e.sweeps)-1]
			return
		}
	}
}

// sweepNext goes to the next queue. It reports false behind the last.
func (e *Engine) sweepNext(s *sweep) bool {
	if int(s.at) >= len(e.books) || s.book != All && s.at != s.book {
		return false
	}
	b := &e.books[s.at]
	e.work++
	if b.span == 0 || s.place >= places {
		s.at, s.place, s.key = s.at+1, 0, 0
		return true
	}
	key := uint32(0)
	if s.place < placeMarket {
		key = b.ladders[s.place].next(s.key)
	} else if s.key != 0 || b.market[s.place-placeMarket].head == 0 {
		key = none
	}
	if key == none {
		s.place, s.key = s.place+1, 0
		return true
	}
	s.key, s.inside, s.slot = key, true, e.level(b, s.place, key).head
	return true
}

// sweepQueue visits the orders of a queue.
func (e *Engine) sweepQueue(s *sweep) {
	at, place, key := s.at, s.place, s.key
	pulled := false
	for s.slot != 0 && e.orders[s.slot].prio <= s.prio && e.work < e.cfg.Work {
		e.work++
		slot := e.victim(s)
		if o := &e.orders[slot]; s.includes(o) {
			e.sweepOut(slot, s) // moves s.slot on
			pulled = true
		} else {
			s.slot = o.next
		}
	}
	if s.slot == 0 || e.orders[s.slot].prio > s.prio {
		s.inside, s.slot, s.key = false, 0, key+1
	}
	if pulled {
		e.levelData(at, place, key)
	}
}
