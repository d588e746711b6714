package replica_test

import (
	"fmt"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixKey is a gateway's FIX session from the last FixOpened on its connection.
type fixKey struct{ slot, generation, attempt uint32 }

// fixDay is the day of the scripts' clock.
const fixDay = uint32(wallStart / (24 * 3600 * 1e9))

// fix runs the commands of gateways; a client is a connection.
func (s *script) fix(d *datadriven.TestData) bool {
	client, on := uint64(1), "a"
	arg(d, "client", &client)
	arg(d, "on", &on)
	var frame []byte
	switch d.Cmd {
	case "fixopen":
		frame = s.fixOpen(d, client)
	case "fixsubmit":
		frame = s.fixSubmit(d, client)
	case "fixstep":
		frame = s.fixStep(d, client)
	case "fixsources":
		k := s.fixes[client]
		s.reqID++
		r := wire.FixStepRecord{Slot: k.slot, Generation: k.generation, Attempt: k.attempt, Op: wire.FixStepCopies}
		of := uint64(0)
		if arg(d, "of", &of); of != 0 {
			r.Body = order.AppendSource(nil, [2]uint64{of, 7}, fmt.Sprintf("GRID\x01S%d", of))
		}
		frame = wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: s.reqID, Records: []wire.FixStepRecord{r}})
	case "fixresend":
		var from, to uint64
		arg(d, "from", &from)
		arg(d, "to", &to)
		s.reqID++
		k := s.fixes[client]
		frame = wire.AppendFixResend(nil, partition, &wire.FixResend{ReqID: s.reqID, Slot: k.slot, Generation: k.generation, Attempt: k.attempt, First: from, Through: to})
	case "fixhere":
		k := s.fixes[client]
		frame = wire.AppendFixHere(nil, partition, &wire.FixHere{Slot: k.slot, Attempt: k.attempt, Here: !d.HasArg("gone")})
	case "kill", "unkill":
		s.reqID++
		m := wire.Kill{ReqID: s.reqID, Op: wire.KillOn, Scope: uint8(order.GuardAll), Who: []byte("ann"), Why: []byte("drill")}
		if d.Cmd == "unkill" {
			m.Op = wire.KillOff
		}
		frame = wire.AppendKill(nil, partition, &m)
	case "clientgone":
		n := s.w.node(on)
		n.step(replica.Event{Kind: replica.EventClientGone, Conn: client})
		return true
	default:
		return false
	}
	s.send(s.w.node(on), client, frame)
	if !d.HasArg("hold") {
		s.w.deliver()
	}
	return true
}

func (s *script) fixOpen(d *datadriven.TestData, client uint64) []byte {
	id, day, form, logon, held, sent := client, 0, 1, uint64(1), 0, 0
	arg(d, "id", &id)
	arg(d, "day", &day)
	arg(d, "form", &form)
	arg(d, "logon", &logon)
	arg(d, "held", &held)
	arg(d, "sent", &sent)
	s.reqID++
	m := wire.FixOpen{ReqID: s.reqID, IDHi: id, IDLo: 7, Held: uint32(held), Day: uint32(int(fixDay) + day), Seq: logon, Form: uint8(form), SentNs: int64(sent)}
	mode, grace := 0, 0
	arg(d, "mode", &mode)
	arg(d, "grace", &grace)
	m.Mode, m.GraceMs = uint8(mode), uint16(grace)
	if d.HasArg("reset") {
		m.Flags |= wire.FixOpenReset
	}
	if d.HasArg("late") {
		m.Flags |= wire.FixOpenLate
	}
	if d.HasArg("take") {
		m.Flags |= wire.FixOpenTake
	}
	if d.HasArg("copies") {
		m.Flags |= wire.FixOpenCopies
	}
	if d.HasArg("fix50") {
		m.Flags |= wire.FixOpenFix50
	}
	return wire.AppendFixOpen(nil, partition, &m)
}

func (s *script) fixSubmit(d *datadriven.TestData, client uint64) []byte {
	var seq, prev uint64
	var size int
	id := ""
	arg(d, "seq", &seq)
	prev = seq - 1
	arg(d, "prev", &prev)
	arg(d, "clordid", &id)
	arg(d, "size", &size)
	if id == "" {
		id = fmt.Sprintf("f%d-%d", client, seq)
	}
	payload := fixOrder(id, size)
	if more := size - len(payload); more > 0 {
		payload = append(payload, make([]byte, more)...)
	}
	if d.HasArg("again") {
		payload = fixOrderWith("97=Y|", id, size)
	}
	if d.HasArg("fix50") {
		payload = asFix50(payload)
	}
	if d.HasArg("bad") {
		payload[len(payload)-2] ^= 1
	}
	if kind := ""; d.HasArg("mass") { // MassCancelRequestType
		arg(d, "mass", &kind)
		body := "35=q\x0111=" + id + "\x01530=" + kind + "\x01"
		payload = fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
		order.Seal(payload)
	}
	k := s.fixes[client]
	return wire.AppendFixSubmit(nil, partition, &wire.FixSubmit{Seq: seq, Slot: k.slot, Generation: k.generation, Attempt: k.attempt, Prev: prev, Payload: payload})
}

// fixStep asks for numbers of the client's session, and of another client's with and=.
func (s *script) fixStep(d *datadriven.TestData, client uint64) []byte {
	var in, prev, and uint64
	outs := 1
	body := ""
	arg(d, "in", &in)
	arg(d, "prev", &prev)
	arg(d, "outs", &outs)
	arg(d, "refuse", &body)
	s.reqID++
	k := s.fixes[client]
	m := wire.FixStep{ReqID: s.reqID, Records: []wire.FixStepRecord{{Slot: k.slot, Generation: k.generation, Attempt: k.attempt, Op: 2, Outs: uint8(outs), In: in, Prev: prev}}}
	if body != "" {
		m.Records[0].Op, m.Records[0].Body = 3, []byte(body)
	}
	if d.HasArg("leave") {
		m.Records[0].Op = 7
	}
	if arg(d, "and", &and); and != 0 {
		k := s.fixes[and]
		m.Records = append(m.Records, wire.FixStepRecord{Slot: k.slot, Generation: k.generation, Attempt: k.attempt, Op: 2, Outs: 1, In: 2, Prev: 1})
	}
	return wire.AppendFixStep(nil, partition, &m)
}

// fixKeyOf is the key of an order of session fix=, of today unless day= says another day.
func fixKeyOf(d *datadriven.TestData, clOrdID string) []byte {
	var fix uint64
	arg(d, "fix", &fix)
	day := uint32(wire.FixToday)
	if d.HasArg("day") {
		var n int
		arg(d, "day", &n)
		day = uint32(int(fixDay) + n)
	}
	return wire.FixKey([2]uint64{fix, 7}, day, []byte(clOrdID))
}

// fixAnswer remembers what a FixOpened gives.
func (s *script) fixAnswer(conn uint64, f []byte) {
	if wire.FrameType(f) == wire.TypeFixOpened {
		var m wire.FixOpened
		_ = wire.DecodeFixOpened(f, &m)
		s.fixes[conn] = fixKey{m.Slot, m.Generation, m.Attempt}
	}
}
