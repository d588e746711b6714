package query_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

const figureRows = 1<<20 - 1

// floors hold the same rows the way a program would that asks nothing else of them.
type floors struct {
	ids     map[string]uint32
	account map[string][]uint32
	symbols []uint32
	sides   []byte
	qty     []int64
	price   []int64
	byPrice []uint32
}

// clock is the time that the calling thread had a processor: other processes of a shared
// machine do not count, what they do to caches does.
func clock() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// TestFigures prints the table of docs/queries.md: ORDERGRID_FIGURES=1. Engine and floor
// take turns; figures are medians of 31 rounds, and the least.
func TestFigures(t *testing.T) {
	if os.Getenv("ORDERGRID_FIGURES") == "" {
		t.Skip("a million orders and some seconds of an idle machine: ORDERGRID_FIGURES=1")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &querytest.Case{Store: s}
	for n := uint64(1); n <= figureRows; n++ {
		if err := c.StoreBulk(n, false); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, c)
	defer c.Close()
	for c.View.Sort() {
	}
	t.Logf("%-34s %6.1f bytes an order, sorted runs of Price included", "memory", float64(c.View.Used())/figureRows)
	f := makeFloors()
	questions(t, c, f)
	visible(t, c)
}

// apply fills views of the log, three times, beside copying and hashing its entries.
func apply(t *testing.T, c *querytest.Case) {
	var engine, floor []time.Duration
	buf := make([]byte, 4096)
	for round := range 3 {
		if c.View != nil {
			c.View.Close()
		}
		follower, err := view.Follow(c.Store, view.Options{Memory: 512 << 20, Rows: figureRows})
		if err != nil {
			t.Fatal(err)
		}
		c.View = follower.View
		from, sum := clock(), uint64(0)
		for n := uint64(1); n <= figureRows; n++ {
			e := c.Store.Read(n)
			copy(buf, e)
			sum += order.Hash(e)
		}
		floor = append(floor, clock()-from)
		from = clock()
		for more := true; more; {
			if _, more, err = follower.Apply(16, 16); err != nil {
				t.Fatal(err)
			}
		}
		engine = append(engine, clock()-from)
		t.Logf("round %d: Apply %4d ns an order, a quarter of them cancels; copy and hash of the entry %4d ns (%x)", round,
			engine[round].Nanoseconds()/figureRows, floor[round].Nanoseconds()/figureRows, sum&1)
	}
}

func makeFloors() *floors {
	f := &floors{ids: map[string]uint32{}, account: map[string][]uint32{}}
	for n := uint64(0); n <= figureRows; n++ {
		f.ids[querytest.BulkID(n)] = uint32(n)
		f.account[querytest.BulkAccount(n)] = append(f.account[querytest.BulkAccount(n)], uint32(n))
		symbol := querytest.BulkSymbol(n)
		f.symbols = append(f.symbols, uint32(symbol[3]-'0')*100+uint32(symbol[4]-'0')*10+uint32(symbol[5]-'0'))
		f.sides = append(f.sides, '1'+byte(n%2))
		f.qty = append(f.qty, querytest.BulkQty(n))
		f.price = append(f.price, querytest.BulkPrice(n))
		f.byPrice = append(f.byPrice, uint32(n))
	}
	slices.SortFunc(f.byPrice, func(a, b uint32) int { return int(f.price[a] - f.price[b]) })
	return f
}

var all = []view.Field{view.Seq, view.ClOrdID, view.Symbol, view.Side, view.Account, view.Price, view.OrderQty, view.OrdType, view.TimeInForce, view.TransactTime, view.Session, view.Received, view.State}

func fixed(s string) view.Value {
	n, _ := view.ParseNumber(s)
	return view.NumberValue(n)
}

func eq(f view.Field, v view.Value) query.Expr {
	return query.Expr{Op: query.Eq, Field: f, Values: []view.Value{v}}
}

func and(e ...query.Expr) *query.Expr { return &query.Expr{Op: query.And, Args: e} }

func questions(t *testing.T, c *querytest.Case, f *floors) {
	id, account, symbol := querytest.BulkID(500_001), querytest.BulkAccount(500_001), querytest.BulkSymbol(500_001)
	start := int64(1767225600e9)
	byID, byAccount, qty := eq(view.ClOrdID, view.TextValue(id)), eq(view.Account, view.TextValue(account)), eq(view.OrderQty, fixed("5000"))
	of := f.symbols[500_001]
	figure(t, c, "point get, 13 fields", &query.Query{Select: all, Where: &byID}, func() int {
		n := f.ids[id]
		return bit(f.qty[n] > 0)
	})
	figure(t, c, "equality by postings, 13 fields", &query.Query{Select: all, Where: &byAccount}, func() (n int) {
		out := make([][3]int64, 0, 128)
		for _, r := range f.account[account] {
			out = append(out, [3]int64{int64(f.symbols[r]), f.price[r], f.qty[r]})
		}
		return len(out) - bit(f.account[account][0] == 0)
	})
	figure(t, c, "3-field equality, 13 fields", &query.Query{Select: all, Where: and(byAccount, eq(view.Symbol, view.TextValue(symbol)), eq(view.Side, view.TextValue("2")))}, func() (n int) {
		for _, r := range f.account[account] {
			if f.symbols[r] == of && f.sides[r] == '2' {
				n++
			}
		}
		return n
	})
	figure(t, c, "range of price and time, 13 fields", &query.Query{Select: all, Where: and(
		query.Expr{Op: query.Range, Field: view.Price, Values: []view.Value{fixed("500"), fixed("500.99")}},
		query.Expr{Op: query.Range, Field: view.Received, Values: []view.Value{view.TimeValue(start + 500_000*100_000), view.TimeValue(start + 600_000*100_000)}})}, func() (n int) {
		i, _ := slices.BinarySearchFunc(f.byPrice, 50_000, func(r uint32, p int) int { return int(f.price[r]) - p })
		for ; f.price[f.byPrice[i]] <= 50_099; i++ {
			if r := f.byPrice[i]; r >= 500_000 && r <= 600_000 {
				n++
			}
		}
		return n
	})
	figure(t, c, "scan of decimals, no index", &query.Query{Select: []view.Field{view.Seq}, Where: &qty}, func() (n int) {
		for _, q := range f.qty {
			if q == 5000 {
				n++
			}
		}
		return n
	})
	figure(t, c, "scan of 2 columns, count", &query.Query{Aggregates: []query.Aggregate{{Func: query.Count}}, Where: and(eq(view.Side, view.TextValue("2")), query.Expr{Op: query.Range, Field: view.OrderQty, Values: []view.Value{fixed("5000"), {}}})}, func() int {
		n := 0
		for i, q := range f.qty {
			if q >= 5000 && f.sides[i] == '2' {
				n++
			}
		}
		return 1
	})
	figure(t, c, "count and sum by symbol", &query.Query{GroupBy: []view.Field{view.Symbol}, Aggregates: []query.Aggregate{{Func: query.Count}, {Func: query.Sum, Field: view.OrderQty}}}, func() int {
		var count, sum [1000]int64
		for i, s := range f.symbols {
			count[s]++
			sum[s] += f.qty[i]
		}
		return len(sum)
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// figure measures one question in turns with its floor.
func figure(t *testing.T, c *querytest.Case, name string, q *query.Query, floor func() int) {
	const rounds = 31
	var engine, least []time.Duration
	rows, want := 0, 0
	for range rounds {
		from := clock()
		want = floor()
		least = append(least, clock()-from)
		from = clock()
		r, err := query.Run(context.Background(), c.View, q, query.Limits{})
		engine = append(engine, clock()-from)
		if err != nil {
			t.Fatal(err)
		}
		rows = len(r.Rows)
	}
	slices.Sort(engine)
	slices.Sort(least)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	t.Logf("%-34s %5d rows (floor %d): engine %9.1f us (least %9.1f), floor %8.1f us (least %8.1f)", name, rows, want,
		us(engine[rounds/2]), us(engine[0]), us(least[rounds/2]), us(least[0]))
}

// visible measures steps of 16 orders, applied and published, while another goroutine scans.
func visible(t *testing.T, c *querytest.Case) {
	v, err := view.New(view.Options{Log: c.Store, Memory: 512 << 20, Rows: figureRows})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var over atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !over.Load(); n++ {
			_, _ = query.Run(context.Background(), c.View, &query.Query{GroupBy: []view.Field{view.Symbol}, Aggregates: []query.Aggregate{{Func: query.Sum, Field: view.OrderQty}}}, query.Limits{})
		}
		done <- n
	}()
	var steps []time.Duration
	for n := uint64(1); n+16 <= figureRows/4; n += 16 {
		from := clock()
		for k := range uint64(16) {
			if err := v.Apply(c.Store.Read(n + k)); err != nil {
				t.Fatal(err)
			}
		}
		v.Publish()
		steps = append(steps, clock()-from)
	}
	over.Store(true)
	scans := <-done
	slices.Sort(steps)
	t.Logf("%-34s p50 %v, p99 %v, p99.9 %v while %d scans of 1 M rows ran", "16 orders applied and published", steps[len(steps)/2], steps[len(steps)*99/100], steps[len(steps)*999/1000], scans)
}
