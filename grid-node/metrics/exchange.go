package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// Exchange is the books of a partition that matches. There is no part by instrument: a grid may
// have thousands, and each is in one partition. Which books wait is on the page /memory.
type Exchange struct {
	Resting, Most int // orders in the books, and how many may be
	States        [match.Halted + 1]int
	AuctionNs     int64 // age of the longest auction, from its call on; 0 without one
	HaltNs        int64 // age of the longest halt that has no end; 0 without one
	Diverged      bool  // another copy has executed otherwise what is not committed
}

var (
	restingOrders = desc("resting_orders", "Orders that rest in the books of the partition, stops included; absent in a grid that stores orders.", "partition")
	restingLimit  = desc("resting_orders_limit", "Orders that can rest there; a further one is refused by its book. Absent in a grid that stores orders.", "partition")
	books         = desc("books", "Books of the partition by state: closed, call, uncrossing, open, halted. A halt whose end is over counts as what follows it. Absent in a grid that stores orders.", "partition", "state")
	auctionAge    = desc("auction_age_seconds", "Age of the longest auction of the partition, from the beginning of its call; 0 without one. A copy that learned the partition since counts from then. Absent in a grid that stores orders.", "partition")
	haltAge       = desc("halt_age_seconds", "Age of the longest halt of the partition that ends by a person alone; 0 without one. A copy that learned the partition since counts from then. Absent in a grid that stores orders.", "partition")
	diverged      = desc("executions_diverged", "1 while another copy of the partition has executed otherwise what is not committed: nothing from there on is reported. Absent in a grid that stores orders.", "partition")
	executions    = desc("executions_total", "What happened to orders and books, by kind, when it was committed; counted by the primary. A trade is filled twice, once for each side. Accepted are orders, not mass cancels. Absent in a grid that stores orders.", "partition", "kind")
	trades        = desc("trades_total", "Trades, by phase of their book: continuous, auction; counted by the primary. Absent in a grid that stores orders.", "partition", "phase")
	quantity      = desc("traded_quantity_total", "Quantity of these trades, of all instruments together; counted by the primary. Absent in a grid that stores orders.", "partition")
	selfTrades    = desc("self_trades_prevented_total", "Orders cancelled, in full or in part, because they met one of their group (tags 2362 and 2964); counted by the primary. Absent in a grid that stores orders.", "partition")
	bookRefusals  = desc("book_refusals_total", "New orders, replaces, cancels and operations on books that a book refused, by reason; counted by the primary. Limits refuse before that. Absent in a grid that stores orders.", "partition", "reason")

	exchangeDescs = []*prometheus.Desc{restingOrders, restingLimit, books, auctionAge, haltAge, diverged, executions, trades, quantity, selfTrades, bookRefusals}
)

var bookStates = [match.Halted + 1]string{match.Closed: "closed", match.Call: "call", match.Uncrossing: "uncrossing", match.Open: "open", match.Halted: "halted"}

// executionKinds are those that entries make; market data is none of them.
var executionKinds = [match.BandChanged + 1]string{
	match.Accepted: "accepted", match.Rejected: "rejected", match.Filled: "filled", match.Cancelled: "cancelled", match.CancelRejected: "cancel_rejected",
	match.Replaced: "replaced", match.Restated: "restated", match.Triggered: "triggered", match.StateChanged: "state_changed",
	match.AuctionPrice: "auction_price", match.MassCancelled: "mass_cancelled", match.BandChanged: "band_changed",
}

// refusalReasons are those of a Rejected or CancelRejected.
var refusalReasons = [match.Reasons]string{
	match.BadID: "bad_id", match.DuplicateID: "duplicate_id", match.UnknownInstrument: "unknown_instrument", match.UnknownOrder: "unknown_order",
	match.BadField: "bad_field", match.BadQty: "bad_quantity", match.QtyTooLarge: "quantity_too_large", match.BadDisplay: "bad_display",
	match.OutsideBand: "outside_band", match.OffTick: "off_tick", match.Overflow: "overflow", match.NotInState: "not_in_state",
	match.WouldCross: "would_cross", match.TriggerPassed: "trigger_passed", match.QtyFilled: "quantity_filled", match.Full: "full",
	match.MassCancelling: "mass_cancelling", match.Busy: "busy", match.Killed: "killed", match.Disconnected: "disconnected",
}

// exchange emits what a partition that matches does.
func (e emitter) exchange(p *Partition) {
	x := p.Exchange
	if x == nil {
		return
	}
	e.gauge(restingOrders, float64(x.Resting), p.Name)
	e.gauge(restingLimit, float64(x.Most), p.Name)
	for state, n := range x.States {
		e.gauge(books, float64(n), p.Name, bookStates[state])
	}
	e.gauge(auctionAge, float64(x.AuctionNs)*1e-9, p.Name)
	e.gauge(haltAge, float64(x.HaltNs)*1e-9, p.Name)
	e.gauge(diverged, b2f(x.Diverged), p.Name)
	c := &p.Counters.Executions
	for kind, name := range executionKinds {
		if name != "" {
			e.counter(executions, c.Kinds[kind], p.Name, name)
		}
	}
	e.counter(trades, c.Continuous, p.Name, "continuous")
	e.counter(trades, c.Auction, p.Name, "auction")
	e <- prometheus.MustNewConstMetric(quantity, prometheus.CounterValue, traded(&c.Quantity), p.Name)
	e.counter(selfTrades, c.SelfMatch, p.Name)
	for reason, name := range refusalReasons {
		if name != "" {
			e.counter(bookRefusals, c.Refusals[reason], p.Name, name)
		}
	}
}

// traded adds quantities up that are in units of 10^-i, the high word first.
func traded(byDigits *[13][2]uint64) (sum float64) {
	for i, q := range byDigits {
		sum += (float64(q[0])*math.Exp2(64) + float64(q[1])) / math.Pow10(i)
	}
	return sum
}
