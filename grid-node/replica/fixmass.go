package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A FIX session cancels its orders by an OrderMassCancelRequest (q), see docs/adr/0078: one
// entry, whose execution takes out what the session has in the books at that place of the log.
// Its report and those of the orders take their numbers there, as all executions do.

// fixMass is the first form of reports of which a generation's gateways know mass cancels.
const fixMass = 5

// isMassCancel reports whether a message that is no order cancels many.
func isMassCancel(msg []byte) bool { return string(order.TagValue(msg, 35)) == "q" }

// massCancel makes the entry of a mass cancel, or of its refusal.
func (r *Replica) massCancel(conn uint64, m *wire.FixSubmit, seat *fixSeat) {
	refuse := func(code wire.Code, tag uint32, format string, args ...any) {
		r.refuseFix(conn, m, seat, code, tag, 0, fmt.Sprintf(format, args...))
	}
	switch {
	case r.live.Fix.At(m.Slot).Form < fixMass:
		refuse(wire.CodeUnsupported, 35, "the session began at a gateway that does not know mass cancels: log on with ResetSeqNumFlag=Y")
		return
	case r.execs == nil:
		refuse(wire.CodeUnsupported, 35, "the grid stores orders and does not execute them, so there are none to cancel: cancel them where they are executed")
		return
	case !r.allKnow(wire.FeatureSessionOrders):
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeOverloaded, 0, 0, "a member of the partition does not know mass cancels, allowed: when all nodes are updated; retry")
		return
	case !r.live.Books.Ready() || r.undefined() >= 0:
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeOverloaded, 0, 0, "the instruments are being defined; retry")
		return
	case r.live.Books.Full():
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeOverloaded, 0, 0, "as many mass cancels are going on as there may be; retry")
		return
	}
	mass := order.FixMassCancel{Book: match.All, Message: m.Payload[:min(len(m.Payload), order.MaxFixBody-order.FixMassSize)]}
	id := order.NewLocator(11).Locate(m.Payload, 0)[0]
	if id.Len == 0 || id.Len > order.MaxClOrdID || int(id.Off+id.Len) > len(mass.Message) {
		refuse(wire.CodeBadFIX, 11, "ClOrdID (11) has %d bytes, allowed: 1 to %d, in the first %d bytes of the message", id.Len, order.MaxClOrdID, len(mass.Message))
		return
	}
	mass.ClOrdIDOff, mass.ClOrdIDLen = id.Off, uint8(id.Len)
	symbol := order.TagValue(m.Payload, 55)
	switch kind := string(order.TagValue(m.Payload, 530)); kind {
	case "7":
		if len(symbol) > 0 {
			refuse(wire.CodeBadFIX, 55, "Symbol (55) is %.64q with MassCancelRequestType (530) 7, allowed: none, or type 1", symbol)
			return
		}
	case "1":
		book, known := r.live.Books.Book(string(symbol))
		if !known {
			refuse(wire.CodeUnknownInstrument, 55, "Symbol (55) is %.64q, allowed: one that this partition trades; a session trades the symbols of its segment", symbol)
			return
		}
		mass.Book = book
	default:
		refuse(wire.CodeUnsupported, 530, "MassCancelRequestType (530) is %.8q, allowed: 1 the orders for a symbol, 7 all orders of the session", kind)
		return
	}
	switch side := string(order.TagValue(m.Payload, 54)); side {
	case "":
	case "1", "2":
		mass.Side = side[0] - '0'
	default:
		refuse(wire.CodeBadFIX, 54, "Side (54) is %.8q, allowed: 1 buy, 2 sell, or none for both", side)
		return
	}
	r.logMassCancel(conn, m, seat, &mass)
}

func (r *Replica) logMassCancel(conn uint64, m *wire.FixSubmit, seat *fixSeat, mass *order.FixMassCancel) {
	s := r.live.Fix.At(m.Slot)
	r.text = mass.Append(r.text[:0])
	r.fix.taken = order.AppendFixRecord(r.fix.taken[:0], &order.FixRecord{
		Slot: m.Slot, Attempt: s.Attempt, Generation: s.Generation, In: m.Seq + 1, Op: order.FixMass, Body: r.text,
	})
	if err := r.append(&order.Entry{Kind: order.KindFix}, r.fix.taken, 0, pending{conn: conn, requestID: m.Seq, slot: m.Slot, kind: pendingFixExecute}); err != nil {
		r.rejectAppend(conn, wire.TypeFixSubmit, m.Seq, m.Slot, err)
		return
	}
	seat.admitted = m.Seq
}
