package match

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const manyOrders = 100_000

// crowded is a book with manyOrders orders at one price, not in the order of the slab.
func crowded(t testing.TB) *Engine {
	e, err := New(Config{Orders: manyOrders, Pages: 16, Books: 1, Work: 256})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Define(0, Instrument{Tick: 1, Lot: 1, Low: 0, High: 1000}); err != nil {
		t.Fatal(err)
	}
	var out []Record
	out = e.Apply(&Op{Kind: SetState, Book: 0, State: Open}, out)
	id := uint64(0)
	enter := func() {
		id++
		out = e.Apply(&Op{Kind: Enter, ID: id, Book: 0, Side: Buy, Type: Limit, Price: 500, Qty: 1, Owner: 1}, out[:0])
	}
	for range manyOrders {
		enter()
	}
	random := rand.New(rand.NewPCG(98, 59))
	for _, n := range random.Perm(manyOrders)[:manyOrders/2] {
		out = e.Apply(&Op{Kind: Cancel, Orig: 1 + uint64(n)}, out[:0])
	}
	for range manyOrders / 2 {
		enter()
	}
	if e.Resting() != manyOrders {
		t.Fatalf("%d orders rest, want %d: the last answer is %+v", e.Resting(), manyOrders, out)
	}
	return e
}

// TestPagesOfALargeBook: the pages of 10^5 orders at one price are the whole, wherever they begin. A place whose order has left is
// found among mostPassed orders, and not looked for behind them. BenchmarkPages has what a page costs.
func TestPagesOfALargeBook(t *testing.T) {
	e := crowded(t)
	all, _, _ := e.Orders(0, Place{Side: Buy}, manyOrders, make([]Shown, 0, manyOrders))
	space := make([]Shown, 0, manyOrders)
	read := 0
	for from, ok := (Place{Side: Buy}), true; from != End; {
		var list []Shown
		var to Place
		list, to, ok = e.Orders(0, from, 256, space[:0])
		if !ok || !slices.Equal(list, all[read:read+len(list)]) {
			t.Fatalf("a page behind %+v is not that of the whole", from)
		}
		read, from = read+len(list), to
	}
	if read != manyOrders {
		t.Errorf("%d orders in pages, want %d", read, manyOrders)
	}

	// A place is found from the front of the queue when its order has left, unless it is deep.
	var out []Record
	for n, found := range map[int]bool{3: true, mostPassed - 1: true, mostPassed + 300: false, manyOrders / 2: false} {
		o := all[n]
		out = e.Apply(&Op{Kind: Cancel, Orig: o.Order}, out[:0])
		list, _, ok := e.Orders(0, Place{Side: Buy, Price: o.Price, Prio: o.Prio, Order: o.Order}, 256, space[:0])
		if ok != found || found && list[0] != all[n+1] {
			t.Errorf("the order at %d has left: found is %v, want %v", n, ok, found)
		}
		e.Apply(&Op{Kind: Enter, ID: 1<<40 + uint64(n), Book: 0, Side: Buy, Type: Limit, Price: 500, Qty: 1, Owner: 1}, out[:0])
	}
}

// BenchmarkPages is what a page of 256 costs: at the front of the queue, in its middle, behind an order that has left near the
// front, and, for comparison, all 10^5 orders at once.
func BenchmarkPages(b *testing.B) {
	e := crowded(b)
	space := make([]Shown, 0, manyOrders)
	all, _, _ := e.Orders(0, Place{Side: Buy}, manyOrders, make([]Shown, 0, manyOrders))
	behind := func(n int) Place {
		return Place{Side: Buy, Price: all[n].Price, Prio: all[n].Prio, Order: all[n].Order}
	}
	left := behind(mostPassed - 1)
	e.Apply(&Op{Kind: Cancel, Orig: left.Order}, nil)
	for _, c := range []struct {
		name string
		from Place
		most int
	}{{"front", Place{Side: Buy}, 256}, {"middle", behind(manyOrders / 2), 256}, {"left", left, 256}, {"all", Place{Side: Buy}, manyOrders}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				e.Orders(0, c.from, c.most, space)
			}
		})
	}
}

// TestPlacesThatNeverWere: a place of any bytes is answered with orders behind it, or not found; it costs no more than another.
func TestPlacesThatNeverWere(t *testing.T) {
	e := crowded(t)
	random := rand.New(rand.NewPCG(59, 98))
	space := make([]Shown, 0, 256)
	values := []uint64{0, 1, 499, 500, 501, 1000, 1001, manyOrders, 1 << 31, 1 << 32, 1 << 63, math.MaxUint64, math.MaxInt64}
	some := func() uint64 {
		if random.IntN(4) == 0 {
			return random.Uint64()
		}
		return values[random.IntN(len(values))]
	}
	for range 20_000 {
		from := Place{Side: Side(random.IntN(5)), Price: int64(some()), Prio: some(), Order: some()}
		book := uint16(random.IntN(3))
		list, to, ok := e.Orders(book, from, 256, space)
		if len(list) > 256 || !ok && len(list) > 0 || ok && len(list) < 256 && to != End {
			t.Fatalf("behind %+v of book %d are %d orders, the next place is %+v, found is %v", from, book, len(list), to, ok)
		}
		for i, o := range list {
			if o.Side != Buy || i > 0 && o.Prio <= list[i-1].Prio || from.Side == Buy && from.Price == 500 && from.Prio >= o.Prio {
				t.Fatalf("behind %+v is %+v, order %d of the page", from, o, i)
			}
		}
	}
}

func BenchmarkOrdersPage(b *testing.B) {
	e := crowded(b)
	space := make([]Shown, 0, 256)
	gone := Place{Side: Buy, Price: 500, Prio: math.MaxUint64, Order: 1 << 50}
	for name, from := range map[string]Place{"first": {Side: Buy}, "never-was": gone} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				e.Orders(0, from, 256, space)
			}
		})
	}
}
