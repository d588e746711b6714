package replica

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FIX sessions of a partition that matches, see docs/adr/0075: each record of an order that a
// FIX session owns takes the next number of that session when the entry is executed, on every
// copy. So a fill needs no entry of its own, and its report is sent at the entry's commit.

// fixExecuted is the first form of reports whose generation's gateways know executions.
const fixExecuted = 3

// executeFix is the rest of acceptFix in a partition that matches.
func (r *Replica) executeFix(conn uint64, m *wire.FixSubmit, seat *fixSeat, flags uint8, hint uint32) {
	if r.refusesExecuteFix(conn, m, seat) {
		return
	}
	b, f := r.live.Books, &r.order.Fields
	msg := m.Payload
	if r.decides() {
		d := r.decide(msg, &r.order)
		if d.Message == nil {
			r.refuseFix(conn, m, seat, wire.CodeFunctionRefused, 0, uint64(d.Reason), string(d.Text))
			return
		}
		switch msg = d.Message; {
		case len(msg) > order.MaxPayload-order.InstructionSize:
			r.refuseFix(conn, m, seat, wire.CodeFunctionRefused, 0, reasonOther, string(textTooLong))
			return
		case !bytes.Equal(msg, m.Payload):
			if err := r.layouts.Parse(msg, &r.order); err != nil {
				r.refuseFix(conn, m, seat, wire.CodeBadFIX, err.Tag, 0, err.Error())
				return
			}
		}
	}
	terms := r.layouts.Terms(msg, &r.order)
	i, err := b.Resolve(msg, &r.order, &terms, machine.FixOwner(m.Slot))
	if err == nil && r.opt.Execution.ApartBySession {
		err = apart(&i)
	}
	if err != nil {
		text := err.Error()
		if err.Tag == 55 {
			text += "; a session trades the symbols of its segment"
		}
		r.refuseFix(conn, m, seat, wire.CodeBadFIX, err.Tag, 0, text)
		return
	}
	if r.live.Guard != nil {
		in := &b.Instruments()[i.Book]
		offer := machine.Offer{Session: m.Slot, Fix: true, Message: msg, Fields: f, Orig: i.Orig, Digits: [2]uint8{in.PriceDigits, in.QtyDigits}}
		if why := r.limited(&offer); why != limits.None {
			reason, text := r.limitText(why)
			r.refuseFix(conn, m, seat, wire.CodeLimitRefused, 0, reason, text)
			return
		}
	}
	r.text = append(i.Append(r.text[:0]), msg...)
	e := order.Entry{Kind: order.KindExecute, Flags: flags, Session: m.Slot, ClientSeq: m.Seq, Fields: f.Instructed()}
	if err := r.append(&e, r.text, hint, pending{conn: conn, requestID: m.Seq, slot: m.Slot, kind: pendingFixExecute}); err != nil {
		r.rejectAppend(conn, wire.TypeFixSubmit, m.Seq, m.Slot, err)
		return
	}
	seat.admitted = m.Seq
}

// refusesExecuteFix refuses what no entry can be made of, before functions and limits look at it.
func (r *Replica) refusesExecuteFix(conn uint64, m *wire.FixSubmit, seat *fixSeat) bool {
	b, owner := r.live.Books, machine.FixOwner(m.Slot)
	f := &r.order.Fields
	full := store.ErrCapacity{Used: r.execs.bytes() + r.reports.bytes(), Limit: r.opt.Execution.LogBytes}
	switch seq, rests := b.Find(m.Payload[f.ClOrdIDOff:][:f.ClOrdIDLen], owner); {
	case r.live.Fix.At(m.Slot).Form < fixExecuted:
		r.refuseFix(conn, m, seat, wire.CodeUnsupported, 0, 0, "the session began at a gateway that does not know executions: log on with ResetSeqNumFlag=Y")
	case rests: // of a day before
		r.refuseFix(conn, m, seat, wire.CodeDuplicateClOrdID, 11, seq, "an order of the session with this ClOrdID is in the book")
	case !b.Ready() || r.undefined() >= 0:
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeOverloaded, 0, 0, "the instruments are being defined; retry")
	case !r.allKnow(wire.FeatureFixBooks):
		r.reject(conn, wire.TypeFixSubmit, m.Seq, m.Slot, wire.CodeOverloaded, 0, 0, "a copy of the partition has not said that it knows orders of FIX sessions in books, or is of a release that does not; retry when all nodes are of this one")
	case len(m.Payload) > order.MaxPayload-order.InstructionSize:
		r.refuseFix(conn, m, seat, wire.CodeTooLarge, 0, order.MaxPayload-order.InstructionSize, "the order is longer than the limit")
	case full.Used+int64(b.MostRecords())*(match.RecordBytes+fixReportBytes) > full.Limit:
		r.rejectCapacity(conn, wire.TypeFixSubmit, m.Seq, m.Slot, &full, fmt.Sprintf("executions that are held use %d of %d bytes; they are freed with the log", full.Used, full.Limit))
	default:
		return false
	}
	return true
}
