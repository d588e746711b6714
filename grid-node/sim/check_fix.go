package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixOwner is the client of the first gateway.
const fixOwner = 2000

// fixModel is what the committed entries of a lineage mean for FIX sessions, made from the
// rules of ADR 44 and not from the code of the machine.
type fixModel struct {
	lineage  uint64
	sessions []machine.FixSession
	slots    map[[2]uint64]uint32
	reports  map[fixNumber]uint64             // number of a report -> its entry
	answers  map[fixNumber]uint64             // number of an order or a refused message -> of its report
	first    map[fixEntry]uint64              // the first number that an entry gave a session
	days     map[fixEntry]uint32              // of the session, when it got the report of an entry
	opens    map[fixNumber]machine.FixSession // by attempt: as the opening left it
	orders   map[string]fixOrderTaken         // by session, day and ClOrdID
	books    fixBooks
	drops    fixCopying
	entries  []keptEntry
}

// fixNumber is a number of one direction of a session, or an attempt, with generation 0.
type fixNumber struct {
	slot, generation uint32
	n                uint64
}

type fixEntry struct {
	seq  uint64
	slot uint32
}

// fixOrderTaken is an order as the log has it.
type fixOrderTaken struct {
	seq     uint64
	epoch   uint32
	payload []byte
}

type keptEntry struct {
	e       order.Entry
	payload []byte
	records []match.Record // of what the entry did, in a partition that matches
}

func (m *fixModel) begin() {
	if m.slots == nil {
		m.slots, m.reports, m.answers, m.first = map[[2]uint64]uint32{}, map[fixNumber]uint64{}, map[fixNumber]uint64{}, map[fixEntry]uint64{}
		m.days, m.opens, m.orders = map[fixEntry]uint32{}, map[fixNumber]machine.FixSession{}, map[string]fixOrderTaken{}
		m.drops = fixCopying{map[uint32][]byte{}, map[fixNumber]fixCopied{}, map[fixEntry]fixGave{}}
	}
}

// inherit takes the entries up to base of another lineage.
func (m *fixModel) inherit(from *fixModel, base uint64) {
	for i := range from.entries {
		if k := &from.entries[i]; k.e.Seq <= base {
			m.apply(&k.e, k.payload) //nolint:errcheck // it was checked there
			m.executed(&k.e, k.payload, k.records)
			m.entries = append(m.entries, *k)
		}
	}
}

// checkFix: FIX numbers are dense, an order is applied once, and no gateway that was replaced changes
// anything.
func (w *world) checkFix(t *timeline, e *order.Entry, entry []byte) {
	matches := w.profile.match != nil && w.profile.fixes != nil
	if e.Kind != order.KindNoop && e.Kind != order.KindFix && e.Kind != order.KindDropCopy && e.Flags&order.FlagFix == 0 && !matches {
		return
	}
	payload := append([]byte(nil), order.Payload(entry)...)
	if why := t.fix.apply(e, payload); why != "" {
		w.violation("FIX", "entry %d: %s", e.Seq, why)
		return
	}
	records := w.check.executions[order.Hash(entry)].records
	t.fix.executed(e, payload, records)
	t.fix.entries = append(t.fix.entries, keptEntry{*e, payload, records})
}

func (m *fixModel) apply(e *order.Entry, payload []byte) (why string) {
	m.begin()
	switch {
	case e.Kind == order.KindNoop:
		if lineage := binary.LittleEndian.Uint64(payload); lineage != m.lineage {
			m.jump(lineage)
		}
	case e.Kind == order.KindFix:
		for rest := payload; len(rest) > 0 && why == ""; {
			var r order.FixRecord
			rest = order.NextFix(rest, &r)
			why = m.record(e.Seq, &r)
		}
	case e.Kind == order.KindDropCopy:
		why = m.name(e.Seq, payload)
	case e.Flags&order.FlagFix != 0:
		why = m.order(e, payload)
	}
	if why == "" {
		m.copyOf(e, payload)
	}
	return why
}

// jump is the first entry of a lineage: the numbers sent in the one before are not known.
func (m *fixModel) jump(lineage uint64) {
	if m.lineage != 0 {
		for i := range m.sessions {
			m.sessions[i].Attempt += machine.FixJump
			m.sessions[i].Out += machine.FixJump
		}
	}
	m.lineage = lineage
}

func (m *fixModel) of(slot uint32) *machine.FixSession {
	if int(slot) >= len(m.sessions) {
		return nil
	}
	return &m.sessions[slot]
}

func (m *fixModel) order(e *order.Entry, payload []byte) string {
	s := m.of(e.Session)
	switch {
	case s == nil:
		return fmt.Sprintf("an order of FIX session %d, which was not opened", e.Session)
	case e.ClientSeq < s.In:
		return fmt.Sprintf("an order of FIX session %d has number %d; those below %d are dealt with", e.Session, e.ClientSeq, s.In)
	}
	key := fixKey(s, string(payload[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen]))
	if before, twice := m.orders[key]; twice {
		return fmt.Sprintf("order %s is applied at %d and again", key, before.seq)
	}
	m.orders[key] = fixOrderTaken{e.Seq, e.Epoch, payload}
	if s.In = e.ClientSeq + 1; e.Kind == order.KindOrder {
		m.report(s, e.Session, e.Seq, e.ClientSeq)
	}
	return ""
}

// fixKey is what is unique: a ClOrdID in a session and day.
func fixKey(s *machine.FixSession, id string) string {
	return fmt.Sprintf("%x-%x/%d/%s", s.ID[0], s.ID[1], s.Day, id)
}

// report gives the next number to the report of a message.
func (m *fixModel) report(s *machine.FixSession, slot uint32, seq, of uint64) {
	m.reports[fixNumber{slot, s.Generation, s.Out}] = seq
	m.answers[fixNumber{slot, s.Generation, of}] = s.Out
	m.first[fixEntry{seq, slot}], m.days[fixEntry{seq, slot}] = s.Out, s.Day
	s.Out++
}

func (m *fixModel) record(seq uint64, r *order.FixRecord) string {
	if r.Op == order.FixOpen {
		return m.open(seq, r)
	}
	s := m.of(r.Slot)
	switch {
	case s == nil || r.Generation != s.Generation || r.Attempt != s.Attempt:
		return fmt.Sprintf("a record of FIX session %d has generation %d and attempt %d; the session is %+v", r.Slot, r.Generation, r.Attempt, s)
	case r.In < s.In || (r.Op == order.FixRefusal || r.Op == order.FixMass) && r.In == s.In:
		return fmt.Sprintf("a record of FIX session %d goes back to number %d from %d", r.Slot, r.In, s.In)
	}
	s.In = r.In
	if r.Op == order.FixRefusal {
		m.report(s, r.Slot, seq, r.In-1)
		return m.state(s, r)
	}
	switch r.Op {
	case order.FixMass: // executed has its numbers
		return ""
	case order.FixLapse:
		if !mayLapse(s.Mode, s.Left, s.Lapsed) {
			return fmt.Sprintf("FIX session %d lapses, and is %+v", r.Slot, *s)
		}
		s.Lapsed = true
		s.Attempt++
		return ""
	case order.FixLeave:
		s.Left = true
	}
	m.first[fixEntry{seq, r.Slot}] = s.Out
	s.Out += uint64(r.Outs)
	return ""
}

func (m *fixModel) open(seq uint64, r *order.FixRecord) string {
	o := r.Opening()
	slot, known := m.slots[o.ID]
	if !known {
		if slot = uint32(len(m.sessions)); slot != r.Slot {
			return fmt.Sprintf("a FIX session is opened in slot %d; the next one is %d", r.Slot, slot)
		}
		m.slots[o.ID] = slot
		m.sessions = append(m.sessions, machine.FixSession{ID: o.ID, Day: o.Day})
	}
	s := &m.sessions[slot]
	switch {
	case slot != r.Slot:
		return fmt.Sprintf("FIX session %d is opened in slot %d", slot, r.Slot)
	case o.Day < s.Day:
		return fmt.Sprintf("FIX session %d is opened on day %d after day %d", slot, o.Day, s.Day)
	}
	if !known || o.Day > s.Day || o.Flags&order.FixReset != 0 {
		s.Generation++
		s.In, s.Out, s.Day, s.Form = 1, 1, o.Day, o.Form
		if m.lineage > 1 && r.In == 1 && o.Flags&order.FixReset == 0 { // the counterparty goes on with numbers that were lost
			s.Out += (m.lineage - 1) * machine.FixJump
		}
	}
	s.Attempt++
	if r.Generation != s.Generation || r.Attempt != s.Attempt || r.In != s.In && r.In != s.In+1 {
		return fmt.Sprintf("FIX session %d is opened with generation %d, attempt %d, in %d; the model has %+v", slot, r.Generation, r.Attempt, r.In, *s)
	}
	s.In = r.In
	if o.Flags&order.FixLate == 0 {
		s.Mode, s.GraceMs, s.Left, s.Lapsed = o.Mode, o.GraceMs, false, false
	}
	m.first[fixEntry{seq, slot}] = s.Out
	s.Out++
	m.opens[fixNumber{slot, 0, uint64(s.Attempt)}] = *s
	return ""
}

// checkFixReply: what a gateway is told is committed, and a number is that of its entry.
func (w *world) checkFixReply(p *process, c *conn, frame []byte, lineage uint64) {
	if w.givenUp(lineage) {
		return
	}
	m := &w.timeline(lineage).fix
	m.begin()
	switch wire.FrameType(frame) {
	case wire.TypeFixOpened:
		w.checkFixOpened(p, m, frame)
	case wire.TypeFixAck:
		var a wire.FixAck
		_ = wire.DecodeFixAck(frame, &a)
		if n, ok := m.first[fixEntry{a.Entry, a.Slot}]; !ok || n != a.Number {
			w.violation("FIX", "%s gives entry %d of FIX session %d number %d; the committed log has it as %d (%t)", p.name, a.Entry, a.Slot, a.Number, n, ok)
		}
		w.checkFixRefusal(p, m, &a, c)
	case wire.TypeFixStepped:
		var a wire.FixStepped
		_ = wire.DecodeFixStepped(frame, &a)
		for _, r := range a.Records {
			if n, ok := m.first[fixEntry{a.Entry, r.Slot}]; r.Code == 0 && a.Entry != 0 && (!ok || n != r.First) {
				w.violation("FIX", "%s gives entry %d of FIX session %d number %d; the committed log has it as %d (%t)", p.name, a.Entry, r.Slot, r.First, n, ok)
			}
		}
	case wire.TypeFixReports:
		w.checkFixReports(p, m, frame)
	case wire.TypeFixResent:
		w.checkFixResent(p, m, c, frame)
	}
}

func (w *world) checkFixOpened(p *process, m *fixModel, frame []byte) {
	var a wire.FixOpened
	_ = wire.DecodeFixOpened(frame, &a)
	w.stats.FixOpened++
	s, ok := m.opens[fixNumber{a.Slot, 0, uint64(a.Attempt)}]
	if now := m.of(a.Slot); a.Number == 0 && ok && now != nil { // the attempt was held, and its session has gone on
		if s = *now; s.Attempt > a.Attempt { // it was taken in the same wake-up, after the answer
			return
		}
		if w.profile.match != nil || w.profile.copies != nil { // what others did since is reported behind the answer
			s.Out = min(s.Out, a.Out)
		}
	}
	if !ok || s.In != a.In || s.Out != a.Out || s.Generation != a.Generation || s.Attempt != a.Attempt || s.Day != a.Day || a.Number != 0 && a.Number != a.Out-1 {
		w.violation("FIX", "%s opens FIX session %d as generation %d attempt %d in %d out %d, Logon %d; the committed log has %+v (%t)",
			p.name, a.Slot, a.Generation, a.Attempt, a.In, a.Out, a.Number, s, ok)
	}
}

// checkFixRefusal: an order is a duplicate only of one in its session and day, and one that is
// sent again as such gets that one's place and content.
func (w *world) checkFixRefusal(p *process, m *fixModel, a *wire.FixAck, c *conn) {
	g, ok := c.user.(*fixGateway)
	if !ok {
		return
	}
	d := g.slot(a.Slot)
	if d == nil {
		return
	}
	for _, i := range d.items {
		if i.seq != a.Seq || i.payload == nil {
			continue
		}
		if bytes.Contains(i.payload, []byte(statusRequest)) {
			w.checkFixState(p, m, a, i.payload)
			return
		}
		if a.Code != wire.CodeDuplicateClOrdID {
			return
		}
		var o order.Order
		if err := order.Parse(i.payload, &o); err != nil {
			return
		}
		of := *m.of(a.Slot)
		of.Day = m.days[fixEntry{a.Entry, a.Slot}] // another may have begun with a later entry
		key := fixKey(&of, string(i.payload[o.ClOrdIDOff:][:o.ClOrdIDLen]))
		before, there := m.orders[key]
		if !there && w.profile.match != nil { // it may rest since the day before
			of.Day--
			_, there = m.orders[fixKey(&of, string(i.payload[o.ClOrdIDOff:][:o.ClOrdIDLen]))]
		}
		if !there {
			w.violation("FIX", "%s refuses order %s as a duplicate; there is none", p.name, key)
			return
		}
		if f, executed := order.ParseFixReport(a.Body); executed && f.State && w.profile.match != nil { // checked with the log
			return
		}
		if known := knownRecord(&before, wire.CodeDuplicateClOrdID); w.profile.match == nil && bytes.Contains(i.payload, []byte(possResend)) && !bytes.Equal(a.Body, known) {
			w.violation("FIX", "%s answers order %s, sent again, with %q; the log has %q", p.name, key, a.Body, known)
		}
	}
}

// knownRecord is the record of docs/protocol.md for an order that was taken before.
func knownRecord(o *fixOrderTaken, code wire.Code) []byte {
	kind := uint16(3)
	if code == 0 { // the answer to a status request without an id
		kind = 5
	}
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(code))
	b = binary.LittleEndian.AppendUint32(b, o.epoch)
	return append(binary.LittleEndian.AppendUint64(b, o.seq), o.payload...)
}

// checkFixResent: every report is there whose entry is not freed, with its own number.
func (w *world) checkFixResent(p *process, m *fixModel, c *conn, frame []byte) {
	var a wire.FixResent
	if err := wire.DecodeFixResent(frame, &a); err != nil {
		w.violation("wire", "%s sends a broken FixResent: %v", p.name, err)
		return
	}
	g, ok := c.user.(*fixGateway)
	if !ok || !g.alive || g.conn != c {
		return
	}
	d := g.doorOf(func(d *fixDoor) bool { return d.asks(a.ReqID) != nil })
	if d == nil {
		return
	}
	f := d.asks(a.ReqID)
	at := f.from
	missing := func(to uint64) {
		for ; at < to; at++ {
			if seq := m.reports[fixNumber{d.slot, d.generation, at}]; seq > p.status.FreedSeq {
				w.violation("FIX", "%s leaves out number %d of FIX session %d, which is the report of entry %d", p.name, at, d.slot, seq)
			}
		}
	}
	for rest := a.Entries; len(rest) > 0; {
		number, entry, after := wire.NextResent(rest)
		rest = after
		missing(number)
		if seq := m.reports[fixNumber{d.slot, d.generation, number}]; seq != order.Seq(entry) {
			w.violation("FIX", "%s sends entry %d again as number %d of FIX session %d; that is entry %d", p.name, order.Seq(entry), number, d.slot, seq)
		}
		if order.Kind(entry[4]) == order.KindDropCopy {
			w.checkCopy(p, m, d.slot, d.generation, number, entry)
		} else {
			w.checkFixExecution(p, m, d.slot, number, entry)
		}
		w.stats.FixResent++
		at = number + 1
	}
	missing(a.Next)
}
