package machine

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestCalendarEntries: an entry of the calendar changes its book once, not before its time, and in order; a later calendar takes
// the place of an earlier one. A restored copy has what was done.
func TestCalendarEntries(t *testing.T) {
	x := newExchange(t)
	const first = `{"grid":"g","object":"s","sinceMs":1000,"generation":1}`
	now := func() int64 { return x.log[len(x.log)-1].e.TimeNs }
	enter := func(book uint16, op match.OpKind, state match.State, due int64) order.Market {
		return order.Market{Op: order.MarketScheduled, Kind: uint8(op), State: uint8(state), Book: book, Values: [5]uint64{4: uint64(due)}}
	}
	if x.m.Books.Scheduled() {
		t.Error("a machine without an entry of the calendar has done some of it")
	}
	x.add(order.KindMarket, 0, (&order.Market{Op: order.MarketCalendar, Symbol: []byte(first)}).Append(nil))
	due := now()
	call, uncross := enter(1, match.SetState, match.Call, due), enter(1, match.Uncross, match.Open, due+1)
	x.add(order.KindMarket, 0, call.Append(nil))
	if s := x.m.Books.Phase(1).State; s != match.Call || x.m.Books.Done(1) != due || x.m.Books.Done(0) != 0 {
		t.Errorf("in state %d, done %d", s, x.m.Books.Done(1))
	}
	x.add(order.KindMarket, 0, uncross.Append(nil))
	if s := x.m.Books.Phase(1).State; s != match.Open || x.m.Books.Done(1) != due+1 {
		t.Errorf("in state %d, done %d", s, x.m.Books.Done(1))
	}
	mark := enter(0, 0, match.Open, due)
	x.add(order.KindMarket, 0, mark.Append(nil))
	if len(x.m.Books.Records()) != 0 || x.m.Books.Done(0) != due {
		t.Errorf("a phase that the book is in already: %+v, done %d", x.m.Books.Records(), x.m.Books.Done(0))
	}
	c := x.m.Clone()
	for _, m := range []*Machine{&x.m, &c} {
		if m.Digest() != m.Recount() || m.Digest() != x.m.Digest() || m.Books.Done(1) != due+1 || m.Books.CalendarSource() == nil || m.Books.CalendarSource().Generation != 1 {
			t.Errorf("digest %x, recounted %x, of the log %x, done %d, %v", m.Digest(), m.Recount(), x.m.Digest(), m.Books.Done(1), m.Books.CalendarSource())
		}
		for name, v := range map[string]struct {
			m    order.Market
			want string
		}{
			"once":                {uncross, "due is"},
			"in order":            {call, "due is"},
			"not before its time": {enter(0, match.SetState, match.Call, now()+2_000_000_000), "due is"},
			"no time":             {enter(0, match.SetState, match.Call, 0), "due is 0"},
			"another book":        {enter(2, match.SetState, match.Call, now()), "book is 2"},
			"halted":              {enter(0, match.SetState, match.Halted, now()), "state is 4"},
			"a mass cancel":       {enter(0, match.MassCancel, match.Open, now()), "market operation is 4"},
			"the same calendar":   {order.Market{Op: order.MarketCalendar, Symbol: []byte(first)}, "allowed: later than generation 1"},
			"no source":           {order.Market{Op: order.MarketCalendar, Symbol: []byte(`{}`)}, "source"},
		} {
			e := order.Entry{Kind: order.KindMarket, Seq: uint64(len(x.log) + 1), TimeNs: now() + 1_000_000_000}
			if err := m.Check(&e, v.m.Append(nil)); err == nil || !strings.Contains(err.Error(), v.want) {
				t.Errorf("%s: %v, want %s", name, err, v.want)
			}
		}
	}
}
