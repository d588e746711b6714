package match_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/naive"
)

// kept is what a book shows, made of changes and of pages that are read between operations.
type kept struct {
	orders map[uint64]match.Shown
	read   match.Place // orders up to it are there
	from   match.Place // the next page is behind it
}

// has reports whether a place is one whose orders are there.
func (k *kept) has(side match.Side, price int64, prio uint64) bool {
	p := k.read
	switch {
	case p.Side != side:
		return side < p.Side
	case p.Prio == 0: // before all of the side
		return false
	case p.Price != price:
		return (side == match.Buy) == (price > p.Price)
	}
	return prio <= p.Prio
}

func (k *kept) change(c *match.Change) error {
	if !k.has(c.Side, c.Price, c.Prio) {
		return nil
	}
	o, there := k.orders[c.Order]
	if there != (c.Kind != match.OrderAdded) {
		return fmt.Errorf("change %+v; the order is there: %v", c, there)
	}
	if there && (o.Prio != c.Prio || o.Price != c.Price || o.Side != c.Side || c.Traded > 0 && o.Qty-c.Traded != c.Qty) {
		return fmt.Errorf("change %+v of %+v", c, o)
	}
	if c.Kind == match.OrderRemoved {
		delete(k.orders, c.Order)
		return nil
	}
	k.orders[c.Order] = match.Shown{Order: c.Order, Prio: c.Prio, Price: c.Price, Qty: c.Qty, Side: c.Side}
	return nil
}

// page reads the next page of a book.
func (k *kept) page(e *match.Engine, book uint16, most int) error {
	list, next, ok := e.Orders(book, k.from, most, nil)
	if !ok || len(list) > most {
		return fmt.Errorf("page of %d orders, allowed: %d; found: %v", len(list), most, ok)
	}
	for _, o := range list {
		if k.has(o.Side, o.Price, o.Prio) {
			return fmt.Errorf("page has %+v, which is before %+v", o, k.read)
		}
		k.orders[o.Order] = o
	}
	k.from, k.read = next, next
	return nil
}

// list returns the orders that are there by priority, without what the engine numbers it with.
func (k *kept) list() []match.Shown {
	var list []match.Shown
	for _, o := range k.orders {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b match.Shown) int {
		switch {
		case a.Side != b.Side:
			return cmp.Compare(a.Side, b.Side)
		case a.Price != b.Price:
			return cmp.Compare(a.Price, b.Price) * (1 - 2*int(b2i(a.Side == match.Buy)))
		}
		return cmp.Compare(a.Prio, b.Prio)
	})
	for i := range list {
		list[i].Prio = 0
	}
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keep runs operations, and compares what is kept of each book with what the naive matcher has.
func keep(f *match.Flow, draw func(n int) int, operations int) error {
	e, err := match.NewFlowEngine()
	if err != nil {
		return err
	}
	x := naive.New(match.FlowConfig)
	for n, i := range match.FlowInstruments {
		x.Define(n, i)
	}
	tap := &match.Tap{}
	e.Tap(tap)
	k := make([]*kept, 8)
	var out []match.Record
	for i := range operations {
		op := f.Op()
		if i < 3 {
			op = match.Op{Kind: match.SetState, Book: []uint16{0, 1, 3}[i], State: []match.State{match.Open, match.Open, match.Call}[i]}
		}
		tap.Changes = tap.Changes[:0]
		out = e.Apply(&op, out[:0])
		x.Apply(op)
		for j := range tap.Changes {
			c := &tap.Changes[j]
			if k[c.Book] == nil {
				return fmt.Errorf("operation %d: a change of book %d, which is not watched", i, c.Book)
			}
			if err := k[c.Book].change(c); err != nil {
				return fmt.Errorf("operation %d %+v: %w", i, op, err)
			}
		}
		for _, n := range []uint16{0, 1, 3} {
			switch {
			case k[n] == nil && draw(8) == 0:
				tap.Watch(n, true)
				k[n] = &kept{orders: map[uint64]match.Shown{}, from: match.Place{Side: match.Buy}}
			case k[n] != nil && draw(40) == 0:
				tap.Watch(n, false)
				k[n] = nil
			}
			if k[n] == nil {
				continue
			}
			if k[n].from != match.End && draw(2) == 0 {
				if err := k[n].page(e, n, 1+draw(5)); err != nil {
					return fmt.Errorf("operation %d, book %d: %w", i, n, err)
				}
			}
			if k[n].read != match.End {
				continue
			}
			if got, want := k[n].list(), x.Shown(n); !slices.Equal(got, want) {
				return fmt.Errorf("operation %d %+v: book %d is kept as\n%+v, it is\n%+v", i, op, n, got, want)
			}
		}
	}
	return nil
}

// TestOrdersKept: a book that is read in pages between operations, and kept by the changes, is the one that the naive matcher
// has, order by order, after each operation of 100 seeds.
func TestOrdersKept(t *testing.T) {
	for seed := range 100 {
		random := rand.New(rand.NewPCG(uint64(seed), 59))
		if err := keep(match.NewFlow(random.IntN), random.IntN, 300); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestOrdersKeptProperty is the same under a generator that shrinks what fails.
func TestOrdersKeptProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		if err := keep(match.NewFlow(draw), draw, rapid.IntRange(1, 80).Draw(t, "operations")); err != nil {
			t.Fatal(err)
		}
	})
}
