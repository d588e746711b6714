package replica

import (
	"fmt"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FIX sessions, see docs/adr/0044: both numbers of a session are state of the log, so that
// any gateway continues any session. This file opens them; fixsubmit.go has orders,
// fixstep.go the numbers of other messages, fixresend.go the reports again.

// fixSessions is a replica's state of FIX sessions beside the log's. A partition without
// one has empty slices.
type fixSessions struct {
	seats                []fixSeat // by slot
	pages                []fixPages
	copies               fixCopies
	record, symbol, body []byte           // scratch, of a report
	step                 wire.FixStep     // scratch
	taken                []byte           // scratch: the payload of an entry
	said                 []wire.FixNumber // scratch
	lookAt               int64            // Mono of the next look at seats, see fixlapse.go
	waits                bool             // the grace of a session is counted
}

// fixSeat binds a FIX session to a connection. Numbers leave at commit, in the order of
// entries, so the next one is known without a look at the entry.
type fixSeat struct {
	conn     uint64 // the connection that opened it, 0 for none since the take-over
	admitted uint64 // the last MsgSeqNum that was admitted; at first the one before In
	next     uint64 // the first number that is not committed, once the opening is
	opening  bool   // FixOpened was not sent yet: nothing else is admitted
	late     bool   // its Logon is refused: its counterparty is not there
	goneNs   int64  // Mono since which it is known to have no connection, 0 if it has one, or is not looked at
	probedNs int64  // when its gateway was asked whether its counterparty is there, 0 if it was not since it answered
}

// FixBytes returns the memory of a FIX session for store.Options: its live state, that at
// the base of the log, its seat, and the page that its last reports are on.
func FixBytes() int64 {
	return 2*machine.FixBytes() + int64(unsafe.Sizeof(fixSeat{})+unsafe.Sizeof(fixPages{})+unsafe.Sizeof(fixPage{})) + 8
}

func (x *fixSessions) at(slot uint32) *fixSeat {
	for int(slot) >= len(x.seats) {
		x.seats = append(x.seats, fixSeat{})
	}
	return &x.seats[slot]
}

// forget unbinds all sessions on a new primary.
func (x *fixSessions) forget() {
	clear(x.seats)
	x.lookAtSeats()
}

// fixDayAhead is how far ahead of the clock a day may begin, in nanoseconds: 36 hours.
const fixDayAhead = 36 * 3600 * int64(1e9)

// knowFix reports whether every replica knows entries of FIX sessions. Once there is one,
// all that hold it do.
func (r *Replica) knowFix() bool {
	if r.live.Fix.Slots() > 0 || mutant(mutFixUnasked) {
		return true
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; !p.knowsFix && !r.gone(p) {
			return false
		}
	}
	return true
}

// fixOpen opens a FIX session by an entry, or binds one whose attempt the gateway holds.
func (r *Replica) fixOpen(conn uint64, frame []byte) error {
	var m wire.FixOpen
	if err := wire.DecodeFixOpen(frame, &m); err != nil {
		return err
	}
	if !r.admitsFix(conn, wire.TypeFixOpen, m.ReqID, 0, m.Epoch) {
		return nil
	}
	reject := func(code wire.Code, detail uint64, format string, args ...any) error {
		r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, code, 0, detail, fmt.Sprintf(format, args...))
		return nil
	}
	slot, found := r.live.Fix.SlotOf([2]uint64{m.IDHi, m.IDLo})
	var s machine.FixSession
	var seat fixSeat
	if found {
		s, seat = *r.live.Fix.At(slot), *r.fix.at(slot)
	}
	switch begins := int64(m.Day) * 24 * 3600 * 1e9; {
	case !r.knowFix():
		return reject(wire.CodeUnsupported, 0, "a member of the partition does not know FIX sessions, allowed: when all nodes are updated")
	case m.Mode != 0 && r.execs == nil:
		return reject(wire.CodeUnsupported, 0, "cancelOnDisconnect of the session has mode %d; the grid stores orders and does not execute them, so it has none to cancel, allowed: mode None, or a grid that matches (spec.execution)", m.Mode)
	case m.Mode != 0 && !r.allKnow(wire.FeatureLapse):
		return reject(wire.CodeOverloaded, 0, "a member of the partition has not said that it knows sessions with cancelOnDisconnect, or does not; retry when all nodes are updated")
	case m.Flags&wire.FixOpenFix50 != 0 && m.Held == 0 && !r.fix50 && !r.allKnow(wire.FeatureFix50):
		r.rejectVersion(conn, wire.TypeFixOpen, m.ReqID, 0)
		return nil
	case begins-r.now.Wall > fixDayAhead:
		return reject(wire.CodeBadFIX, 0, "day %d begins more than 36 h from now, allowed: a day that has begun, or the next", m.Day)
	case m.Held != 0 && (!found || s.Attempt != m.Held || s.Day != m.Day || m.Flags&wire.FixOpenReset != 0):
		return reject(wire.CodeSessionMoved, uint64(s.Attempt), "attempt %d is not the last, or not of this day: open the session anew, with a Logon", m.Held)
	case m.Held == 0 && seat.opening && seat.conn == conn && s.Touched > r.commit:
		return reject(wire.CodeOverloaded, 0, "the session is being opened on this connection; wait for the answer")
	case m.Held == 0 && seat.conn != 0 && seat.conn != conn && m.Flags&wire.FixOpenTake == 0 && !r.fixGone(slot, s.Attempt):
		return reject(wire.CodeSessionMoved, uint64(s.Attempt), "the session is open on another connection, whose gateway was asked whether its counterparty is there; ask again, or take it")
	case m.Held != 0:
		*r.fix.at(slot) = fixSeat{conn: conn, opening: true, next: seat.next}
		r.confirm(read{conn: conn, reqID: m.ReqID, kind: readFixSession, slot: slot, seq: uint64(s.Generation), commit: uint64(s.Attempt), need: s.Touched})
		return nil
	}
	if code, text := r.refusesCopies(&m, slot, found); code != 0 {
		return reject(code, 0, "%s", text)
	}
	if r.holdsFix(conn, wire.TypeFixOpen, m.ReqID, 0) {
		return nil
	}
	if !found {
		if slot = r.live.Fix.Free(m.Day); int(slot) >= r.opt.Limits.FixSessions {
			if slot, found = r.fixIdle(m.Day); !found {
				return reject(wire.CodeOverloaded, uint64(r.opt.Limits.FixSessions), "the partition has %d FIX sessions, allowed: no more, and all of them are open or of the last %d days; it takes a grid with more partitions, or fewer sessions", r.opt.Limits.FixSessions, fixKept)
			}
			if !r.fixRemove(slot) {
				return reject(wire.CodeOverloaded, uint64(slot), "no memory is left to remove a FIX session that is not used")
			}
		}
	}
	r.logFixOpen(conn, &m, slot)
	return nil
}

// fixKept is how many days a session is kept that no gateway opens: longer than a session's
// week, and no longer than its numbers matter, since a later day begins with 1.
const fixKept = 14

// fixIdle returns the session that is removed for a new one of this day.
func (r *Replica) fixIdle(day uint32) (slot uint32, ok bool) {
	today := uint32(max(r.now.Wall, 0) / (24 * 3600 * 1e9))
	return r.live.Fix.Idle(min(day, max(today, fixKept)-fixKept), func(slot uint32) bool {
		return r.fix.at(slot).conn != 0 || r.live.Books != nil && r.live.Books.FixRests(slot) > 0
	})
}

// fixRemove logs the removal of a session. It is not answered to anybody.
func (r *Replica) fixRemove(slot uint32) bool {
	s := r.live.Fix.At(slot)
	r.fix.taken = order.AppendFixRecord(r.fix.taken[:0], &order.FixRecord{Slot: slot, Attempt: s.Attempt, Generation: s.Generation, In: s.In, Op: order.FixRemove})
	return r.append(&order.Entry{Kind: order.KindFix}, r.fix.taken, 0, pending{}) == nil
}

func (r *Replica) logFixOpen(conn uint64, m *wire.FixOpen, slot uint32) {
	o := order.FixOpening{ID: [2]uint64{m.IDHi, m.IDLo}, Day: m.Day, Form: m.Form, Flags: m.Flags & order.FixReset, SentNs: m.SentNs, Mode: order.LapseMode(m.Mode), GraceMs: m.GraceMs}
	if m.Flags&wire.FixOpenLate != 0 && m.Mode != 0 {
		o.Flags |= order.FixLate
	}
	rec, o, ok := r.live.Fix.Opening(o, slot, m.Seq)
	switch {
	case !ok:
		s := r.live.Fix.At(slot)
		if s.Day == m.Day {
			r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, wire.CodeSessionMoved, 52, uint64(s.Attempt), fmt.Sprintf("the Logon that resets the session was sent at %d, allowed: %d or later: another one was taken since", m.SentNs, s.LogonNs))
			return
		}
		day := s.Day
		r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, wire.CodeBadFIX, 0, uint64(day), fmt.Sprintf("day is %d, allowed: %d or later: the session has begun that day", m.Day, day))
		return
	case o.Mode != order.LapseNever && o.Form < fixLapse:
		r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, wire.CodeUnsupported, 0, uint64(o.Form), "the session's numbers began without cancelOnDisconnect; log on with ResetSeqNumFlag=Y, or set it between days")
		return
	case m.Flags&wire.FixOpenCopies != 0 && o.Form < machine.FixCopiesForm:
		r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, wire.CodeUnsupported, 0, uint64(o.Form), "the session's numbers began without drop copies; log on with ResetSeqNumFlag=Y, or set them between days")
		return
	case m.Seq != 0 && m.Seq < r.fixExpects(slot, rec.Generation):
		r.reject(conn, wire.TypeFixOpen, m.ReqID, 0, wire.CodeSequenceGap, 34, rec.In, fmt.Sprintf("MsgSeqNum of the Logon is %d, allowed: %d or more", m.Seq, rec.In))
		return
	}
	if r.endsCopies(m, slot) {
		if err := r.endCopies(slot); err != nil { // before the opening: once that is answered it is committed
			r.rejectAppend(conn, wire.TypeFixOpen, m.ReqID, 0, err)
			return
		}
	}
	rec.Body = o.Append(r.text[:0])
	r.fix.taken = order.AppendFixRecord(r.fix.taken[:0], &rec)
	if err := r.append(&order.Entry{Kind: order.KindFix}, r.fix.taken, 0, pending{conn: conn, requestID: m.ReqID, slot: slot, kind: pendingFixOpen}); err != nil {
		r.rejectAppend(conn, wire.TypeFixOpen, m.ReqID, 0, err)
		return
	}
	seat := r.fix.at(slot) // what is under way still counts its numbers
	late := o.Flags&order.FixLate != 0
	*seat = fixSeat{conn: conn, admitted: rec.In - 1, next: seat.next, opening: true, late: late, goneNs: seat.gone(late)}
	if mutant(mutFixOpenUncommitted) {
		r.fixOpened(conn, m.ReqID, slot, r.commit, true)
	}
}

// fixExpects returns the number expected of a Logon that opens this generation.
func (r *Replica) fixExpects(slot, generation uint32) uint64 {
	if s := r.live.Fix.Find(slot, generation); s != nil {
		return s.In
	}
	return 1
}

// fixBound answers a FixOpen of the gateway that holds the attempt. When another one of that
// connection was answered before, entries may be under way since, whose numbers are not
// committed.
func (r *Replica) fixBound(conn, reqID uint64, slot uint32) {
	if seat := r.fix.at(slot); seat.conn == conn && !seat.opening && !mutant(mutFixBoundTwice) {
		r.reject(conn, wire.TypeFixOpen, reqID, slot, wire.CodeOverloaded, 0, 0, "a later request of this connection for the session was answered; retry if that answer was not taken")
		return
	}
	r.fixOpened(conn, reqID, slot, r.commit, false)
}

// fixOpened answers a FixOpen; what the session has is committed, but for reports of entries
// behind seq. With logon the last number is that of the answer to the Logon.
func (r *Replica) fixOpened(conn, reqID uint64, slot uint32, seq uint64, logon bool) {
	s, seat := r.live.Fix.At(slot), r.fix.at(slot)
	if seat.conn != conn {
		r.reject(conn, wire.TypeFixOpen, reqID, slot, wire.CodeSessionMoved, 0, uint64(s.Attempt), "the session was opened on another connection since")
		return
	}
	out, number := s.Out, uint64(0)
	if !mutant(mutFixOpenedAhead) {
		out -= r.reportsBehind(slot, seq)
	}
	if !mutant(mutCopyOpenedAhead) {
		out -= r.copiesBehind(slot, seq)
	}
	if logon {
		number = out - 1
	}
	*seat = fixSeat{conn: conn, admitted: s.In - 1, next: out, late: seat.late, goneNs: seat.gone(seat.late)}
	off := len(r.out.buf)
	r.out.buf = wire.AppendFixOpened(r.out.buf, r.part, &wire.FixOpened{
		ReqID: reqID, Slot: slot, Generation: s.Generation, Attempt: s.Attempt, Day: s.Day, In: s.In, Out: out,
		Number: number, Epoch: r.epoch, Lineage: uint32(r.cfg.Lineage), Form: s.Form, Mode: uint8(s.Mode), Copies: 1,
	})
	r.out.reply(conn, off, nil)
}

// admitsFix answers a request that another replica, or another site, has to answer.
func (r *Replica) admitsFix(conn uint64, t wire.Type, id uint64, slot uint32, epoch uint64) bool {
	if !r.serves(epoch) {
		r.notPrimary(conn, t, id, slot)
		return false
	}
	return !r.refusesClients(conn, t, id, slot)
}

// holdsFix answers a request that no entry can be made for now: it is sent again.
func (r *Replica) holdsFix(conn uint64, t wire.Type, id uint64, slot uint32) bool {
	last, _ := r.store.Last()
	if r.parking() && r.park(conn, id, slot, t) {
		return true
	}
	switch {
	case r.stopping:
		r.reject(conn, t, id, slot, wire.CodeDraining, 0, 0, "the node is stopping; retry")
	case len(r.cfg.InSync) < r.opt.MinInSync:
		r.reject(conn, t, id, slot, wire.CodeInsufficientInSync, 0, uint64(len(r.cfg.InSync)), "fewer in-sync copies than spec.minInSync; retry later")
	case r.parking() || r.windowFull() || r.primary.pend.bytes > r.opt.Limits.InFlightBytes:
		r.reject(conn, t, id, slot, wire.CodeOverloaded, 0, last-r.commit, "too many entries wait for replication; retry, slower")
	default:
		return false
	}
	return true
}

// seated returns the session of a frame, if it is open on this connection in that attempt;
// otherwise why it is not.
func (r *Replica) seated(conn uint64, slot, generation, attempt uint32) (*machine.FixSession, *fixSeat, wire.Code) {
	s := r.live.Fix.Find(slot, generation)
	if s == nil {
		return nil, nil, wire.CodeSessionUnknown
	}
	seat := r.fix.at(slot)
	if (seat.conn != conn || s.Attempt != attempt) && !mutant(mutFixFenceIgnored) || seat.opening {
		return s, seat, wire.CodeSessionMoved
	}
	return s, seat, 0
}

// FixSession returns the state of a FIX session, up to the last entry that is stored here.
func (r *Replica) FixSession(id [2]uint64) (machine.FixSession, bool) {
	slot, ok := r.live.Fix.SlotOf(id)
	if !ok {
		return machine.FixSession{}, false
	}
	return *r.live.Fix.At(slot), true
}
