package replica

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Orders of a FIX session are cancelled when its counterparty is gone for longer than its
// grace, see docs/adr/0079. Mode and grace are in the log, by the opening of the session. The
// connection that the session has at the primary is the lease; a new primary knows of none, so
// it counts the grace anew. What ends it is an entry: a session that logged on before that has
// a seat, and does not lapse; one that logs on behind it begins without the orders.

const (
	// fixLapse is the first form of reports of which a generation's gateways know the reason of
	// these cancels.
	fixLapse = 6
	// lapseLook is how often sessions are looked at, while there are some with a mode.
	lapseLook = int64(20 * time.Millisecond)
	// maxLapses bounds the sessions of an entry: 24 bytes each.
	maxLapses = 2048
)

// lookAtSeats has the sessions looked at with the next flush: one may have lost its connection.
func (x *fixSessions) lookAtSeats() { x.lookAt = 0 }

// logLapses makes the entry of the sessions whose grace is over, as a primary.
func (r *Replica) logLapses() {
	x := &r.live.Fix
	if x.Modes() == 0 {
		r.fix.waits = false
		return
	}
	if r.now.Mono < r.fix.lookAt {
		return
	}
	r.fix.lookAt = r.now.Mono + lapseLook
	payload := r.lapsedFix(r.fix.taken[:0])
	r.fix.taken = payload
	if len(payload) == 0 || !r.mayLogExecution() || r.live.Books.LapsesFull() {
		return // or later
	}
	if r.append(&order.Entry{Kind: order.KindFix}, payload, 0, pending{}) == nil { // else a full store: later
		r.count.FixLapses += uint64(len(payload) / order.FixRecordSize)
		for rest := payload; len(rest) > 0; {
			var rec order.FixRecord
			rest = order.NextFix(rest, &rec)
			r.fix.at(rec.Slot).conn = 0 // of one whose Logon was refused
		}
	}
}

// gone returns since when a session counts as gone that is opened: not at all, unless its Logon
// is refused.
func (seat *fixSeat) gone(late bool) int64 {
	if late || mutant(mutFixLapseOfLoss) {
		return seat.goneNs
	}
	return 0
}

// lapsedFix appends the records of the sessions whose grace is over. No one can log on to a
// partition that stops, moves, or has too few copies: the grace begins when it can.
func (r *Replica) lapsedFix(dst []byte) []byte {
	x := &r.live.Fix
	closed := r.stopping || r.parking() || len(r.cfg.InSync) < r.opt.MinInSync
	r.fix.waits = false
	for slot := range uint32(x.Slots()) {
		s := x.At(slot)
		if !s.CanLapse() || r.live.Books.FixRests(slot) == 0 {
			continue
		}
		seat := r.fix.at(slot)
		switch {
		case seat.conn != 0 && !seat.late && !mutant(mutFixLapseSeated):
			if !mutant(mutFixLapseOfLoss) {
				seat.goneNs = 0
			}
			continue
		case mutant(mutFixLapseForgotten) && seat.next == 0: // of a session that this primary has not seen
			continue
		case seat.goneNs == 0 || closed:
			seat.goneNs = max(r.now.Mono, 1)
		}
		if r.fix.waits = true; r.graceOver(s, seat) && len(dst) < maxLapses*order.FixRecordSize {
			dst = order.AppendFixRecord(dst, &order.FixRecord{Slot: slot, Attempt: s.Attempt, Generation: s.Generation, In: s.In, Op: order.FixLapse})
		}
	}
	return dst
}

func (r *Replica) graceOver(s *machine.FixSession, seat *fixSeat) bool {
	return r.now.Mono-seat.goneNs >= int64(s.GraceMs)*int64(time.Millisecond)
}

// awake counts the grace anew after this process was suspended: no one could log on.
func (x *fixSessions) awake(now int64) {
	for i := range x.seats {
		if x.seats[i].goneNs != 0 {
			x.seats[i].goneNs = now
		}
	}
}

// lapsesWait reports whether this primary counts the grace of a session.
func (r *Replica) lapsesWait() bool { return r.role == RolePrimary && r.fix.waits }

// FixSeated reports whether a FIX session has a connection here, other than for a refused Logon. It is for the simulator.
func (r *Replica) FixSeated(slot uint32) bool {
	return int(slot) < len(r.fix.seats) && r.fix.seats[slot].conn != 0 && !r.fix.seats[slot].late
}

// FixSlots returns how many slots of FIX sessions were used, FixAt the session of one. They are
// for the simulator.
func (r *Replica) FixSlots() int { return r.live.Fix.Slots() }

// FixAt is one of FixSlots.
func (r *Replica) FixAt(slot uint32) machine.FixSession { return *r.live.Fix.At(slot) }

// FixRests returns how many orders of a FIX session rest here. It is for the simulator.
func (r *Replica) FixRests(slot uint32) int { return r.live.Books.FixRests(slot) }
