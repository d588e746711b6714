package system

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// heldAuction is an auction as the engine of a grid executes it, in parts.
func heldAuction(t *testing.T, orders int) (sent []bid, executions []client.Execution) {
	t.Helper()
	e, err := match.New(match.Config{Orders: orders, Pages: orders, Books: 8, Work: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const book = 5
	if err := e.Define(book, match.Instrument{Tick: 1, Lot: 1, Low: 1, High: 2 * auctionReference, Ref: auctionReference}); err != nil {
		t.Fatal(err)
	}
	entry := uint64(100)
	do := func(op match.Op) {
		entry += 3 // others are of other books
		op.Book = book
		for n, r := range e.Apply(&op, nil) {
			executions = append(executions, client.DecodeExecution(0, entry, uint32(n)+1, r.AppendTo(nil)))
		}
	}
	do(match.Op{Kind: match.SetState, State: match.Call})
	executions = nil
	rng := rand.New(rand.NewPCG(7, 7))
	for range orders {
		b := drawBid(rng)
		b.entry = entry + 3
		sent = append(sent, b)
		op := match.Op{Kind: match.Enter, ID: b.entry, Owner: 3, Side: match.Side(b.side), Qty: b.qty, Price: b.price, Type: match.Limit}
		if b.price == 0 {
			op.Type = match.Market
		}
		do(op)
	}
	do(match.Op{Kind: match.Uncross, State: match.Open})
	for e.Pending() {
		do(match.Op{Kind: match.Continue})
	}
	return sent, executions
}

// What the engine makes of an auction is what the naive matcher does, and what is changed in it is found.
func TestJudgeAuction(t *testing.T) {
	sent, executions := heldAuction(t, 300)
	fill := slices.IndexFunc(executions, func(e client.Execution) bool { return e.Kind == client.ExecFilled })
	price := slices.IndexFunc(executions, func(e client.Execution) bool { return e.Kind == client.ExecutionKind(match.AuctionPrice) })
	if fill < 0 || price < 0 {
		t.Fatalf("no trade, or no price, in %d executions", len(executions))
	}
	x, wrong := judgeAuction(sent, executions)
	if wrong != "" || x.price != executions[price].Price || x.volume != executions[price].Qty || x.volume < 1000 || x.trades < 50 || x.entries < 5 || x.first != executions[price].Entry || x.last != executions[len(executions)-1].Entry {
		t.Errorf("%+v, %q", x, wrong)
	}
	for name, c := range map[string]struct {
		change func(sent []bid, l []client.Execution) ([]bid, []client.Execution)
		want   string
	}{
		"another price":   {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { l[price].Price++; return s, l }, "the naive matcher has auction price"},
		"another volume":  {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { l[price].Qty--; return s, l }, "the naive matcher has auction price"},
		"another surplus": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { l[price].Leaves++; return s, l }, "the naive matcher has auction price"},
		"a trade is left out": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) {
			return s, slices.Delete(l, fill, fill+2)
		}, "the naive matcher has filled"},
		"a trade is another's": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { l[fill].Other += 3; return s, l }, "the naive matcher has filled"},
		"one before the call's end": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) {
			l[fill].Entry = l[0].Entry
			return s, slices.Insert(slices.Delete(l, fill, fill+1), 1, executions[fill])
		}, "the naive matcher has accepted"},
		"the end is missing": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { return s, l[:len(l)-1] }, "the next one of the naive matcher is state changed"},
		"one more":           {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { return s, append(l, l[fill]) }, "has nothing"},
		"an order was not sent": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) {
			return slices.Delete(s, 5, 6), l
		}, "the naive matcher has accepted"},
		"an order was another": {func(s []bid, l []client.Execution) ([]bid, []client.Execution) { s[5].qty++; return s, l }, "the naive matcher has accepted"},
	} {
		if _, wrong := judgeAuction(c.change(slices.Clone(sent), slices.Clone(executions))); !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
	}
	for want, list := range map[Verdict][]client.Execution{Pass: executions, Invalid: executions[:len(executions)-1]} {
		h, r := &hall{sent: sent, executions: list}, &Report{Verdict: Pass}
		if h.control(r); r.Verdict != want || !strings.Contains(r.Control, "a trade was left out") {
			t.Errorf("control: %s %v, want %s: %q", r.Verdict, r.Reasons, want, r.Control)
		}
	}
}

// The shape: time per order, and what gets between the parts. What is wrong is worse, and an auction without a trade shows nothing.
func TestAuctionShape(t *testing.T) {
	of := func(orders int, took time.Duration, entries, within int) *uncrossed {
		return &uncrossed{auctioned: auctioned{volume: 1, entries: entries}, orders: orders, took: took, within: within}
	}
	few := of(1000, 10*time.Millisecond, 4, 0)
	for name, c := range map[string]struct {
		many *uncrossed
		want Verdict
	}{
		"as long an order":   {of(4000, 40*time.Millisecond, 16, 3), Pass},
		"shorter":            {of(4000, 20*time.Millisecond, 16, 3), Pass},
		"three times":        {of(4000, 120*time.Millisecond, 16, 3), Fail},
		"nothing in between": {of(4000, 40*time.Millisecond, 16, 0), Fail},
		"of one part":        {of(4000, 40*time.Millisecond, 1, 0), Pass},
	} {
		r := &Report{Verdict: Pass}
		if auctionShape(r, few, c.many); r.Verdict != c.want {
			t.Errorf("%s: %s %v, want %s", name, r.Verdict, r.Reasons, c.want)
		}
	}
	for want, u := range map[Verdict]*uncrossed{Pass: few, Wrong: {wrong: "x"}, Invalid: {}} {
		r := &Report{Verdict: Pass}
		if u.judged(r); r.Verdict != want {
			t.Errorf("%+v: %s, want %s", u, r.Verdict, want)
		}
	}
}
