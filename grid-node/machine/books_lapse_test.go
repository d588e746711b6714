package machine

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// openLapsing opens the FIX session of a slot in a mode.
func (x *exchange) openLapsing(slot uint32, mode order.LapseMode) {
	x.t.Helper()
	o := order.FixOpening{ID: [2]uint64{9, uint64(slot) + 1}, Day: fixDay, Form: 6, Mode: mode}
	if mode != order.LapseNever {
		o.GraceMs = 1500
	}
	r, o, ok := x.m.Fix.Opening(o, slot, 0)
	if !ok {
		x.t.Fatal("not opened")
	}
	r.Body = o.Append(nil)
	x.add(order.KindFix, 0, order.AppendFixRecord(nil, &r))
}

// fixRecord is one that the state admits, but for what is checked of its operation.
func (x *exchange) fixRecord(slot uint32, op order.FixOp, outs uint8) []byte {
	s := x.m.Fix.At(slot)
	return order.AppendFixRecord(nil, &order.FixRecord{Slot: slot, Attempt: s.Attempt, Generation: s.Generation, In: s.In, Op: op, Outs: outs})
}

// TestLapse: one entry takes the orders of several sessions out, in parts, and no others; each
// is reported by the session's own numbers. It fences the gateway, and a session lapses once
// after a Logon.
func TestLapse(t *testing.T) {
	x := newExchange(t)
	x.openLapsing(0, order.LapseOnLoss)
	x.openLapsing(1, order.LapseNever)
	x.openLapsing(2, order.LapseOnLogout)
	for slot := range uint32(3) {
		x.sendFix(slot, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")
		x.sendFix(slot, "35=D 11=b 55=OIL 54=2 38=3 40=2 44=40")
	}
	refused := func(payload []byte, want string) {
		t.Helper()
		e := order.Entry{Kind: order.KindFix, Seq: uint64(len(x.log)) + 1, Epoch: 1}
		if err := x.m.Check(&e, payload); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	refused(x.fixRecord(1, order.FixLapse, 0), "lapses in mode 0")
	refused(x.fixRecord(1, order.FixLeave, 1), "leaves, allowed: in a mode")
	x.add(order.KindFix, 0, x.fixRecord(0, order.FixLeave, 1))
	refused(x.fixRecord(0, order.FixLapse, 0), "left true") // after its Logout
	x.openLapsing(0, order.LapseOnLoss)
	attempt := x.m.Fix.At(0).Attempt
	x.add(order.KindFix, 0, append(x.fixRecord(0, order.FixLapse, 0), x.fixRecord(2, order.FixLapse, 0)...))
	cancelled := map[uint32]int{}
	for {
		for _, r := range x.m.Books.Records() {
			if slot, fix := FixSlot(r.Owner); fix && r.Kind == match.Cancelled && r.Reason == match.Disconnected {
				cancelled[slot]++
			}
		}
		if strings.Contains(x.reports(), "s1") {
			t.Errorf("session 1 is told: %s", x.reports())
		}
		if !x.m.Books.Pending() {
			break
		}
		if _, live := x.restored(); live.Digest() != x.m.Digest() {
			t.Error("a copy restored amid a lapse is another")
		}
		x.add(order.KindContinue, 0, nil)
	}
	if len(cancelled) != 2 || cancelled[0] != 2 || cancelled[2] != 2 || x.m.Books.FixRests(0)+x.m.Books.FixRests(2) != 0 || x.m.Books.FixRests(1) != 2 {
		t.Errorf("cancelled of %v; %d of session 1 rest", cancelled, x.m.Books.FixRests(1))
	}
	if s := x.m.Fix.At(0); s.Attempt != attempt+1 || !s.Lapsed {
		t.Errorf("after the lapse session 0 is %+v", s)
	}
	refused(x.fixRecord(0, order.FixLapse, 0), "lapsed true")
	x.openLapsing(0, order.LapseOnLoss)
	refused(x.fixRecord(0, order.FixLapse, 0), "")
	x.add(order.KindFix, 0, x.fixRecord(2, order.FixLeave, 2))
	r, o, _ := x.m.Fix.Opening(order.FixOpening{ID: [2]uint64{9, 3}, Day: fixDay, Flags: order.FixLate}, 2, 0)
	r.Body = o.Append(nil)
	x.add(order.KindFix, 0, order.AppendFixRecord(nil, &r)) // of a Logon that is refused: nothing changes
	if s := x.m.Fix.At(2); !s.Lapsed || s.Mode != order.LapseOnLogout {
		t.Errorf("behind a Logon that was refused session 2 is %+v", s)
	}
	if s := x.m.Fix.At(2); !s.Left || x.m.Fix.Modes() != 2 {
		t.Errorf("session 2 is %+v; %d sessions have a mode", s, x.m.Fix.Modes())
	}
	if _, live := x.restored(); live.Fix.Modes() != 2 || *live.Fix.At(2) != *x.m.Fix.At(2) || *live.Fix.At(0) != *x.m.Fix.At(0) || live.Recount() != x.m.Recount() {
		t.Errorf("restored: %+v", live.Fix)
	}
}
