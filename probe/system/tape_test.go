package system

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// fixture is a tape of two sells at one price and a buy that takes the older one and a part of the other.
func fixture() (*tape, []client.Execution) {
	t := newTape()
	t.sent = map[uint64]*sale{
		1: {symbol: "A", side: 2, price: 10, qty: 5}, 2: {symbol: "A", side: 2, price: 10, qty: 5}, 3: {symbol: "A", side: 1, price: 11, qty: 7},
	}
	accepted := func(entry uint64, side uint8, price, qty int64) client.Execution {
		return client.Execution{Entry: entry, Order: entry, N: 1, Kind: client.ExecAccepted, Side: side, Price: price, Qty: qty, Leaves: qty}
	}
	filled := func(n uint32, side uint8, order, other uint64, qty, leaves, cum int64, passive bool) client.Execution {
		return client.Execution{Entry: 3, N: n, Kind: client.ExecFilled, Side: side, Order: order, Other: other, Price: 10, Qty: qty, Leaves: leaves, Cum: cum, Passive: passive}
	}
	return t, []client.Execution{
		accepted(1, 2, 10, 5), accepted(2, 2, 10, 5), accepted(3, 1, 11, 7),
		filled(2, 1, 3, 1, 5, 2, 5, false), filled(3, 2, 1, 3, 5, 0, 5, true),
		filled(4, 1, 3, 2, 2, 0, 7, false), filled(5, 2, 2, 3, 2, 3, 2, true),
	}
}

// The tape finds what is not by price and time, or not what was sent.
func TestTape(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tape, []client.Execution) []client.Execution
		want   string
	}{
		"right":                {func(_ *tape, l []client.Execution) []client.Execution { return l }, ""},
		"the younger is taken": {func(_ *tape, l []client.Execution) []client.Execution { l[3].Other, l[4].Order = 2, 2; return l }, "the first by price, then time, is 1"},
		"another price":        {func(_ *tape, l []client.Execution) []client.Execution { l[3].Price, l[4].Price = 11, 11; return l }, "want 5 at 10"},
		"less than there is":   {func(_ *tape, l []client.Execution) []client.Execution { l[3].Qty, l[4].Qty = 4, 4; return l }, "want 5 at 10"},
		"one side":             {func(_ *tape, l []client.Execution) []client.Execution { return append(l[:4:4], l[5:]...) }, "one side"},
		"one side in the end":  {func(_ *tape, l []client.Execution) []client.Execution { return l[:6] }, "one side"},
		"a trade is left out":  {func(_ *tape, l []client.Execution) []client.Execution { return l[:5] }, "rests, and could trade with 2"},
		"wrong sums":           {func(_ *tape, l []client.Execution) []client.Execution { l[4].Leaves = 1; return l }, "1 left"},
		"twice":                {func(_ *tape, l []client.Execution) []client.Execution { return append(l[:1:1], l...) }, "accepted twice"},
		"another quantity":     {func(_ *tape, l []client.Execution) []client.Execution { l[0].Qty = 6; return l }, "was sent"},
		"nobody's":             {func(x *tape, l []client.Execution) []client.Execution { delete(x.sent, 1); return l }, "not sent"},
		"cancelled":            {func(_ *tape, l []client.Execution) []client.Execution { l[1].Kind = client.ExecCancelled; return l }, "no order asked for"},
		"another book":         {func(x *tape, l []client.Execution) []client.Execution { x.sent[2].symbol = "B"; return l }, "in the book of A"},
	} {
		x, list := fixture()
		got := ""
		for _, e := range c.change(x, list) {
			if got = x.read(e); got != "" {
				break
			}
		}
		if got == "" {
			got = x.end()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	x, list := fixture()
	for _, e := range list[:2] {
		x.read(e)
	}
	x.end()
	if x.lost() != 1 {
		t.Errorf("%d orders are lost, want 1", x.lost())
	}
	right := []client.BookLevel{{Price: 10, Qty: 10, Orders: 2}}
	if wrong := x.shows(client.Book{Symbol: "A", Asks: right}); wrong != "" {
		t.Error(wrong)
	}
	for _, asks := range [][]client.BookLevel{nil, {{Price: 10, Qty: 10, Orders: 1}}, {{Price: 10, Qty: 9, Orders: 2}}, {{Price: 11, Qty: 10, Orders: 2}}} {
		if x.shows(client.Book{Symbol: "A", Asks: asks}) == "" {
			t.Errorf("%v is taken for the book", asks)
		}
	}
}

// The published rows are all there, and what does not fall is judged between rows that differ in users.
func TestExchange(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := d.Scenario(published.ExchangeScenario)
	exact, _, err := exchangeOf(d, s, scenario.Exact)
	if err != nil || len(exact) != 8 {
		t.Fatalf("%d rows, %v, want 8", len(exact), err)
	}
	few, many := flat(exact)
	if few.TPS != 4078 || many.TPS != 4110 {
		t.Errorf("%+v and %+v, want those of 4,078 and 4,110", few, many)
	}
	quick, _, _ := exchangeOf(d, s, scenario.Quick)
	few, many = flat(quick)
	if few.Users != 100 || many.Users != 400 || few.Concentrators != many.Concentrators {
		t.Errorf("%+v and %+v, want those of 100 and 400 users", few, many)
	}
	for ratio, want := range map[float64]Verdict{0.96: Pass, 0.94: Fail} {
		r := &Report{Verdict: Pass}
		tradeShape(r, quick, exact, map[published.Exchange]float64{few: 1000, many: 1000 * ratio})
		if r.Verdict != want || len(r.Figures) != 2 {
			t.Errorf("%v: %s, %+v", ratio, r.Verdict, r.Figures)
		}
	}
	for _, got := range []*traded{{wrong: "x", trades: 1}, {untold: 1, trades: 1}, {untold: -1, trades: 1}} {
		r := &Report{Verdict: Pass}
		if r.judgeTraded(few, got); r.Verdict != Wrong {
			t.Errorf("%+v: %s", got, r.Verdict)
		}
	}
}
