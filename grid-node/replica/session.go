package replica

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// seat is a primary's state of a session beside the log's.
type seat struct {
	expected uint64 // next clientSeq not seen yet, 0 before the first
	conn     uint64 // the connection that opened it last, 0 for none since the take-over
	client   uint64 // its client, see evict.go
	attempt  uint64 // of that OpenSession
	wants    bool   // and it asked for executions
}

// SessionBytes returns the memory of a session with this window, for store.Options: its
// live state, and that at the base of the log.
func SessionBytes(window int) int64 {
	return 2*machine.SessionBytes(window) + int64(unsafe.Sizeof(seat{}))
}

// bind fences off every connection but conn: requests sent on another one, which may be in
// flight, are rejected from now on. A delayed OpenSession must not undo that: its attempt
// is lower.
func (s *seat) bind(conn uint64, m *wire.OpenSession) bool {
	if m.Attempt < s.attempt || m.Attempt == s.attempt && conn != s.conn && !mutant(mutAttemptEqual) {
		return false
	}
	s.conn, s.attempt = conn, m.Attempt
	return true
}

// openSession opens a session by a log entry, or finds an existing one.
func (r *Replica) openSession(conn, client uint64, frame []byte) error {
	var m wire.OpenSession
	if err := wire.DecodeOpenSession(frame, &m); err != nil {
		return err
	}
	if !r.serves(m.Epoch) {
		r.notPrimary(conn, wire.TypeOpenSession, m.ReqID, 0)
		return nil
	}
	if r.refusesClients(conn, wire.TypeOpenSession, m.ReqID, 0) {
		return nil
	}
	r.wants = frame[5]&wire.FlagExecutions != 0
	id := [2]uint64{m.IDHi, m.IDLo}
	if slot, ok := r.live.Sessions.SlotOf(id); ok {
		r.reopen(conn, client, &m, slot)
		return nil
	}
	if r.parking() && r.park(conn, m.ReqID, 0, wire.TypeOpenSession) {
		return nil
	}
	last, _ := r.store.Last()
	slot, evict, ok := r.chooseSlot(client)
	switch {
	case r.stopping:
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeDraining, 0, 0, "the node is stopping; retry")
	case len(r.cfg.InSync) < r.opt.MinInSync:
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeInsufficientInSync, 0, uint64(len(r.cfg.InSync)), "fewer in-sync copies than spec.minInSync; retry later")
	case !ok || r.parking() || r.windowFull():
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeOverloaded, 0, last-r.commit, "too many entries wait for replication; retry")
	default:
		r.logSession(conn, client, &m, slot, evict)
	}
	return nil
}

func (r *Replica) logSession(conn, client uint64, m *wire.OpenSession, slot uint32, evict bool) {
	id := [2]uint64{m.IDHi, m.IDLo}
	generation := uint32(1)
	if evict {
		generation = r.live.Sessions.At(slot).Generation + 1
	}
	e := order.Entry{Kind: order.KindSessionOpen, Session: slot, ClientSeq: uint64(generation)}
	var payload [16]byte
	le.PutUint64(payload[:], id[0])
	le.PutUint64(payload[8:], id[1])
	if err := r.append(&e, payload[:], 0, pending{conn: conn, requestID: m.ReqID, slot: slot, kind: pendingOpen}); err != nil {
		r.rejectAppend(conn, wire.TypeOpenSession, m.ReqID, 0, err)
		return
	}
	r.count.SessionsOpened++
	if evict {
		r.count.SessionsEvicted++
	}
	r.seats.at(slot).bind(conn, m)
	r.seats.at(slot).wants = r.wants
	r.seats.own(slot, client)
}

// reopen answers for an existing session. LastClientSeq must not come from a replaced
// primary, so the answer is confirmed like a read. Bound from now on, the session cannot
// advance in the meantime.
func (r *Replica) reopen(conn, client uint64, m *wire.OpenSession, slot uint32) {
	s, seat, reqID := r.live.Sessions.At(slot), r.seats.at(slot), m.ReqID
	if !seat.bind(conn, m) {
		r.reject(conn, wire.TypeOpenSession, reqID, slot, wire.CodeSessionMoved, 0, seat.attempt, "attempt is not higher than that of the connection that opened the session last; open it with a higher one")
		return
	}
	r.seats.own(slot, client)
	seat.wants = r.wants
	if s.Touched > r.commit {
		if p := r.primary.pend.at(s.Touched); p.seq == s.Touched && p.kind == pendingOpen {
			p.conn, p.requestID = conn, reqID
			return
		}
	}
	r.confirm(read{conn: conn, reqID: reqID, kind: readSession, slot: slot, seq: s.Last, commit: uint64(s.Generation), need: s.Touched})
}

func (r *Replica) sessionOpened(conn, reqID uint64, slot, generation uint32, last uint64) {
	off := len(r.out.buf)
	r.out.buf = wire.AppendSessionOpened(r.out.buf, r.part, &wire.SessionOpened{
		ReqID: reqID, Slot: slot, Generation: generation, Window: uint32(r.live.Sessions.Window()), LastClientSeq: last, Epoch: r.epoch,
	})
	r.out.reply(conn, off, nil)
}
