package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

const fixDay = 20_780

// openFix opens the FIX session of a slot.
func (x *exchange) openFix(slot uint32) { x.openFixAs(slot, 3) }

// openFixAs has reports of a form.
func (x *exchange) openFixAs(slot uint32, form uint8) {
	x.t.Helper()
	r, o, ok := x.m.Fix.Opening(order.FixOpening{ID: [2]uint64{9, uint64(slot) + 1}, Day: fixDay, Form: form}, slot, 1)
	if !ok {
		x.t.Fatal("not opened")
	}
	r.Body = o.Append(nil)
	x.add(order.KindFix, 0, order.AppendFixRecord(nil, &r))
}

// sendFix is an order message of a FIX session; the result are its reports.
func (x *exchange) sendFix(slot uint32, fields string) string {
	x.t.Helper()
	msg := fixMessage(fields)
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		x.t.Fatal(err)
	}
	i, err := x.m.Books.Resolve(msg, &o, termsOf(msg, &o), FixOwner(slot))
	if err != nil {
		x.t.Fatal(err)
	}
	x.addOf(order.Entry{Kind: order.KindExecute, Flags: order.FixFlags(fixDay), Session: slot, ClientSeq: x.m.Fix.At(slot).In, Fields: o.Fields.Instructed()}, append(i.Append(nil), msg...))
	return x.reports()
}

func (x *exchange) reports() string {
	var b strings.Builder
	for i := range x.m.Books.Reports() {
		f := &x.m.Books.Reports()[i]
		fmt.Fprintf(&b, "s%d #%d kind %d %s of %d value %d; ", f.Slot, f.Number, x.m.Books.Records()[f.Record].Kind, f.ClOrdID(), f.First, f.Value)
	}
	return b.String()
}

// TestFixReports: each record of an order of a FIX session has the next number of that session,
// of either sender, and the sums of the order until then.
func TestFixReports(t *testing.T) {
	x := newExchange(t)
	x.openFix(0)
	x.openFix(1)
	for _, c := range []struct {
		slot         uint32
		fields, want string
	}{
		{0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00", "s0 #2 kind 1 a of 10 value [0 0]; "},
		{1, "35=D 11=a 55=IBM 54=2 38=40 40=2 44=4.95", "s1 #2 kind 1 a of 11 value [0 0]; s1 #3 kind 3 a of 11 value [0 20000]; s0 #3 kind 3 a of 10 value [0 20000]; "},
		{1, "35=F 11=c 41=a 55=IBM 54=1 38=100", "s1 #4 kind 5 c of 0 value [0 0]; "}, // its own a is filled
		{0, "35=G 11=b 41=a 55=IBM 54=1 38=150 40=2 44=4.90", "s0 #4 kind 6 b of 10 value [0 20000]; "},
		{1, "35=D 11=d 55=IBM 54=2 38=10 40=2 44=4.90", "s1 #5 kind 1 d of 14 value [0 0]; s1 #6 kind 3 d of 14 value [0 4900]; s0 #5 kind 3 b of 10 value [0 24900]; "},
		{0, "35=F 11=e 41=b 55=IBM 54=1 38=100", "s0 #6 kind 4 e of 10 value [0 24900]; "},
		{0, "35=D 11=f 55=OIL 54=1 38=2 40=2 44=-37", "s0 #7 kind 1 f of 16 value [0 0]; "},
		{1, "35=D 11=g 55=OIL 54=2 38=1 40=2 44=-37", "s1 #7 kind 1 g of 17 value [0 0]; s1 #8 kind 3 g of 17 value [18446744073709551615 18446744073709514616]; s0 #8 kind 3 f of 16 value [18446744073709551615 18446744073709514616]; "},
	} {
		if got := x.sendFix(c.slot, c.fields); got != c.want {
			t.Errorf("%d %s\n got %s\nwant %s", c.slot, c.fields, got, c.want)
		}
	}
	x.send(0, "35=D 11=h 55=OIL 54=2 38=1 40=2 44=-37") // of a client: only the other side is reported
	if got, want := x.reports(), "s0 #9 kind 3 f of 16 value [18446744073709551615 18446744073709477616]; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := x.m.Books.FixRests(0); n != 0 {
		t.Errorf("%d orders of session 0 rest, want none", n)
	}
	if again, _ := x.m.Books.Find([]byte("a"), FixOwner(0)); again != 0 {
		t.Errorf("a rests as %d", again)
	}
}

// TestFixStaysWithOrders: a session with orders in the book is not removed.
func TestFixStaysWithOrders(t *testing.T) {
	x := newExchange(t)
	x.openFix(0)
	x.sendFix(0, "35=D 11=a 55=IBM 54=1 38=100 40=2 44=5.00")
	removal := func() []byte {
		s := x.m.Fix.At(0)
		return order.AppendFixRecord(nil, &order.FixRecord{Slot: 0, Attempt: s.Attempt, Generation: s.Generation, In: s.In, Op: order.FixRemove})
	}
	e := order.Entry{Kind: order.KindFix, Seq: uint64(len(x.log)) + 1, Epoch: 1}
	const want = "is removed with 1 orders in the books, allowed: none"
	if err := x.m.Check(&e, removal()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	x.sendFix(0, "35=F 11=b 41=a 55=IBM 54=1 38=100")
	if err := x.m.Check(&e, removal()); err != nil {
		t.Error(err)
	}
}
