package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A FIX session asks for the state of an order by an OrderStatusRequest (H). The answer has a
// number, so it is an entry: what the order is at that place of the log. Asked for again it is
// the same, whatever the order did since.

// fixStatus is the first form of reports of which a generation's gateways know the answer to
// a status request (u16 5, u16 length of its OrdStatusReqID, u32 epoch, u64 entry of the order,
// that id, then the begin of the order as the log has it), and the state of an executed order.
const fixStatus = 4

// maxStatusID bounds the OrdStatusReqID (790) of a status request, which its answer repeats.
const maxStatusID = 128

// isStatusRequest reports whether a message that is no order asks for the state of one.
func isStatusRequest(msg []byte) bool { return string(order.TagValue(msg, 35)) == "H" }

// answerStatus makes the entry that answers a status request.
func (r *Replica) answerStatus(conn uint64, m *wire.FixSubmit, seat *fixSeat) {
	s, id := r.live.Fix.At(m.Slot), order.TagValue(m.Payload, 11)
	if s.Form < fixStatus {
		r.refuseFix(conn, m, seat, wire.CodeUnsupported, 35, 0, "the session began at a gateway that does not know status requests: log on with ResetSeqNumFlag=Y")
		return
	}
	if n := len(order.TagValue(m.Payload, 790)); n > maxStatusID {
		r.refuseFix(conn, m, seat, wire.CodeBadFIX, 790, 0, fmt.Sprintf("OrdStatusReqID (790) has %d bytes, allowed: at most %d", n, maxStatusID))
		return
	}
	if len(id) > 0 && len(id) <= order.MaxClOrdID {
		at, taken := r.store.FindHinted(r.store.HintFix(id, m.Slot, order.FixFlags(s.Day)), id)
		var entry []byte
		if taken {
			entry = r.store.At(at)
		}
		if b := r.appendState(r.text[:0], id, m, entry, 0); b != nil {
			r.logFixAnswer(conn, m, seat, b, pendingFixState)
			return
		}
	}
	r.refuseFix(conn, m, seat, wire.CodeBadFIX, 11, 0, "no order of the session has this ClOrdID (11) today, or its log is freed")
}

// appendState appends the record of the state of an order, nil if it is not known: its entry
// is nil if that is freed, or of a day before.
func (r *Replica) appendState(dst, id []byte, m *wire.FixSubmit, entry []byte, code wire.Code) []byte {
	if r.execs == nil {
		if entry == nil {
			return nil
		}
		payload := order.Payload(entry)
		if mutant(mutFixAgainAsSent) && code != 0 {
			payload = m.Payload
		}
		kind, second, request := uint16(3), uint16(code), []byte(nil)
		if code == 0 {
			request = order.TagValue(m.Payload, 790)
			kind, second = 5, uint16(len(request))
		}
		dst = le.AppendUint32(le.AppendUint16(le.AppendUint16(dst, kind), second), order.EpochOf(entry))
		dst = append(le.AppendUint64(dst, order.Seq(entry)), request...)
		return append(dst, payload[:min(len(payload), order.MaxFixBody-len(dst))]...)
	}
	f := order.FixReport{State: true, Message: m.Payload}
	owner := machine.FixOwner(m.Slot)
	if mutant(mutFixStateOfAny) && m.Slot > 0 {
		owner--
	}
	var rec match.Record
	if at, ok := r.live.Books.Find(id, owner); ok {
		f.ClOrdID = id
		r.restingState(&f, &rec, at)
	} else if entry == nil || !r.lastState(&f, &rec, order.Seq(entry)) {
		return nil
	}
	in := &r.live.Books.Instruments()[rec.Book]
	f.PriceDigits, f.QtyDigits, f.N = in.PriceDigits, in.QtyDigits, 1
	f.Record, f.Symbol = rec.AppendTo(r.fix.record[:0]), append(r.fix.symbol[:0], in.Symbol...)
	r.fix.record, r.fix.symbol = f.Record, f.Symbol
	return f.Append(dst)
}

// restingState sets the state of an order in a book, as the record of one that is accepted.
func (r *Replica) restingState(f *order.FixReport, rec *match.Record, at uint64) {
	b := r.live.Books
	if o, ok := b.Order(at); ok {
		f.First, f.Value = b.First(at), b.Value(at)
		*rec = match.Record{Kind: match.Accepted, Order: at, Owner: o.Owner, Book: o.Book, Side: o.Side, Price: o.Price, Leaves: o.Leaves, Cum: o.Cum}
	}
}

// lastState finds an order by an entry of it: the last record of one that has ended, or what
// the book has of it under a later ClOrdID. One whose first entry is freed is not known, and
// a cancel that was rejected is no order.
func (r *Replica) lastState(f *order.FixReport, rec *match.Record, seq uint64) bool {
	own := r.reports.answer(r.execs, seq)
	if own == nil || r.execs.records.at(own.exec).Kind == match.CancelRejected {
		return false
	}
	first := r.reports.answer(r.execs, own.first)
	if first == nil {
		return false
	}
	last := r.reports.list.at(first.last)
	if mutant(mutFixStateOfEntry) {
		last = own
	}
	*rec = *r.execs.records.at(last.exec)
	f.First, f.Value, f.ClOrdID = last.first, last.value, last.name[:last.size]
	switch id := rec.Order; rec.Kind {
	case match.Rejected, match.Cancelled:
		return true
	case match.Replaced:
		id = rec.Other
		fallthrough
	default:
		if rec.Leaves > 0 && !mutant(mutFixStateOfEntry) {
			r.restingState(f, rec, id)
		}
		return true
	}
}
