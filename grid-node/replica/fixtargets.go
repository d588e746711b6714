package replica

import (
	"bytes"
	"errors"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Which FIX sessions get copies of the reports of others, and of which: an entry says so, which a
// gateway asks for behind the Logon of such a session.

// DropCopyTarget is a FIX session that gets copies.
type DropCopyTarget struct {
	Slot    uint32
	Session machine.FixSession
	Sources int
	Since   uint64 // the entry that named them; 0 if it is before the snapshot that this replica began with
	Bound   bool   // a gateway has it open here, at the primary
}

// DropCopies returns the sessions that get copies, by all that is stored here.
func (r *Replica) DropCopies() (list []DropCopyTarget) {
	r.live.Fix.EachDropCopy(func(slot uint32, sources []byte, since uint64) {
		list = append(list, DropCopyTarget{Slot: slot, Session: *r.live.Fix.At(slot), Sources: order.CountSources(sources), Since: since,
			Bound: r.role == RolePrimary && r.fix.at(slot).conn != 0})
	})
	return list
}

// DropCopyTargets returns how many there are.
func (r *Replica) DropCopyTargets() int { return r.live.Fix.DropCopies() }

// refusesCopies returns why a session cannot be opened as one that gets copies.
func (r *Replica) refusesCopies(m *wire.FixOpen, slot uint32, found bool) (code wire.Code, text string) {
	switch {
	case m.Flags&wire.FixOpenCopies == 0:
		return 0, ""
	case !r.allKnow(wire.FeatureDropCopy):
		return wire.CodeOverloaded, "a member of the partition has not said that it knows drop copies, or does not; retry when all nodes are updated"
	case (!found || r.live.Fix.Sources(slot) == nil) && r.copiesFull():
		return wire.CodeUnsupported, copiesFullText
	}
	return 0, ""
}

const copiesFullText = "the partition has drop copies for 16 sessions, allowed: no more; dropCopies in /status of its primary lists them: " +
	"take the drop copy of one out of the configuration, leave the session in the file, and have it log on once"

// copiesFull reports whether there is no place for a further session that gets copies.
func (r *Replica) copiesFull() bool {
	_, idle := r.idleTarget()
	return r.live.Fix.DropCopies() == machine.MaxDropCopies && !idle
}

// idleTarget returns the session with the oldest day that gets copies and is not open, nor of the
// last days: it makes room for another one.
func (r *Replica) idleTarget() (slot uint32, ok bool) {
	today := uint32(max(r.now.Wall, 0) / (24 * 3600 * 1e9))
	oldest := max(today, fixKept) - fixKept
	r.live.Fix.EachDropCopy(func(s uint32, _ []byte, _ uint64) {
		if day := r.live.Fix.At(s).Day; day < oldest && r.fix.at(s).conn == 0 {
			slot, oldest, ok = s, day, true
		}
	})
	return slot, ok
}

// endsCopies reports whether an opening ends the copies of its session: the Logon is taken, and its gateway is not
// configured with them.
func (r *Replica) endsCopies(m *wire.FixOpen, slot uint32) bool {
	late := m.Flags&wire.FixOpenLate != 0 && !mutant(mutCopyEndedLate)
	return m.Flags&wire.FixOpenCopies == 0 && !late && r.live.Fix.Sources(slot) != nil && !mutant(mutCopyKept)
}

// endCopies logs that a session gets no copies any more.
func (r *Replica) endCopies(slot uint32) error {
	s := r.live.Fix.At(slot)
	m := order.DropCopy{Op: order.DropCopySources, Slot: slot, Generation: s.Generation, Attempt: s.Attempt}
	r.fix.taken = m.Append(r.fix.taken[:0])
	return r.append(&order.Entry{Kind: order.KindDropCopy}, r.fix.taken, 0, pending{})
}

// fixSources gives a session that gets copies its sources, by an entry unless it has them.
func (r *Replica) fixSources(conn uint64, m *wire.FixStep) {
	q := &m.Records[0]
	s, _, code := r.seated(conn, q.Slot, q.Generation, q.Attempt)
	switch {
	case code != 0:
		r.sayStepped(conn, &wire.FixStepped{ReqID: m.ReqID, Records: append(r.fix.said[:0], wire.FixNumber{Slot: q.Slot, Code: code})})
		return
	case bytes.Equal(r.live.Fix.Sources(q.Slot), q.Body):
		last, _ := r.store.Last()
		if mutant(mutCopyNamedAhead) {
			r.sourcesKnown(&read{conn: conn, reqID: m.ReqID, slot: q.Slot, seq: uint64(q.Generation), commit: uint64(q.Attempt)})
			return
		}
		r.confirm(read{conn: conn, reqID: m.ReqID, kind: readFixSources, slot: q.Slot, seq: uint64(q.Generation), commit: uint64(q.Attempt), need: last})
		return
	}
	refuse := func(code wire.Code, why string) { r.reject(conn, wire.TypeFixStep, m.ReqID, 0, code, 0, 0, why) }
	if !r.allKnow(wire.FeatureDropCopy) {
		refuse(wire.CodeOverloaded, "a member of the partition has not said that it knows drop copies, or does not; retry when all nodes are updated")
		return
	}
	c := order.DropCopy{Op: order.DropCopySources, Slot: q.Slot, Generation: s.Generation, Attempt: s.Attempt, Sources: q.Body}
	r.fix.taken = c.Append(r.fix.taken[:0])
	e := order.Entry{Kind: order.KindDropCopy}
	err := order.CheckSources(q.Body)
	if err == nil {
		err = r.live.Check(&e, r.fix.taken)
	}
	if errors.Is(err, machine.ErrDropCopiesFull) {
		idle, ok := r.idleTarget()
		if !ok {
			refuse(wire.CodeUnsupported, copiesFullText)
			return
		}
		if err = r.endCopies(idle); err != nil {
			r.rejectAppend(conn, wire.TypeFixStep, m.ReqID, 0, err)
			return
		}
		r.fix.taken = c.Append(r.fix.taken[:0])
	}
	if err != nil {
		refuse(wire.CodeUnsupported, err.Error())
		return
	}
	if err := r.append(&e, r.fix.taken, 0, pending{conn: conn, requestID: m.ReqID, slot: q.Slot, kind: pendingFixSources}); err != nil {
		r.rejectAppend(conn, wire.TypeFixStep, m.ReqID, 0, err)
	}
}

// sourcesKnown answers a gateway whose session has these sources already: all that was stored then
// is committed.
func (r *Replica) sourcesKnown(rd *read) {
	n := wire.FixNumber{Slot: rd.slot}
	if _, seat, code := r.seated(rd.conn, rd.slot, uint32(rd.seq), uint32(rd.commit)); code != 0 {
		n.Code = code
	} else {
		n.First = seat.next
	}
	r.sayStepped(rd.conn, &wire.FixStepped{ReqID: rd.reqID, Records: append(r.fix.said[:0], n)})
}

// sourcesCommitted answers for the sources of a session that are committed now.
func (r *Replica) sourcesCommitted(p *pending, entry []byte) {
	r.sayStepped(p.conn, &wire.FixStepped{ReqID: p.requestID, Entry: order.Seq(entry), TimeNs: order.Received(entry),
		Records: append(r.fix.said[:0], wire.FixNumber{Slot: p.slot, First: r.fix.at(p.slot).next})})
}

// FixSources returns the sources of a FIX session that gets copies. It is for the simulator.
func (r *Replica) FixSources(slot uint32) []byte { return r.live.Fix.Sources(slot) }
