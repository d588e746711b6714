package sim

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// became notes what a record made of its order.
func (b *fixBooks) became(s *machine.FixSession, x *fixExecution) {
	if x.record.Kind == match.CancelRejected {
		return
	}
	if x.message != nil {
		b.named[fixKey(s, x.name)] = x.first
	}
	b.states[x.first] = *x
}

// ended reports whether nothing can happen to the order any more.
func (x *fixExecution) ended() bool {
	switch x.record.Kind {
	case match.Rejected, match.Cancelled:
		return true
	case match.Filled:
		return x.record.Leaves == 0
	}
	return false
}

// current returns the order of a session that a ClOrdID names: one in the books, of any day,
// or one of today.
func (b *fixBooks) current(s *machine.FixSession, slot uint32, name string) (x fixExecution, ok bool) {
	for _, x := range b.states {
		if x.name == name && x.record.Owner == machine.FixOwner(slot) && !x.ended() {
			return x, true
		}
	}
	first, ok := b.named[fixKey(s, name)]
	return b.states[first], ok
}

// state checks the state of an order in the log: it is that of the order which the message
// names, as it was at that entry (I48).
func (m *fixModel) state(s *machine.FixSession, r *order.FixRecord) string {
	f, ok := order.ParseFixReport(r.Body)
	if !ok || !f.State {
		return ""
	}
	name := string(order.TagValue(f.Message, 11))
	x, ok := m.books.current(s, r.Slot, name)
	value := [2]uint64{0, x.value}
	if int64(x.value) < 0 {
		value[0] = ^uint64(0)
	}
	want := x.record
	if !x.ended() {
		id := want.Order
		if want.Kind == match.Replaced {
			id = want.Other
		}
		want = match.Record{Kind: match.Accepted, Order: id, Owner: want.Owner, Book: want.Book, Side: want.Side, Leaves: want.Leaves, Cum: want.Cum}
	}
	got := f.Record
	if !x.ended() { // the price of an order in a book is not in each of its records
		got = append([]byte(nil), got...)
		copy(got[16:24], make([]byte, 8))
	}
	if !ok || string(f.ClOrdID) != x.name || f.First != x.first || f.Value != value || !bytes.Equal(got, want.AppendTo(nil)) {
		return fmt.Sprintf("I48: the state of order %q of FIX session %d is order %q from %d with value %d, %x; it is %q from %d with %d, %+v (%t)",
			name, r.Slot, f.ClOrdID, f.First, f.Value, f.Record, x.name, x.first, value, want, ok)
	}
	return ""
}

// checkFixState: a status request is answered with the order that it names, and that there is
// none is true.
func (w *world) checkFixState(p *process, m *fixModel, a *wire.FixAck, payload []byte) {
	s := *m.of(a.Slot)
	s.Day = m.days[fixEntry{a.Entry, a.Slot}]
	name := string(order.TagValue(payload, 11))
	key := fixKey(&s, name)
	if a.Code != 0 {
		taken, there := m.orders[key]
		_, there2 := m.books.named[key]
		if there && taken.seq < a.Entry && (there2 || w.profile.match == nil) && !w.profile.retention.FreeDownstream {
			w.violation("I48", "%s does not know the state of order %s, which is entry %d", p.name, key, taken.seq)
		}
		return
	}
	w.stats.FixStates++
	if w.profile.match != nil { // the record is checked with the log
		if f, ok := order.ParseFixReport(a.Body); !ok || !f.State || !bytes.HasPrefix(payload, f.Message) {
			w.violation("I48", "%s answers a request for the state of order %s with %q", p.name, key, a.Body)
		}
		return
	}
	taken := m.orders[key]
	if want := knownRecord(&taken, 0); !bytes.Equal(a.Body, want) {
		w.violation("I48", "%s answers a request for the state of order %s with %q; the log has %q", p.name, key, a.Body, want)
	}
}
