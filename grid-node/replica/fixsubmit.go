package replica

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixSubmit handles an order of a FIX session. It becomes an entry, or its refusal for good
// does; what can only be refused for now is not admitted, nor anything behind it.
func (r *Replica) fixSubmit(conn uint64, frame []byte) error {
	var m wire.FixSubmit
	if err := wire.DecodeFixSubmit(frame, &m); err != nil {
		return err
	}
	r.count.Submits++
	if !r.admitsFix(conn, wire.TypeFixSubmit, m.Seq, m.Slot, m.Epoch) {
		return nil
	}
	s, seat, code := r.seated(conn, m.Slot, m.Generation, m.Attempt)
	switch {
	case code == wire.CodeSessionUnknown:
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, code, 0, 0, "no such FIX session, or its generation is over; open it")
		return nil
	case code != 0:
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, code, 0, uint64(s.Attempt), "the FIX session is not open on this connection, or the attempt is not the last")
		return nil
	case m.Prev != seat.admitted && !mutant(mutFixPrevUnchecked) || m.Seq < s.In:
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeSequenceGap, 34, seat.admitted, fmt.Sprintf("prev is %d and MsgSeqNum %d, allowed: prev %d, the last that was admitted, and %d or more", m.Prev, m.Seq, seat.admitted, s.In))
		return nil
	}
	if r.holdsFix(conn, wire.TypeFixSubmit, m.Seq, m.Slot) || !r.admitMemory(conn, &wire.Submit{ClientSeq: m.Seq, Slot: m.Slot}) {
		return nil
	}
	r.acceptFix(conn, &m, seat)
	return nil
}

func (r *Replica) acceptFix(conn uint64, m *wire.FixSubmit, seat *fixSeat) {
	if limit := r.opt.Limits.MaxPayload; len(m.Payload) > limit {
		r.refuseFix(conn, m, seat, wire.CodeTooLarge, 0, uint64(limit), "the order is longer than the limit")
		return
	}
	if err := r.layouts.Parse(m.Payload, &r.order); err != nil {
		if err.Reason == order.ReasonMsgType && isStatusRequest(m.Payload) {
			r.answerStatus(conn, m, seat)
			return
		}
		if err.Reason == order.ReasonMsgType && isMassCancel(m.Payload) {
			r.massCancel(conn, m, seat)
			return
		}
		r.refuseFix(conn, m, seat, wire.CodeBadFIX, err.Tag, 0, err.Error())
		return
	}
	if r.awaitsVersion() {
		r.rejectVersion(conn, wire.TypeFixSubmit, m.Seq, m.Slot)
		return
	}
	f := &r.order.Fields
	id := m.Payload[f.ClOrdIDOff:][:f.ClOrdIDLen]
	flags := order.FixFlags(r.live.Fix.At(m.Slot).Day)
	hint := r.store.HintFix(id, m.Slot, flags)
	if mutant(mutFixIndexClOrdID) {
		hint = r.store.Hint(id)
	} else if mutant(mutFixIndexDayless) {
		hint = r.store.HintFix(id, m.Slot, order.FlagFix)
	}
	if at, dup := r.store.FindHinted(hint, id); dup {
		r.refuseFixTwice(conn, m, seat, r.store.At(at))
		return
	}
	if r.execs != nil {
		r.executeFix(conn, m, seat, flags, hint)
		return
	}
	kind := pendingFixSubmit
	e, msg := order.Entry{Kind: order.KindOrder, Flags: flags, Session: m.Slot, ClientSeq: m.Seq, Fields: *f}, m.Payload
	if r.decides() {
		d := r.decide(msg, &r.order)
		if d.Message == nil {
			r.refuseFix(conn, m, seat, wire.CodeFunctionRefused, 0, uint64(d.Reason), string(d.Text))
			return
		}
		if !bytes.Equal(msg, d.Message) {
			kind = pendingFixDecided
		}
		msg, e.Fields = d.Message, *d.Fields
	}
	if r.live.Guard != nil {
		if why := r.limited(&machine.Offer{Session: m.Slot, Fix: true, Message: msg, Fields: r.limits.hold(&e.Fields)}); why != limits.None {
			reason, text := r.limitText(why)
			r.refuseFix(conn, m, seat, wire.CodeLimitRefused, 0, reason, text)
			return
		}
	}
	if err := r.append(&e, msg, hint, pending{conn: conn, requestID: m.Seq, slot: m.Slot, kind: kind}); err != nil {
		r.rejectAppend(conn, wire.TypeFixSubmit, m.Seq, m.Slot, err)
		return
	}
	seat.admitted = m.Seq
}

// refuseFix refuses an order for good: by an entry, since its report has a number.
func (r *Replica) refuseFix(conn uint64, m *wire.FixSubmit, seat *fixSeat, code wire.Code, tag uint32, detail uint64, text string) {
	if mutant(mutFixRefusalUnlogged) {
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, code, tag, detail, text)
		seat.admitted = m.Seq
		return
	}
	r.logFixRefusal(conn, m, seat, code, order.AppendFixRefused(r.text[:0], uint16(reportedAs(code)), tag, detail, text, m.Payload))
}

// reportedAs returns the code that the record of a refusal has. That of a limit is the one of a function: gateways of
// all releases report its OrdRejReason, and of a limit's own code none (docs/adr/0095-the-reason-of-a-limit-is-that-of-the-log.md).
func reportedAs(code wire.Code) wire.Code {
	if code == wire.CodeLimitRefused && !mutant(mutFixReasonUntold) {
		return wire.CodeFunctionRefused
	}
	return code
}

// fixKnown is the first form of reports of which a generation's gateways know that an order
// was taken before: u16 3, u16 code, u32 epoch, u64 entry of the order, then the beginning of
// the order as the log has it.
const fixKnown = 2

// refuseFixTwice refuses an order whose ClOrdID the session has. A counterparty that says
// that it may have sent it before (PossResend) is told the state of that order in its place.
func (r *Replica) refuseFixTwice(conn uint64, m *wire.FixSubmit, seat *fixSeat, before []byte) {
	const code = wire.CodeDuplicateClOrdID
	known := uint8(fixKnown)
	if r.execs != nil {
		known = fixStatus
	}
	if string(order.TagValue(m.Payload, 97)) == "Y" && r.live.Fix.At(m.Slot).Form >= known && !mutant(mutFixAgainRefused) {
		f := &r.order.Fields
		if b := r.appendState(r.text[:0], m.Payload[f.ClOrdIDOff:][:f.ClOrdIDLen], m, before, code); b != nil {
			r.logFixRefusal(conn, m, seat, code, b)
			return
		}
	}
	r.refuseFix(conn, m, seat, code, 11, order.Seq(before), "an order of the session has this ClOrdID on this day")
}

// logFixRefusal appends the entry of a refusal; b is in r.text.
func (r *Replica) logFixRefusal(conn uint64, m *wire.FixSubmit, seat *fixSeat, code wire.Code, b []byte) {
	if r.logFixAnswer(conn, m, seat, b, pendingFixRefusal) {
		r.count.Rejects[min(int(code), len(r.count.Rejects)-1)]++
	}
}

// logFixAnswer appends the entry of a report that is no order's; b is in r.text.
func (r *Replica) logFixAnswer(conn uint64, m *wire.FixSubmit, seat *fixSeat, b []byte, kind pendingKind) bool {
	r.text = b
	s := r.live.Fix.At(m.Slot)
	r.fix.taken = order.AppendFixRecord(r.fix.taken[:0], &order.FixRecord{
		Slot: m.Slot, Attempt: s.Attempt, Generation: s.Generation, In: m.Seq + 1, Op: order.FixRefusal, Outs: 1, Body: b,
	})
	if err := r.append(&order.Entry{Kind: order.KindFix}, r.fix.taken, 0, pending{conn: conn, requestID: m.Seq, slot: m.Slot, kind: kind}); err != nil {
		r.rejectAppend(conn, wire.TypeFixSubmit, m.Seq, m.Slot, err)
		return false
	}
	seat.admitted = m.Seq
	return true
}

// fixCommitted answers the request of an entry that is committed now.
func (r *Replica) fixCommitted(p *pending, seq uint64) {
	entry := r.store.Get(seq)
	switch p.kind {
	case pendingFixOpen:
		s := r.live.Fix.At(p.slot)
		switch {
		case mutant(mutFixOpenUncommitted): // it was answered
		case s.Touched != seq && !mutant(mutFixOpenOther): // opened anew since, by this connection or another
			r.reject(p.conn, wire.TypeFixOpen, p.requestID, p.slot, wire.CodeSessionMoved, 0, uint64(s.Attempt), "the session was opened again since")
		default:
			r.fixOpened(p.conn, p.requestID, p.slot, seq, true)
		}
	case pendingFixStep:
		r.fixStepped(p, entry)
	case pendingFixSources:
		r.sourcesCommitted(p, entry)
	default:
		m := wire.FixAck{Seq: p.requestID, Slot: p.slot, Entry: seq, TimeNs: order.Received(entry), Epoch: order.EpochOf(entry)}
		switch p.kind {
		case pendingFixDecided: // its report is made from what the log has, now as after any resend
			if m.Body = order.Payload(entry); mutant(mutDecidedUnsaid) {
				m.Body = nil
			}
		case pendingFixRefusal, pendingFixState:
			var rec order.FixRecord
			order.NextFix(order.Payload(entry), &rec)
			switch m.Body = rec.Body; {
			case p.kind == pendingFixState:
			case le.Uint16(rec.Body) == order.FixExecuted:
				m.Code = wire.CodeDuplicateClOrdID
			default:
				m.Code = wire.Code(le.Uint16(rec.Body[2:]))
			}
		}
		seat := r.fix.at(p.slot)
		m.Number = seat.next
		seat.next++
		off := len(r.out.buf)
		r.out.buf = wire.AppendFixAck(r.out.buf, r.part, &m)
		r.out.reply(p.conn, off, nil)
	}
}
