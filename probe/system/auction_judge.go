package system

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/naive"
)

// bid is an order of an auction, as it was sent; a market order has price 0.
type bid struct {
	entry      uint64 // by its receipt
	side       uint8  // 1 buy, 2 sell
	price, qty int64
}

// drawBid draws one. Three quarters of the limits are on the side of the reference on which they trade.
func drawBid(rng *rand.Rand) bid {
	b := bid{side: uint8(1 + rng.IntN(2)), qty: 1 + rng.Int64N(100)}
	if rng.IntN(100) < marketPct {
		return b
	}
	off := rng.Int64N(auctionBeyond+auctionBehind+1) - auctionBehind
	if b.price = auctionReference + off; b.side == 2 {
		b.price = auctionReference - off
	}
	return b
}

// auctioned is what an auction came to, and the entries that it took.
type auctioned struct {
	price, volume, surplus int64 // a surplus of sells is negative
	trades, entries        int
	first, last            uint64 // entries
}

// judgeAuction executes the orders again by the naive matcher, in the order of their receipts, and compares: price, volume and
// surplus, each trade, what was left of market orders, and that nothing was executed before. The executions are those of
// the book from the first order on. It returns what is different, "" if nothing is.
func judgeAuction(sent []bid, executions []client.Execution) (x auctioned, wrong string) {
	want := auctionAgain(sent)
	for i, e := range executions {
		switch e.Kind {
		case client.ExecutionKind(match.AuctionPrice):
			x.price, x.volume, x.surplus, x.first = e.Price, e.Qty, e.Leaves, e.Entry
			if e.Side == uint8(match.Sell) {
				x.surplus = -e.Leaves
			}
		case client.ExecFilled:
			if e.Side == 1 {
				x.trades++
			}
		}
		if x.first != 0 && e.Entry != x.last {
			x.entries++
		}
		x.last = e.Entry
		if wrong != "" {
			continue
		}
		if i >= len(want) {
			wrong = fmt.Sprintf("%s: %s, where the naive matcher has nothing", e.ID(), e.Kind)
		} else if got, is := auctionText(recordOf(e)), auctionText(want[i]); got != is {
			wrong = fmt.Sprintf("%s: %s; the naive matcher has %s", e.ID(), got, is)
		}
	}
	if wrong == "" && len(executions) < len(want) {
		wrong = fmt.Sprintf("%d executions, the next one of the naive matcher is %s", len(executions), auctionText(want[len(executions)]))
	}
	return x, wrong
}

// auctionAgain returns what the naive matcher makes of the orders and of the auction.
func auctionAgain(sent []bid) []match.Record {
	// Bounds are none: the orders rest in the grid's books, or it has refused one.
	m := naive.New(match.Config{Orders: len(sent) + 1, Pages: len(sent) + 1, Books: 1, Work: 4*len(sent) + 4})
	m.Define(0, match.Instrument{Tick: 1, Lot: 1, Low: 1, High: 2 * auctionReference, Ref: auctionReference})
	m.Apply(match.Op{Kind: match.SetState, State: match.Call})
	var want []match.Record
	for _, b := range sent {
		op := match.Op{Kind: match.Enter, ID: b.entry, Side: match.Side(b.side), Qty: b.qty, Price: b.price, Type: match.Limit}
		if b.price == 0 {
			op.Type = match.Market
		}
		want = append(want, m.Apply(op)...)
	}
	return append(want, m.Apply(match.Op{Kind: match.Uncross, State: match.Open})...)
}

// recordOf is an execution as a record of the matcher, without book and owner.
func recordOf(e client.Execution) match.Record {
	return match.Record{Kind: match.Kind(e.Kind), Order: e.Order, Other: e.Other, Price: e.Price, Qty: e.Qty, Leaves: e.Leaves, Cum: e.Cum, Side: match.Side(e.Side), Reason: match.Reason(e.Reason), Flags: e.Flags}
}

// auctionText has all that is compared.
func auctionText(r match.Record) string {
	return fmt.Sprintf("%s of %d with %d: side %d, %d at %d, %d left, %d filled, reason %d, flags %d",
		client.ExecutionKind(r.Kind), r.Order, r.Other, r.Side, r.Qty, r.Price, r.Leaves, r.Cum, r.Reason, r.Flags)
}

// control judges the executions again, with a trade left out, and with an order that was another.
func (h *hall) control(r *Report) {
	trade := slices.IndexFunc(h.executions, func(e client.Execution) bool { return e.Kind == client.ExecFilled })
	if trade < 0 {
		r.judge(Invalid, "there is no trade for the control")
		return
	}
	_, right := judgeAuction(h.sent, h.executions)
	_, without := judgeAuction(h.sent, slices.Delete(slices.Clone(h.executions), trade, trade+2))
	other := slices.Clone(h.sent)
	first := slices.IndexFunc(other, func(b bid) bool { return b.entry == h.executions[trade].Order })
	other[first].qty++
	_, otherwise := judgeAuction(other, h.executions)
	r.Control = fmt.Sprintf("a trade was left out of the executions: %q; an order had one more: %q", without, otherwise)
	if right != "" || without == "" || otherwise == "" {
		r.judge(Invalid, "the control finds %q of executions that are right, %q without a trade, %q with another order: it is not to be believed", right, without, otherwise)
	}
}
