package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestStatesOfBooks: since when a book is in its state follows the times of entries; an auction
// is as old as its call, a halt that is prolonged as old as it was, and one with an end is over
// then though nothing has happened on its book.
func TestStatesOfBooks(t *testing.T) {
	x := newExchange(t)
	set := func(book uint16, op match.OpKind, state match.State, until int64) {
		t.Helper()
		x.add(order.KindMarket, 0, (&order.Market{Op: order.MarketApply, Kind: uint8(op), State: uint8(state), Book: book, Values: [5]uint64{2: uint64(until)}}).Append(nil))
	}
	now := func() int64 { return x.log[len(x.log)-1].e.TimeNs }
	states := func(m *Machine, at int64) string {
		var all []string
		m.Books.EachState(at, func(s BookState) {
			if s.Until != 0 {
				all = append(all, fmt.Sprintf("%d since %d until %d", s.State, s.Since, s.Until))
			} else {
				all = append(all, fmt.Sprintf("%d since %d", s.State, s.Since))
			}
		})
		return strings.Join(all, ", ")
	}
	is := func(when string, at int64, want ...any) {
		t.Helper()
		text := fmt.Sprintf(want[0].(string), want[1:]...)
		if got := states(&x.m, at); got != text {
			t.Errorf("%s: %s, want %s", when, got, text)
		}
	}
	defined := int64(2000) // entries 3 and 4 define the books, open
	is("defined", now(), "3 since %d, 3 since %d", defined, defined+1000)

	set(0, match.SetState, match.Call, 0)
	called := now()
	for i, side := range []string{"1", "2"} {
		for n := range 5 { // more than one operation may visit
			x.send(0, fmt.Sprintf("35=D 11=%d-%d 55=IBM 54=%s 38=10 40=2 44=5.00", i, n, side))
		}
	}
	set(0, match.Uncross, match.Open, 0)
	if x.m.Books.Phase(0).State != match.Uncrossing {
		t.Fatalf("the auction was over at once: %+v", x.m.Books.Phase(0))
	}
	is("uncrossing", now(), "2 since %d, 3 since %d", called, defined+1000)
	for x.m.Books.Pending() {
		x.add(order.KindContinue, 0, nil)
	}
	opened := now()
	is("uncrossed", now(), "3 since %d, 3 since %d", opened, defined+1000)

	set(1, match.SetState, match.Halted, 0)
	halted := now()
	end := halted + 1_000_000
	set(1, match.SetState, match.Halted, end)
	is("prolonged", now(), "3 since %d, 4 since %d until %d", opened, halted, end)
	is("before its end", end-1, "3 since %d, 4 since %d until %d", opened, halted, end)
	is("at its end", end, "3 since %d, 3 since %d", opened, end)

	restored := x.m.Clone() // from the books' own snapshot
	if got, want := states(&restored, now()), fmt.Sprintf("3 since %d, 4 since %d until %d", now(), now(), end); got != want {
		t.Errorf("a copy: %s, want %s: it knows nothing older than the last operation", got, want)
	}
	set(1, match.SetState, match.Open, 0)
	is("resumed", now(), "3 since %d, 3 since %d", opened, now())
}
