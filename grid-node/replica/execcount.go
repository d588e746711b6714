package replica

import (
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// qtyDigits are the numbers of digits behind the point that quantities may have.
const qtyDigits = 13

// ExecutionCounters count what entries did that this replica committed as the primary. They
// have no part by instrument, of which there may be thousands.
type ExecutionCounters struct {
	Kinds      [match.OrderRemoved + 1]uint64 // records, by match.Kind; Accepted of orders alone
	Refusals   [match.Reasons]uint64          // what a book refused, by match.Reason
	SelfMatch  uint64                         // orders cancelled, in full or in part, because they met one of their group
	Continuous uint64                         // trades in continuous trading
	Auction    uint64                         // trades in auctions
	// Quantity of these trades in units of the last digit, by the digits behind the point that its
	// instrument has; the high word first.
	Quantity [qtyDigits][2]uint64
}

// add counts a record of a book whose quantities have so many digits behind the point.
func (c *ExecutionCounters) add(r *match.Record, digits uint8) {
	if r.OfSweep() {
		return
	}
	c.Kinds[r.Kind]++
	switch r.Kind {
	case match.Filled: // both sides have a record
		switch {
		case r.Flags&match.Passive != 0, r.Flags&match.Auction != 0 && r.Side == match.Sell:
			return
		case r.Flags&match.Auction != 0:
			c.Auction++
		default:
			c.Continuous++
		}
		q, carry := &c.Quantity[digits], uint64(0)
		q[1], carry = bits.Add64(q[1], uint64(r.Qty), 0)
		q[0] += carry
	case match.Rejected, match.CancelRejected:
		c.Refusals[r.Reason]++
	case match.Cancelled:
		if r.Reason == match.SelfMatch {
			c.SelfMatch++
		}
	}
}

// counts reports whether what an entry did is counted as it is committed: not what was read from
// the journal, which another process had committed.
func (r *Replica) counts(seq uint64) bool { return seq > r.resumedTo || mutant(mutResumedCounted) }

// countExecutions counts what an entry did, when it is committed.
func (r *Replica) countExecutions(seq uint64) {
	if !r.counts(seq) {
		return
	}
	list := r.live.Books.Instruments()
	first, n := r.execs.of(seq)
	for i := range n {
		rec, digits := r.execs.records.at(first+i), uint8(0)
		if int(rec.Book) < len(list) {
			digits = list[rec.Book].QtyDigits
		}
		r.count.Executions.add(rec, digits)
	}
}

// Resting returns how many orders rest in the books, by all that is stored here, and how many
// can; 0 in a partition that stores orders.
func (r *Replica) Resting() (orders, most int) {
	if r.live.Books == nil {
		return 0, 0
	}
	return r.live.Books.Resting(), r.live.Books.Most()
}

// EachBook calls f with the state of each book at a time (Unix ns), and its instrument, which
// must not be changed. In a partition that stores orders there are none.
func (r *Replica) EachBook(now int64, f func(machine.BookState, *machine.Instrument)) {
	if b := r.live.Books; b != nil {
		list := b.Instruments()
		b.EachState(now, func(s machine.BookState) { f(s, &list[s.Book]) })
	}
}
