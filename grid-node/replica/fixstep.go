package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixStep takes numbers of several sessions with one entry. In of a record claims that
// the gateway has handled all below it, so it is admitted only behind what was submitted.
func (r *Replica) fixStep(conn uint64, frame []byte) error {
	m := &r.fix.step
	if err := wire.DecodeFixStep(frame, m); err != nil {
		return err
	}
	if !r.admitsFix(conn, wire.TypeFixStep, m.ReqID, 0, m.Epoch) || r.holdsFix(conn, wire.TypeFixStep, m.ReqID, 0) {
		return nil
	}
	if m.Records[0].Op == wire.FixStepCopies {
		r.fixSources(conn, m)
		return nil
	}
	payload, refused := r.fix.taken[:0], r.fix.said[:0]
	for i := range m.Records {
		q := &m.Records[i]
		if n := r.fixRecordRefused(conn, q); n.Code != 0 {
			refused = append(refused, n)
			continue
		}
		op := order.FixOp(q.Op)
		if op == order.FixLeave && r.live.Fix.At(q.Slot).Mode == order.LapseNever {
			op = order.FixStep
		}
		payload = order.AppendFixRecord(payload, &order.FixRecord{
			Slot: q.Slot, Attempt: q.Attempt, Generation: q.Generation, In: q.In, Op: op, Outs: q.Outs, Body: q.Body,
		})
	}
	r.fix.taken, r.fix.said = payload, refused
	if len(refused) > 0 {
		r.sayStepped(conn, &wire.FixStepped{ReqID: m.ReqID, Records: refused})
	}
	if len(payload) == 0 {
		return nil
	}
	if err := r.append(&order.Entry{Kind: order.KindFix}, payload, 0, pending{conn: conn, requestID: m.ReqID, kind: pendingFixStep}); err != nil {
		r.rejectAppend(conn, wire.TypeFixStep, m.ReqID, 0, err)
		return nil
	}
	r.fixRefused(payload)
	if last, _ := r.store.Last(); mutant(mutFixStepUncommitted) {
		p := r.primary.pend.take(last)
		r.fixStepped(&p, r.store.Get(last))
	}
	return nil
}

// fixRefused moves the sessions of refusals on: what comes behind one names it, so that it
// is not admitted when the refusal was not.
func (r *Replica) fixRefused(payload []byte) {
	if mutant(mutFixRefusalUnchained) {
		return
	}
	for rest := payload; len(rest) > 0; {
		var rec order.FixRecord
		if rest = order.NextFix(rest, &rec); rec.Op == order.FixRefusal {
			r.fix.at(rec.Slot).admitted = rec.In - 1
		}
	}
}

// fixRecordRefused returns why a record is not admitted; Code 0 if it is.
func (r *Replica) fixRecordRefused(conn uint64, q *wire.FixStepRecord) wire.FixNumber {
	s, seat, code := r.seated(conn, q.Slot, q.Generation, q.Attempt)
	switch {
	case code == wire.CodeSessionUnknown:
		return wire.FixNumber{Slot: q.Slot, Code: code}
	case code != 0:
		return wire.FixNumber{Slot: q.Slot, Code: code, First: uint64(s.Attempt)}
	case q.Prev != seat.admitted && !mutant(mutFixPrevUnchecked), q.In < s.In, order.FixOp(q.Op) == order.FixRefusal && q.In == s.In:
		return wire.FixNumber{Slot: q.Slot, Code: wire.CodeSequenceGap, First: seat.admitted}
	}
	return wire.FixNumber{}
}

// fixStepped answers for the records of an entry that is committed now.
func (r *Replica) fixStepped(p *pending, entry []byte) {
	m := wire.FixStepped{ReqID: p.requestID, Entry: order.Seq(entry), TimeNs: order.Received(entry), Records: r.fix.said[:0]}
	for rest := order.Payload(entry); len(rest) > 0; {
		var rec order.FixRecord
		rest = order.NextFix(rest, &rec)
		seat := r.fix.at(rec.Slot)
		m.Records = append(m.Records, wire.FixNumber{Slot: rec.Slot, First: seat.next})
		seat.next += uint64(rec.Outs)
	}
	r.fix.said = m.Records
	r.sayStepped(p.conn, &m)
}

func (r *Replica) sayStepped(conn uint64, m *wire.FixStepped) {
	off := len(r.out.buf)
	r.out.buf = wire.AppendFixStepped(r.out.buf, r.part, m)
	r.out.reply(conn, off, nil)
}
