package desk

import (
	"encoding/binary"
	"strconv"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

var le = binary.LittleEndian

// form is the number of the functions in this file. A generation of a session keeps the one
// it began with: what was sent in it is made again byte by byte. A change of what they make
// of a record is a new form beside this one. Form 2 has refusedAsKnown, form 3 executions,
// form 4 answers to status requests, form 5 mass cancels, form 6 cancels of a session that is
// gone, form 7 drop copies: generations of an earlier form have no record of them. A session
// without such cancels, and without drop copies, begins with form 5, which gateways of releases
// before know.
const (
	form       = 7
	formCopies = 7
	formLapse  = 6
	formMass   = 5
	formStatus = 4
)

// Refusals are records of the log. Their first two bytes say who made them: the grid
// (order.FixRefused), or as follows.
const (
	refusedByGateway = 2  // u16 2, u16 length of MsgType, MsgType, the fields of the report
	refusedAsKnown   = 3  // u16 3, u16 code, u32 epoch, u64 entry of the order that was taken before, the begin of it
	stateAsked       = 5  // u16 5, u16 length of OrdStatusReqID, u32 epoch, u64 entry of the order, the OrdStatusReqID, the begin of the order
	knownHead        = 16 // bytes before the order
)

// place is an entry of the log.
type place struct {
	partition wire.PartitionID
	seq       uint64
	epoch     uint32
	timeNs    int64
}

// former makes reports of entries, and of nothing else.
type former struct {
	m    fix.Message
	body fix.Body
	copy fix.Body
	id   []byte
	exec []byte
}

// order makes the report of an order that is in the log: of one as New, of a cancel or
// replace as pending, since it is not executed here. Its fields are valid until the next call.
func (x *former) order(v fix.Version, at place, payload []byte) fix.Sent {
	return x.state(v, at, at, payload, false, nil)
}

// state makes a report of the order that is in the log at of, by the entry at; status: it was
// reported before, and request asked for it.
func (x *former) state(v fix.Version, at, of place, payload []byte, status bool, request []byte) fix.Sent {
	x.m.Parse(payload, v)
	r, _ := x.read(at)
	state := byte('0')
	switch typeOf(&x.m) {
	case 'F':
		state = '6'
	case 'G':
		state = 'E'
	}
	x.id = strconv.AppendUint(append(of.partition.AppendText(x.id[:0]), '/'), of.seq, 10)
	r.OrderID = strconv.AppendUint(append(x.id, '@'), uint64(of.epoch), 10)
	x.id = r.OrderID[:0]
	r.ExecType, r.OrdStatus, r.LeavesQty, r.Status = state, state, r.OrderQty, status
	r.StatusReqID = request
	x.body.Reset()
	x.body.Report(v, &r)
	return fix.Sent{TimeNs: at.timeNs, Type: "8", Body: x.body.Fields(), Kept: true}
}

// read returns what reports have of the message, its place, and the message's own kind.
func (x *former) read(at place) (r fix.ExecutionReport, i fix.Instruction) {
	i = x.m.Instruction()
	t := x.m.Terms()
	x.id = strconv.AppendUint(append(at.partition.AppendText(x.id[:0]), '/'), at.seq, 10)
	x.exec = append(append(x.exec[:0], x.id...), ".1"...)
	return fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{ClOrdID: i.ClOrdID, OrigClOrdID: x.m.Get(41), Account: i.Account, Symbol: i.Symbol, Side: i.Side},
		ExecID:        x.exec, OrderQty: t.OrderQty, Price: t.Price, OrdType: t.OrdType, TimeInForce: t.TimeInForce, TransactNs: at.timeNs,
	}, i
}

func typeOf(m *fix.Message) byte {
	if t := m.Type(); len(t) == 1 {
		return t[0]
	}
	return 0
}

// refusal makes the message of a refusal record.
func (x *former) refusal(v fix.Version, at place, record []byte) fix.Sent {
	if r, ok := order.ParseFixRefused(record); ok {
		return x.refused(v, at, wire.Code(r.Code), r.Tag, r.Detail, string(r.Text), r.Message)
	}
	switch {
	case len(record) >= 4 && le.Uint16(record) == refusedByGateway && 4+int(le.Uint16(record[2:])) <= len(record):
		n := 4 + int(le.Uint16(record[2:]))
		return fix.Sent{TimeNs: at.timeNs, Type: msgTypeOf(record[4:n]), Body: record[n:], Kept: true}
	case len(record) >= knownHead && le.Uint16(record) == refusedAsKnown:
		of := place{partition: at.partition, seq: le.Uint64(record[8:]), epoch: le.Uint32(record[4:])}
		return x.state(v, at, of, record[knownHead:], true, nil)
	case len(record) >= knownHead && le.Uint16(record) == stateAsked && knownHead+int(le.Uint16(record[2:])) <= len(record):
		of := place{partition: at.partition, seq: le.Uint64(record[8:]), epoch: le.Uint32(record[4:])}
		n := knownHead + int(le.Uint16(record[2:]))
		return x.state(v, at, of, record[n:], true, record[knownHead:n])
	case len(record) >= 2 && le.Uint16(record) == order.FixExecuted:
		if r, ok := order.ParseFixReport(record); ok {
			return x.executed(v, at, &r)
		}
	}
	return x.refused(v, at, 0, 0, 0, "", nil) // of a release that knows more kinds; there is none
}

// msgTypeOf returns the MsgType of a refusal without making a string.
func msgTypeOf(b []byte) string {
	switch string(b) {
	case "3":
		return "3"
	case "j":
		return "j"
	case "8":
		return "8"
	case "9":
		return "9"
	}
	return string(b)
}

// OrdRejReason (103) and CxlRejReason (102).
const (
	rejectOther     = "99"
	rejectOther42   = "0" // Broker option: FIX 4.2 has no "other"
	rejectUnknown   = "5"
	rejectDuplicate = "6"
	cancelOption    = '2' // broker option
)

// refused makes the report of an order that the grid refuses for good.
func (x *former) refused(v fix.Version, at place, code wire.Code, tag uint32, detail uint64, text string, message []byte) fix.Sent {
	x.m.Parse(message, v)
	r, i := x.read(at)
	if typeOf(&x.m) == 'q' {
		return x.massRefused(v, at, tag, text)
	}
	x.body.Reset()
	if kind := typeOf(&x.m); kind == 'F' || kind == 'G' {
		x.body.CancelReject(&fix.CancelReject{
			ReportedOrder: fix.ReportedOrder{ClOrdID: i.ClOrdID, OrigClOrdID: r.OrigClOrdID, Account: i.Account},
			OrdStatus:     '8', ToReplace: kind == 'G', Reason: cancelOption, Text: text, TransactNs: at.timeNs,
		})
		return fix.Sent{TimeNs: at.timeNs, Type: "9", Body: x.body.Fields(), Kept: true}
	}
	r.OrderID, r.ExecType, r.OrdStatus, r.Text = []byte("NONE"), '8', '8', text
	if typeOf(&x.m) == 'H' {
		r.Status, r.StatusReqID = true, x.statusID(v)
	}
	switch {
	case r.Status && tag == 11: // no order has the ClOrdID
		r.RejectCode = rejectUnknown
	case code == wire.CodeDuplicateClOrdID:
		r.RejectCode = rejectDuplicate
	case code == wire.CodeFunctionRefused && known103(v, detail):
		r.RejectCode = strconv.FormatUint(detail, 10)
	case v == fix.FIX42:
		r.RejectCode = rejectOther42
	default:
		r.RejectCode = rejectOther
	}
	x.body.Report(v, &r)
	return fix.Sent{TimeNs: at.timeNs, Type: "8", Body: x.body.Fields(), Kept: true}
}

// known103 reports whether a version has an OrdRejReason.
func known103(v fix.Version, reason uint64) bool {
	switch v {
	case fix.FIX42:
		return reason <= 8
	case fix.FIX44:
		return reason <= 15 || reason == 99
	}
	return reason <= 16 || reason == 18 || reason == 99
}

// entry makes the report of an entry again: of an order, or of the record of a session.
func (x *former) entry(v fix.Version, p wire.PartitionID, slot uint32, entry []byte) (m fix.Sent, ref uint64, ok bool) {
	var e order.Entry
	entry, err := order.DecodeEntry(entry, &e)
	if err != nil {
		return m, 0, false
	}
	at := place{partition: p, seq: e.Seq, epoch: e.Epoch, timeNs: e.TimeNs}
	if e.Kind == order.KindOrder {
		return x.order(v, at, order.Payload(entry)), e.ClientSeq, true
	}
	if e.Kind == order.KindDropCopy {
		c := order.DropCopyOf(order.Payload(entry))
		if c.Op == order.DropCopySources || c.Slot != slot {
			return m, 0, false
		}
		return x.copied(v, at, &c), 0, true
	}
	if e.Kind != order.KindFix {
		return m, 0, false
	}
	for rest := order.Payload(entry); len(rest) > 0; {
		var r order.FixRecord
		if rest = order.NextFix(rest, &r); r.Slot == slot && r.Op == order.FixRefusal {
			return x.refusal(v, at, r.Body), r.In - 1, true
		}
	}
	return m, 0, false
}

// appendGatewayRefusal appends the body of a refusal by the gateway.
func appendGatewayRefusal(dst []byte, m *fix.Sent) []byte {
	dst = le.AppendUint16(le.AppendUint16(dst, refusedByGateway), uint16(len(m.Type)))
	return append(append(dst, m.Type...), m.Body...)
}
