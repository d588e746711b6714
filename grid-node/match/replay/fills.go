package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// Fills adds up what a copy says its orders did, record by record. It is not safe for use by
// several goroutines.
type Fills struct {
	Sums
	orders map[uint64]*account
	books  map[uint16]*book
	traded map[position]int64 // of each owner, by the records of trades
	held   map[position]int64 // the same by the orders that are gone
	half   *match.Record      // of a trade whose other side comes next
	halfID string
	words  []string
	count  int
}

// Sums of what was added.
type Sums struct {
	Records uint64 `json:"records"` // executions, and what else happened to books
	Trades  uint64 `json:"trades"`  // each of two executions
	Orders  uint64 `json:"orders"`  // that entered
}

// account of an order: what it asks for, and what became of it.
type account struct {
	owner                     uint32
	book                      uint16
	side                      match.Side
	qty, cum, cancelled, left int64
}

type book struct {
	qty   [4]int64 // by side
	value [4]big.Int
}

type position struct {
	owner uint32
	book  uint16
}

// NewFills begins with no order.
func NewFills() *Fills {
	return &Fills{orders: map[uint64]*account{}, books: map[uint16]*book{}, traded: map[position]int64{}, held: map[position]int64{}}
}

// mostWords bounds the findings that are put in words.
const mostWords = 20

func (f *Fills) wrong(at, format string, args ...any) {
	if f.count++; len(f.words) < mostWords {
		f.words = append(f.words, at+": "+fmt.Sprintf(format, args...))
	}
}

// Add takes the next record, which is named at: 17.2 is the second of entry 17. One of kind 0 is out
// of its place in its entry, and adds up to nothing.
func (f *Fills) Add(at string, r *match.Record) {
	f.Records++
	if f.half != nil && r.Kind != match.Filled {
		f.wrong(f.halfID, "a trade of order %d has one side", f.half.Order)
		f.half = nil
	}
	switch {
	case r.Kind == 0:
		f.wrong(at, "a record of order %d is none that there can be in this place", r.Order)
	case r.OfSweep():
	case r.Kind == match.Accepted:
		if f.orders[r.Order] != nil {
			f.wrong(at, "order %d enters again", r.Order)
		}
		f.Orders++
		f.orders[r.Order] = &account{owner: r.Owner, book: r.Book, side: r.Side, qty: r.Qty, left: r.Qty}
		f.adds(at, r)
	case r.Kind == match.Filled:
		f.filled(at, r)
	case r.Kind == match.Cancelled:
		if o := f.adds(at, r); o != nil {
			o.cancelled, o.left = o.left, 0
			f.gone(r.Order, o)
		}
	case r.Kind == match.Replaced:
		f.replaced(at, r)
	}
}

// adds compares a record with the account of its order.
func (f *Fills) adds(at string, r *match.Record) *account {
	o := f.orders[r.Order]
	switch {
	case o == nil:
		f.wrong(at, "order %d is not there", r.Order)
		return nil
	case r.Owner != o.owner || r.Book != o.book || r.Side != o.side:
		f.wrong(at, "order %d is of owner %d, book %d, side %d; it entered as of %d, %d, %d", r.Order, r.Owner, r.Book, r.Side, o.owner, o.book, o.side)
	case r.Cum != o.cum || r.Leaves != o.left || r.Cum+r.Leaves != o.qty:
		f.wrong(at, "order %d has %d filled and %d left of %d; by what was executed %d and %d", r.Order, r.Cum, r.Leaves, o.qty, o.cum, o.left)
	}
	return o
}

func (f *Fills) filled(at string, r *match.Record) {
	b := f.books[r.Book]
	if b == nil {
		b = &book{}
		f.books[r.Book] = b
	}
	side := r.Side & 3
	b.qty[side] += r.Qty
	b.value[side].Add(&b.value[side], new(big.Int).Mul(big.NewInt(r.Price), big.NewInt(r.Qty)))
	signed := r.Qty
	if r.Side == match.Sell {
		signed = -signed
	}
	f.traded[position{r.Owner, r.Book}] += signed
	if o := f.orders[r.Order]; o != nil {
		o.cum, o.left = o.cum+r.Qty, o.left-r.Qty
		if f.adds(at, r); o.left <= 0 {
			f.gone(r.Order, o)
		}
	} else {
		f.wrong(at, "order %d trades, and is not there", r.Order)
	}
	switch h := f.half; {
	case h == nil:
		f.half, f.halfID = r, at
	case h.Order != r.Other || h.Other != r.Order || h.Side == r.Side || h.Price != r.Price || h.Qty != r.Qty || h.Book != r.Book:
		f.wrong(f.halfID, "a trade of order %d with order %d has one side", h.Order, h.Other)
		f.half, f.halfID = r, at
	default:
		f.Trades++
		f.half = nil
	}
}

func (f *Fills) replaced(at string, r *match.Record) {
	o := f.orders[r.Order]
	if o == nil {
		f.wrong(at, "order %d is replaced, and is not there", r.Order)
		return
	}
	o.qty, o.left = r.Qty, r.Qty-o.cum
	f.adds(at, r)
	delete(f.orders, r.Order)
	f.orders[r.Other] = o
}

// gone settles an order.
func (f *Fills) gone(id uint64, o *account) {
	n := o.cum
	if o.side == match.Sell {
		n = -n
	}
	f.held[position{o.owner, o.book}] += n
	if o.cum+o.left+o.cancelled != o.qty {
		f.wrong(fmt.Sprintf("order %d", id), "%d filled, %d left and %d cancelled are not %d", o.cum, o.left, o.cancelled, o.qty)
	}
	delete(f.orders, id)
}

// Finish compares the totals, and returns how much is wrong, and the first of it in words. resting
// are the orders that have to be left.
func (f *Fills) Finish(resting []uint64) (wrong int, words []string) {
	if f.half != nil {
		f.wrong(f.halfID, "a trade of order %d has one side", f.half.Order)
		f.half = nil
	}
	for _, n := range slices.Sorted(maps.Keys(f.books)) {
		b := f.books[n]
		if b.qty[match.Buy] != b.qty[match.Sell] || b.value[match.Buy].Cmp(&b.value[match.Sell]) != 0 {
			f.wrong(fmt.Sprintf("book %d", n), "%d and %d were bought and sold, worth %s and %s", b.qty[match.Buy], b.qty[match.Sell], &b.value[match.Buy], &b.value[match.Sell])
		}
	}
	rests := map[uint64]bool{}
	for _, id := range resting {
		rests[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(f.orders)) {
		o := f.orders[id]
		if !rests[id] {
			f.wrong(fmt.Sprintf("order %d", id), "it has %d left by its executions, and does not rest", o.left)
		}
		delete(rests, id)
		f.gone(id, o)
	}
	for _, id := range slices.Sorted(maps.Keys(rests)) {
		f.wrong(fmt.Sprintf("order %d", id), "it rests, and has nothing left by its executions")
	}
	owners := slices.SortedFunc(maps.Keys(f.traded), func(a, b position) int { return cmp.Or(cmp.Compare(a.book, b.book), cmp.Compare(a.owner, b.owner)) })
	for _, p := range owners {
		if n := f.traded[p]; f.held[p] != n {
			f.wrong(fmt.Sprintf("book %d", p.book), "the position of owner %d is %d by its trades, and %d by its orders", p.owner, n, f.held[p])
		}
	}
	return f.count, f.words
}

// Difference reports how what an entry did differs from what it has to have done: the place of the
// first record that does, from 1, and both in words; 0 if none does.
func Difference(did, want []match.Record) (n int, text string) {
	for i := range max(len(did), len(want)) {
		switch {
		case i >= len(did):
			return i + 1, fmt.Sprintf("is missing: %s", Text(&want[i]))
		case i >= len(want):
			return i + 1, fmt.Sprintf("is one too many: %s", Text(&did[i]))
		case did[i] != want[i]:
			return i + 1, fmt.Sprintf("is %s; by price and time it is %s", Text(&did[i]), Text(&want[i]))
		}
	}
	return 0, ""
}

var kinds = [...]string{"?", "accepted", "rejected", "filled", "cancelled", "cancel rejected", "replaced", "restated", "triggered", "state changed", "auction price", "mass cancelled", "band changed"}

// Text writes a record for people, in the units of its book.
func Text(r *match.Record) string {
	kind := fmt.Sprint("kind ", r.Kind)
	if int(r.Kind) < len(kinds) {
		kind = kinds[r.Kind]
	}
	s := fmt.Sprintf("book %d: order %d of owner %d %s", r.Book, r.Order, r.Owner, kind)
	if r.Other != 0 {
		s += fmt.Sprintf(" with %d", r.Other)
	}
	s += fmt.Sprintf(", %d at %d, %d left, %d filled", r.Qty, r.Price, r.Leaves, r.Cum)
	if r.Reason != match.None {
		s += fmt.Sprintf(" (%s)", r.Reason)
	}
	return s
}
