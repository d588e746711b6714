package ledger

import (
	"fmt"
	"slices"

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
	inLog    bitset // by order index, over the whole run
	next     uint64 // sequence number the log must continue with
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
	return &Checker{id: id, next: last + 1, lastHash: lastHash, hashed: known}
}

// Next is the sequence number the next entry must have: where to continue reading.
func (c *Checker) Next() uint64 { return c.next }

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
	switch {
	case e.Seq > c.next:
		c.counts.Gaps += int64(e.Seq - c.next)
		c.note("gap: %d follows %d", e.Seq, c.next-1)
	case e.Seq < c.next:
		c.counts.Duplicates++
		c.note("sequence number %d comes after %d", e.Seq, c.next-1)
	case c.hashed && e.PrevHash != c.lastHash:
		c.counts.ChainBreaks++
		c.note("entry %d does not follow the previous one: its prevHash is %016x, the previous hash is %016x", e.Seq, e.PrevHash, c.lastHash)
	}
	c.next, c.lastHash, c.hashed = max(c.next, e.Seq+1), e.Hash, true
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
	if c.inLog.set(uint64(index)) {
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
		found := c.inLog.has(uint64(index))
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
	slices.Sort(seqs)
	for i := 1; i < len(seqs); i++ {
		if seqs[i] == seqs[i-1] {
			c.counts.Duplicates++
			c.note("two orders were acknowledged at %d", seqs[i])
		}
	}
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

// bitset grows as needed.
type bitset struct{ words []uint64 }

// set reports whether the bit was set already.
func (b *bitset) set(i uint64) bool {
	w := i / 64
	if w >= uint64(len(b.words)) {
		grown := make([]uint64, max(w+1, uint64(2*len(b.words))))
		copy(grown, b.words)
		b.words = grown
	}
	was := b.words[w]>>(i%64)&1 == 1
	b.words[w] |= 1 << (i % 64)
	return was
}

func (b *bitset) has(i uint64) bool {
	w := i / 64
	return w < uint64(len(b.words)) && b.words[w]>>(i%64)&1 == 1
}
