package frametext

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixRequest is a gateway's frame about FIX sessions, or one without details.
func fixRequest(frame []byte) string {
	switch t := wire.FrameType(frame); t {
	case wire.TypeFixOpen:
		var m wire.FixOpen
		_ = wire.DecodeFixOpen(frame, &m)
		return fmt.Sprintf("FixOpen %d: id %x-%x held %d day %d logon %d flags %d", m.ReqID, m.IDHi, m.IDLo, m.Held, m.Day, m.Seq, m.Flags)
	case wire.TypeFixSubmit:
		var m wire.FixSubmit
		_ = wire.DecodeFixSubmit(frame, &m)
		return fmt.Sprintf("FixSubmit slot %d attempt %d number %d after %d: %s", m.Slot, m.Attempt, m.Seq, m.Prev, clOrdID(m.Payload))
	case wire.TypeFixStep:
		var m wire.FixStep
		_ = wire.DecodeFixStep(frame, &m)
		var b strings.Builder
		for _, r := range m.Records {
			fmt.Fprintf(&b, ", slot %d op %d in %d outs %d", r.Slot, r.Op, r.In, r.Outs)
		}
		return fmt.Sprintf("FixStep %d%s", m.ReqID, b.String())
	case wire.TypeFixResend:
		var m wire.FixResend
		_ = wire.DecodeFixResend(frame, &m)
		return fmt.Sprintf("FixResend %d: slot %d numbers %d..%d", m.ReqID, m.Slot, m.First, m.Through)
	case wire.TypeFixHere:
		var m wire.FixHere
		_ = wire.DecodeFixHere(frame, &m)
		return fmt.Sprintf("FixHere slot %d attempt %d: %t", m.Slot, m.Attempt, m.Here)
	default:
		return t.String()
	}
}

// fixReply is a node's frame about FIX sessions, or one without details.
func fixReply(frame []byte) string {
	switch t := wire.FrameType(frame); t {
	case wire.TypeFixOpened:
		var m wire.FixOpened
		_ = wire.DecodeFixOpened(frame, &m)
		return fmt.Sprintf("FixOpened slot %d generation %d attempt %d day %d form %d: in %d out %d, Logon %d", m.Slot, m.Generation, m.Attempt, m.Day, m.Form, m.In, m.Out, m.Number)
	case wire.TypeFixAck:
		var m wire.FixAck
		_ = wire.DecodeFixAck(frame, &m)
		if m.Code != 0 {
			known := ""
			if len(m.Body) >= 16 && binary.LittleEndian.Uint16(m.Body) == 3 { // refused because it was taken before
				known = fmt.Sprintf(" of the order at %d@%d", binary.LittleEndian.Uint64(m.Body[8:]), binary.LittleEndian.Uint32(m.Body[4:]))
			}
			return fmt.Sprintf("FixAck %d: refused (%s) as entry %d, report %d, body of %d bytes%s", m.Seq, m.Code, m.Entry, m.Number, len(m.Body), known)
		}
		return fmt.Sprintf("FixAck %d: entry %d, report %d", m.Seq, m.Entry, m.Number)
	case wire.TypeFixProbe:
		var m wire.FixProbe
		_ = wire.DecodeFixProbe(frame, &m)
		return fmt.Sprintf("FixProbe slot %d attempt %d", m.Slot, m.Attempt)
	case wire.TypeFixStepped:
		var m wire.FixStepped
		_ = wire.DecodeFixStepped(frame, &m)
		var b strings.Builder
		for _, r := range m.Records {
			if r.Code != 0 {
				fmt.Fprintf(&b, ", slot %d refused: %s %d", r.Slot, r.Code, r.First)
			} else {
				fmt.Fprintf(&b, ", slot %d from number %d", r.Slot, r.First)
			}
		}
		return fmt.Sprintf("FixStepped %d: entry %d%s", m.ReqID, m.Entry, b.String())
	case wire.TypeFixResent:
		var m wire.FixResent
		_ = wire.DecodeFixResent(frame, &m)
		var b strings.Builder
		for rest := m.Entries; len(rest) > 0; {
			var number uint64
			var entry []byte
			number, entry, rest = wire.NextResent(rest)
			fmt.Fprintf(&b, ", %d is %s", number, fixEntry(entry))
		}
		return fmt.Sprintf("FixResent %d%s, next %d", m.ReqID, b.String(), m.Next)
	case wire.TypeFixReports:
		return t.String() + fixCopies(frame)
	default:
		return t.String()
	}
}

// fixEntry names what a report is made of.
func fixEntry(entry []byte) string {
	if order.Kind(entry[4]) == order.KindDropCopy {
		return fmt.Sprintf("a copy of entry %d", order.Seq(entry))
	}
	return fmt.Sprintf("entry %d", order.Seq(entry))
}

// fixCopies names the drop copies of a FixReports.
func fixCopies(frame []byte) string {
	var m wire.FixReports
	_ = wire.DecodeFixReports(frame, &m)
	var b strings.Builder
	for rest := m.Entries; len(rest) > 0; {
		var number uint64
		var entry []byte
		if number, entry, rest = wire.NextResent(rest); order.Kind(entry[4]) == order.KindDropCopy {
			fmt.Fprintf(&b, ", %d is %s", number, fixEntry(entry))
		}
	}
	return b.String()
}
