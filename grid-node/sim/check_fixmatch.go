package sim

import (
	"bytes"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixBooks are the orders of FIX sessions by the committed executions, made from the rules of
// ADR 75 and not from the code of the machine.
type fixBooks struct {
	orders  map[uint64]fixTraded // by the entry that the order has its id of
	reports map[fixEntry][]fixExecution
	sweeps  int                     // mass cancels that are pending
	named   map[string]uint64       // the entry that an order began with, by session, day and ClOrdID
	states  map[uint64]fixExecution // the last record of the order that began with an entry
}

// fixTraded is an order with what its fills were worth.
type fixTraded struct {
	name  string
	first uint64
	value uint64
}

// fixExecution is the report of a record.
type fixExecution struct {
	fixTraded
	number  uint64
	n       uint32 // the record in its entry, from 1
	record  match.Record
	message []byte // nil unless it answers that
	whole   bool   // a mass cancel, complete with its entry: value is how many it cancelled
}

// fixMassOf returns the mass cancel that an entry is, of a FIX session.
func fixMassOf(e *order.Entry, payload []byte) (m order.FixMassCancel, slot uint32, seq uint64, ok bool) {
	if e.Kind != order.KindFix {
		return m, 0, 0, false
	}
	return order.MassCancelOf(payload)
}

// executed gives a number to each record of an order of a FIX session.
func (m *fixModel) executed(e *order.Entry, payload []byte, records []match.Record) {
	if len(records) == 0 {
		return
	}
	b := &m.books
	defer func() {
		for i := range records {
			if r := &records[i]; r.OfSweep() {
				b.sweeps++
			}
		}
	}()
	if b.orders == nil {
		b.orders, b.reports = map[uint64]fixTraded{}, map[fixEntry][]fixExecution{}
		b.named, b.states = map[string]uint64{}, map[uint64]fixExecution{}
	}
	var reported []fixExecution
	var slots []uint32
	defer func() { m.copyExecuted(e, payload, reported, slots) }()
	var i order.Instruction
	var own fixTraded
	var message []byte
	mass, _, of, isMass := fixMassOf(e, payload)
	if isMass {
		own, message = fixTraded{name: string(mass.ClOrdID()), first: e.Seq}, mass.Message
	}
	if e.Kind == order.KindExecute {
		of = e.ClientSeq
		i, message = order.Instructed(payload), payload[order.InstructionSize:]
		own = fixTraded{name: string(payload[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen]), first: e.Seq}
	}
	for n := range records {
		r := &records[n]
		slot, fix := machine.FixSlot(r.Owner)
		if r.Kind == match.MassCancelled {
			b.sweeps--
		}
		if !fix || r.Kind > match.Triggered || r.Kind == match.Restated || r.Kind == match.Accepted && r.Reason == match.MassCancelling && !isMass {
			continue
		}
		x := fixExecution{fixTraded: b.orders[r.Order], n: uint32(n) + 1, record: *r}
		switch r.Kind {
		case match.Accepted, match.Rejected:
			x.fixTraded, x.message = own, message
			if !isMass {
				b.orders[r.Order] = own
			}
		case match.Replaced, match.CancelRejected:
			x.name, x.message = own.name, message
			if r.Kind == match.Replaced {
				b.orders[r.Other] = x.fixTraded
			}
		case match.Cancelled:
			if i.Op == order.InstructCancel && r.Order == i.Orig {
				x.name, x.message = own.name, message
			}
		case match.Filled:
			x.value += uint64(r.Price * r.Qty)
			b.orders[r.Order] = x.fixTraded
		}
		if isMass && r.Kind == match.Accepted {
			if x.value, x.whole = massCount(records, e.Seq); mass.Book == match.All && mass.Side == 0 && b.sweeps == 0 {
				x.value, x.whole = b.rest(slot), true
			}
		}
		s := m.of(slot)
		x.number = s.Out
		if !isMass || x.message == nil {
			b.became(s, &x)
		}
		if key := (fixEntry{e.Seq, slot}); len(b.reports[key]) == 0 {
			m.first[key], m.days[key] = s.Out, s.Day
		}
		b.reports[fixEntry{e.Seq, slot}] = append(b.reports[fixEntry{e.Seq, slot}], x)
		reported, slots = append(reported, x), append(slots, slot)
		m.reports[fixNumber{slot, s.Generation, s.Out}] = e.Seq
		if x.message != nil {
			m.answers[fixNumber{slot, s.Generation, of}] = s.Out
		}
		s.Out++
	}
}

// checkFixReports: reports leave for committed entries only, all of an entry at once (I48).
func (w *world) checkFixReports(p *process, m *fixModel, frame []byte) {
	var a wire.FixReports
	if err := wire.DecodeFixReports(frame, &a); err != nil {
		w.violation("wire", "%s sends broken FixReports: %v", p.name, err)
		return
	}
	if _, entry, _ := wire.NextResent(a.Entries); order.Kind(entry[4]) == order.KindDropCopy {
		w.checkCopies(p, m, &a)
		return
	}
	n, seq := 0, uint64(0)
	for rest := a.Entries; len(rest) > 0; n++ {
		number, entry, after := wire.NextResent(rest)
		rest, seq = after, order.Seq(entry)
		w.checkFixExecution(p, m, a.Slot, number, entry)
	}
	if want := len(m.books.reports[fixEntry{seq, a.Slot}]); n != want {
		w.violation("I48", "%s sends %d reports of entry %d to FIX session %d; the committed log has %d", p.name, n, seq, a.Slot, want)
	}
	w.stats.FixExecuted += uint64(n)
}

// checkFixExecution: a report is that of its record, with the order's own ClOrdID, the entry
// that it began with and the value of its fills until then (I48).
func (w *world) checkFixExecution(p *process, m *fixModel, slot uint32, number uint64, entry []byte) {
	seq := order.Seq(entry)
	for _, x := range m.books.reports[fixEntry{seq, slot}] {
		if x.number != number {
			continue
		}
		var rec order.FixRecord
		order.NextFix(order.Payload(entry), &rec)
		f, ok := order.ParseFixReport(rec.Body)
		value := [2]uint64{0, x.value}
		if int64(x.value) < 0 {
			value[0] = ^uint64(0)
		}
		if x.whole {
			value = [2]uint64{1, x.value}
		}
		switch {
		case !ok || f.N != x.n || !bytes.Equal(f.Record, x.record.AppendTo(nil)):
			w.violation("I48", "%s reports number %d of FIX session %d as %+v; entry %d has record %d, %+v", p.name, number, slot, f, seq, x.n, x.record)
		case string(f.ClOrdID) != x.name || f.First != x.first || f.Value != value || !bytes.Equal(f.Message, x.message):
			w.violation("I48", "%s reports number %d of FIX session %d, record %d of entry %d, of order %s from entry %d with value %d; it is %s from %d with %d",
				p.name, number, slot, x.n, seq, f.ClOrdID, f.First, f.Value, x.name, x.first, value)
		}
		return
	}
	if w.profile.match != nil && order.Kind(entry[4]) == order.KindFix {
		var rec order.FixRecord
		order.NextFix(order.Payload(entry), &rec)
		if f, executed := order.ParseFixReport(rec.Body); executed && !f.State { // a state is checked with the log
			w.violation("I48", "%s sends number %d of FIX session %d for entry %d, which has no such report", p.name, number, slot, seq)
		}
	}
}

// rest is how many orders of a FIX session are in the books.
func (b *fixBooks) rest(slot uint32) (n uint64) {
	for _, x := range b.states {
		if x.record.Owner == machine.FixOwner(slot) && !x.ended() {
			n++
		}
	}
	return n
}

// massCount returns how many orders a mass cancel has cancelled, false if it goes on in later
// entries.
func massCount(records []match.Record, id uint64) (n uint64, whole bool) {
	for i := range records {
		switch r := &records[i]; {
		case r.Kind == match.Cancelled && r.Reason == match.MassCancelling && r.Other == id:
			n++
		case r.Kind == match.MassCancelled && r.Order == id:
			whole = true
		}
	}
	if !whole {
		n = 0
	}
	return n, whole
}
