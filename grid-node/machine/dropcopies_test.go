package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// sourcesOf encodes the sessions of these numbers, as openFix and fixLog.open number them.
func sourcesOf(ids ...[2]uint64) (b []byte) {
	for _, id := range ids {
		b = order.AppendSource(b, id, fmt.Sprintf("GRID\x01S%d", id[0]+id[1]))
	}
	return b
}

func dropCopy(m *Machine, slot uint32, sources []byte) []byte {
	s := m.Fix.At(slot)
	c := order.DropCopy{Op: order.DropCopySources, Slot: slot, Generation: s.Generation, Attempt: s.Attempt, Sources: sources}
	return c.Append(nil)
}

// copied returns what was copied by the last entry.
func copied(m *Machine) string {
	var b strings.Builder
	for _, c := range m.Fix.Copied() {
		fmt.Fprintf(&b, "s%d #%d of %s report %d record %d; ", c.Slot, c.Number, strings.ReplaceAll(c.Name, "\x01", "/"), c.Report, c.Record)
	}
	return b.String()
}

// refused is the record of an order that the grid refuses, or of another message.
func refused(kind string) []byte {
	return order.AppendFixRefused(nil, 5, 11, 0, "no", []byte("8=FIX.4.4\x019=5\x0135="+kind+"\x0111=a\x0110=000\x01"))
}

// TestDropCopies: in a partition that stores, each ExecutionReport of a source has one copy, under
// the next number of each target, from the entry of its sources on; nothing else has one.
func TestDropCopies(t *testing.T) {
	l := newFixLog(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	id := func(n uint64) [2]uint64 { return [2]uint64{n, ^n} }
	give := func(slot uint32, ids ...[2]uint64) error {
		return l.add(order.Entry{Kind: order.KindDropCopy}, dropCopy(&l.m, slot, sourcesOf(ids...)))
	}
	refusal := func(slot uint32, in uint64, body []byte) order.FixRecord {
		r := l.record(slot, order.FixRefusal, 1, in)
		r.Body = body
		return r
	}
	check := func(what, want string, outs ...uint64) {
		t.Helper()
		if got := copied(&l.m); got != want {
			t.Errorf("%s: copies are %q, want %q", what, got, want)
		}
		for slot, out := range outs {
			if got := l.m.Fix.At(uint32(slot)).Out; got != out {
				t.Errorf("%s: session %d sends %d next, want %d", what, slot, got, out)
			}
		}
	}
	must(l.noop(1))
	must(l.open(1, order.FixOpening{Day: 100, Form: 5}, 0, 1))
	must(l.open(2, order.FixOpening{Day: 100, Form: 5}, 1, 1))
	must(l.open(3, order.FixOpening{Day: 100, Form: FixCopiesForm}, 2, 1))
	must(l.open(4, order.FixOpening{Day: 100, Form: FixCopiesForm}, 3, 1))
	must(l.order(0, 2))
	check("before", "", 3, 2, 2, 2)
	must(give(2, id(1), id(2)))
	must(give(3, id(2), id(9)))
	must(l.order(0, 3))
	check("an order of one", "s2 #2 of GRID/S18446744073709551615 report -1 record 0; ", 4, 2, 3, 2)
	must(l.order(1, 2))
	check("an order of the other", "s2 #3 of GRID/S18446744073709551615 report -1 record 0; s3 #2 of GRID/S18446744073709551615 report -1 record 0; ", 4, 3, 4, 3)
	must(l.records(refusal(0, 5, refused("F")), refusal(1, 4, refused("D")), l.record(2, order.FixStep, 2, 3)))
	check("refusals and a heartbeat of the target", "s2 #6 of GRID/S18446744073709551615 report -1 record 1; s3 #3 of GRID/S18446744073709551615 report -1 record 1; ", 5, 4, 7, 4)
	for _, body := range [][]byte{refused("H"), refused("q"), refused("G"), []byte("\x02\x00\x01\x00j45=7\x01"), []byte("\x05\x00"), nil} {
		must(l.records(refusal(1, l.m.Fix.At(1).In+1, body)))
		check(fmt.Sprintf("%q", body), "")
	}
	must(l.noop(1))
	check("a noop", "")
	must(l.open(9, order.FixOpening{Day: 100, Form: 5}, 4, 1)) // a source that is opened later
	must(l.order(4, 2))
	check("a session that was not there", "s3 #4 of GRID/S18446744073709551615 report -1 record 0; ")

	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"itself", give(2, id(1), id(3)), "drop copies of FIX session 2 for itself, allowed: of other sessions"},
		{"an old generation", give(0, id(2)), "reports have form 5, allowed: 7 or more"},
		{"another attempt", l.add(order.Entry{Kind: order.KindDropCopy}, append([]byte{1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0}, sourcesOf(id(1))...)), "in generation 1 and attempt 9, allowed: one that is open"},
		{"a copy in a log", l.add(order.Entry{Kind: order.KindDropCopy}, []byte{2, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'x'}), "op 2, allowed: 1 in a log"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, c.err, c.want)
		}
	}
	again := restored(t, &l.m, l.seq)
	if clone := again.Clone(); again.Digest() != l.m.Digest() || clone.Recount() != l.m.Digest() {
		t.Error("a restored state has another digest")
	}
	must(give(3)) // none any more
	must(l.order(1, 12))
	check("of the other target only", "s2 #7 of GRID/S18446744073709551615 report -1 record 0; ")
	must(l.open(3, order.FixOpening{Day: 101, Form: 5}, 2, 1)) // the next day, at a gateway of the release before
	must(l.order(1, 13))
	check("a generation that does not know them", "")
	must(l.open(3, order.FixOpening{Day: 102, Form: FixCopiesForm}, 2, 1))
	must(l.order(1, 14))
	check("the day after", "s2 #2 of GRID/S18446744073709551615 report -1 record 0; ")
	must(l.records(l.record(2, order.FixRemove, 0, 2)))
	if n := l.m.Fix.DropCopies(); n != 0 {
		t.Errorf("%d drop copies after the session was removed, want none", n)
	}
	for n := range MaxDropCopies + 1 {
		must(l.open(100+uint64(n), order.FixOpening{Day: 103, Form: FixCopiesForm}, uint32(5+n), 1))
		if err := give(uint32(5+n), id(1)); (err != nil) != (n == MaxDropCopies) {
			t.Errorf("drop copy %d: %v", n, err)
		}
	}
}

// TestDropCopiesOfExecutions: in a partition that matches, fills of orders that rest have copies
// too, whichever session's message they are of; cancels that are rejected and mass cancels have none.
func TestDropCopiesOfExecutions(t *testing.T) {
	x := newExchange(t)
	for slot := range uint32(2) {
		x.openFix(slot)
	}
	x.openFixAs(2, FixCopiesForm)
	x.openFixAs(3, FixCopiesForm)
	x.add(order.KindDropCopy, 0, dropCopy(&x.m, 2, sourcesOf([2]uint64{9, 1}, [2]uint64{9, 2})))
	x.add(order.KindDropCopy, 0, dropCopy(&x.m, 3, sourcesOf([2]uint64{9, 1})))
	for _, c := range []struct {
		slot         uint32
		fields, want string
	}{
		{0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00", "s2 #2 of GRID/S10 report 0 record 0; s3 #2 of GRID/S10 report 0 record 0; "},
		{1, "35=D 11=b 55=IBM 54=2 38=40 40=2 44=4.95", "s2 #3 of GRID/S11 report 0 record 0; s2 #4 of GRID/S11 report 1 record 0; s2 #5 of GRID/S10 report 2 record 0; s3 #3 of GRID/S10 report 2 record 0; "},
		{1, "35=F 11=c 41=b 55=IBM 54=1 38=100", ""}, // filled
		{0, "35=G 11=d 41=a 55=IBM 54=1 38=150 40=2 44=4.90", "s2 #6 of GRID/S10 report 0 record 0; s3 #4 of GRID/S10 report 0 record 0; "},
	} {
		x.sendFix(c.slot, c.fields)
		if got := copied(&x.m); got != c.want {
			t.Errorf("%d %s: copies are\n%s, want\n%s", c.slot, c.fields, got, c.want)
		}
	}
	x.send(0, "35=D 11=h 55=IBM 54=2 38=10 40=2 44=4.90") // of a client: the other side is copied
	if got, want := copied(&x.m), "s2 #7 of GRID/S10 report 0 record 0; s3 #5 of GRID/S10 report 0 record 0; "; got != want {
		t.Errorf("a fill by a client: copies are %s, want %s", got, want)
	}
	s := x.m.Fix.At(0)
	mass := order.FixMassCancel{Book: 65535, Message: fixMessage("35=q 11=m 530=7")}
	at := strings.Index(string(mass.Message), "\x0111=") + 4
	mass.ClOrdIDOff, mass.ClOrdIDLen = uint16(at), 1
	x.add(order.KindFix, 0, order.AppendFixRecord(nil, &order.FixRecord{Slot: 0, Attempt: s.Attempt, Generation: s.Generation, In: s.In + 1, Op: order.FixMass, Body: mass.Append(nil)}))
	if got, want := copied(&x.m), "s2 #8 of GRID/S10 report 1 record 0; s3 #6 of GRID/S10 report 1 record 0; "; got != want {
		t.Errorf("a mass cancel: copies are %s, want %s", got, want)
	}
	base, live := x.restored()
	if base.Digest() != x.m.Digest() || live.Digest() != x.m.Digest() || live.Recount() != live.Digest() {
		t.Error("a restored state has another digest")
	}
}
