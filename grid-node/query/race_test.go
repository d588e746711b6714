package query_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// TestReadersBesideTheWriter has one writer, which also drops rows, and readers at random
// prefixes. What an answer must be follows from the numbers of the orders.
func TestReadersBesideTheWriter(t *testing.T) {
	const first, rows, keep = 1<<16 - 6000, 24_000, 9_000
	c, err := querytest.New(first, 2<<16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for n := uint64(first + 1); n <= first+rows; n++ { // the log first: the store's writer is another test's
		if err := c.StoreBulk(n, false); err != nil {
			t.Fatal(err)
		}
	}
	var over atomic.Bool
	var asked atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for !over.Load() || asked.Load() < 50 {
				if err := askBulk(c, r, first); err != nil {
					t.Error(err)
					over.Store(true)
					return
				}
				asked.Add(1)
			}
		})
	}
	wg.Go(func() {
		for !over.Load() {
			c.View.Sort()
		}
	})
	for n := uint64(first + 1); n <= first+rows && !t.Failed(); n++ {
		if err := c.View.Apply(c.Store.Read(n)); err != nil {
			t.Error(err)
			break
		}
		if n%7 == 0 {
			c.View.Publish()
		}
		if n%500 == 0 && n > first+keep {
			c.View.Drop(n - keep)
		}
	}
	c.View.Publish()
	over.Store(true)
	wg.Wait()
	t.Logf("%d questions", asked.Load())
}

// askBulk asks for the count and sum of one symbol or account, and of cancelled orders, at
// a random prefix.
func askBulk(c *querytest.Case, r *rand.Rand, first uint64) error {
	at := first + 1 + r.Uint64N(max(1, c.View.Applied()-first))
	pick := at - r.Uint64N(min(at-first, 3000))
	symbol := r.IntN(2) == 0
	leaf := query.Expr{Op: query.Eq, Field: view.Account, Values: []view.Value{view.TextValue(querytest.BulkAccount(pick))}}
	same := func(n uint64) bool { return querytest.BulkAccount(n) == querytest.BulkAccount(pick) }
	if symbol {
		leaf.Field, leaf.Values = view.Symbol, []view.Value{view.TextValue(querytest.BulkSymbol(pick))}
		same = func(n uint64) bool { return querytest.BulkSymbol(n) == querytest.BulkSymbol(pick) }
	}
	q := &query.Query{At: at, Where: &leaf, GroupBy: []view.Field{view.State}, Aggregates: []query.Aggregate{{Func: query.Count}, {Func: query.Sum, Field: view.OrderQty}}}
	if r.IntN(2) == 0 { // no index has this
		q.Where = &query.Expr{Op: query.Or, Args: []query.Expr{leaf, leaf}}
	}
	res, err := query.Run(context.Background(), c.View, q, query.Limits{})
	if errors.As(err, new(*view.TooOldError)) || errors.As(err, new(*view.NotAppliedError)) {
		return nil
	}
	if err != nil {
		return err
	}
	want := map[string][2]int64{}
	for n := res.Base + 1; n <= at; n++ {
		if same(n) {
			state := `"new"`
			switch {
			case n%4 == 0:
				state = "null"
			case n%4 == 3 && n+1 <= at:
				state = `"cancelled"`
			}
			w := want[state]
			want[state] = [2]int64{w[0] + 1, w[1] + querytest.BulkQty(n)}
		}
	}
	got := map[string][2]int64{}
	for _, row := range res.Rows {
		got[row[0].String()] = [2]int64{row[1].Int, int64(row[2].Number.Lo)}
	}
	if len(got) != len(want) {
		return errors.New("other states than there are")
	}
	for s, w := range want {
		if got[s] != w {
			return fmt.Errorf("rows %d to %d, state %s: count and sum %v, want %v", res.Base+1, at, s, got[s], w)
		}
	}
	return nil
}
