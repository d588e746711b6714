package ledger

import (
	"fmt"

	"github.com/ordergrid/ordergrid/internal/audit"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Entry is one entry of a partition's committed log, of whatever kind.
type Entry struct {
	Seq      uint64
	PrevHash uint64 // hash of the previous entry, as stored in the entry
	Hash     uint64 // hash of this entry, computed from its bytes
	IsOrder  bool
	// Of an order. ClOrdID and FIX may be reused by the caller after the call.
	ClOrdID []byte
	FIX     []byte
}

// Counts is the result of comparing one step's records with the log.
type Counts = report.LedgerCounts

// Checker compares one probe's records with one copy of its partition's log. It lives as long as
// the run, so that an order that appears again in a later step is detected; its memory is one bit
// per order.
type Checker struct {
	id       fixorder.ID
	inLog    audit.Set   // by order index, over the whole run
	log      audit.Dense // sequence numbers
	lastHash uint64
	hashed   bool // lastHash is known

	// The step under way.
	first    int64
	orders   []load.Order
	content  ContentCheck
	counts   Counts
	examples []string
}

// NewChecker begins after sequence number last, whose hash is lastHash if that is known: earlier
// entries of the log are ignored.
func NewChecker(id fixorder.ID, last, lastHash uint64, known bool) *Checker {
	return &Checker{id: id, log: audit.Dense{Next: last + 1}, lastHash: lastHash, hashed: known}
}

// Next is the sequence number the next entry must have: where to continue reading.
func (c *Checker) Next() uint64 { return c.log.Next }

// ContentCheck reports how the bytes of an order of the step differ from what was sent.
type ContentCheck func(index int64, fix []byte) error

// Begin starts the comparison of a step, whose first order has the given index.
// The orders must not change before Finish. A nil content stands for the one
// order of the published tests.
func (c *Checker) Begin(first int64, orders []load.Order, content ContentCheck) {
	c.first, c.orders, c.content, c.counts, c.examples = first, orders, content, Counts{}, nil
}

// check compares the bytes of an order. The content of an order of an earlier step is no longer
// known when orders are varied; it was checked then, or counts as late now.
func (c *Checker) check(index int64, fix []byte) error {
	switch {
	case c.content == nil:
		return fixorder.Check(fix)
	case index < c.first || index >= c.first+int64(len(c.orders)):
		return nil
	}
	return c.content(index, fix)
}

// Entry processes the next entry of the log.
func (c *Checker) Entry(e Entry) {
	c.counts.Entries++
	last := c.log.Next - 1
	switch missing, back := c.log.See(e.Seq); {
	case missing > 0:
		c.counts.Gaps += int64(missing)
		c.note("gap: %d follows %d", e.Seq, last)
	case back:
		c.counts.Duplicates++
		c.note("sequence number %d comes after %d", e.Seq, last)
	case c.hashed && e.PrevHash != c.lastHash:
		c.counts.ChainBreaks++
		c.note("entry %d does not follow the previous one: its prevHash is %016x, the previous hash is %016x", e.Seq, e.PrevHash, c.lastHash)
	}
	c.lastHash, c.hashed = e.Hash, true
	if e.IsOrder {
		c.order(e)
	}
}

func (c *Checker) order(e Entry) {
	id, index, ok := fixorder.ParseID(e.ClOrdID)
	if !ok || id != c.id {
		c.counts.Foreign++
		return
	}
	if err := c.check(index, e.FIX); err != nil {
		c.counts.Corrupt++
		c.note("order %d at %d: %v", index, e.Seq, err)
	}
	if c.inLog.Add(uint64(index)) {
		c.counts.Duplicates++
		c.note("order %d is in the log again at %d", index, e.Seq)
		return
	}
	switch i := index - c.first; {
	case i < 0:
		c.counts.Late++
	case i >= int64(len(c.orders)):
		c.counts.Refused++
		c.note("order %d at %d was never created", index, e.Seq)
	default:
		c.fate(index, &c.orders[i], e)
	}
}

func (c *Checker) fate(index int64, o *load.Order, e Entry) {
	switch o.Fate {
	case load.Acked:
		if !o.At(e.Seq, e.Hash) {
			c.counts.Misplaced++
			c.note("order %d was acknowledged at %d (hash %016x) and is at %d (hash %016x)", index, o.Seq, o.Hash, e.Seq, e.Hash)
		}
	case load.Unknown:
		c.counts.UnknownFound++
	default:
		c.counts.Refused++
		c.note("order %d at %d is in the log and was %s", index, e.Seq, o.Fate)
	}
}

// Finish ends the step: all entries that may hold its orders have been passed to Entry.
func (c *Checker) Finish() Counts {
	for i := range c.orders {
		o, index := &c.orders[i], c.first+int64(i)
		found := c.inLog.Has(uint64(index))
		switch {
		case o.Fate == load.Unknown && !found:
			c.counts.UnknownAbsent++
		case o.Fate == load.Acked && !found:
			c.counts.Lost++
			c.note("order %d was acknowledged at %d and is not in the log", index, o.Seq)
		}
	}
	c.receiptsTwice()
	c.orders = nil
	return c.counts
}

// receiptsTwice looks for a sequence number in two receipts. The numbers come from the grid, so
// they are sorted and not used as an index.
func (c *Checker) receiptsTwice() {
	var seqs []uint64
	for i := range c.orders {
		if c.orders[i].Fate == load.Acked {
			seqs = append(seqs, c.orders[i].Seq)
		}
	}
	audit.Twice(seqs, func(seq uint64) {
		c.counts.Duplicates++
		c.note("two orders were acknowledged at %d", seq)
	})
}

// maxExamples bounds the report of a broken grid.
const maxExamples = 8

func (c *Checker) note(format string, args ...any) {
	if len(c.examples) < maxExamples {
		c.examples = append(c.examples, fmt.Sprintf(format, args...))
	}
}

// Examples are the first violations of the step, in words.
func (c *Checker) Examples() []string { return c.examples }
