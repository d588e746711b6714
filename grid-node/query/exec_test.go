package query_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/internal/race"
)

func text(f view.Field, s string) query.Expr {
	return query.Expr{Op: query.Eq, Field: f, Values: []view.Value{view.TextValue(s)}}
}

func TestPlans(t *testing.T) {
	c := newCase(t, 2, 700, true)
	id := c.Rows[300].Values[view.ClOrdID].Text
	symbol, desk := text(view.Symbol, "IBM"), text(querytest.Desk, "d7")
	price := query.Expr{Op: query.Eq, Field: view.Price, Values: []view.Value{c.Rows[0].Values[view.OrderQty]}}
	and := query.Expr{Op: query.And, Args: []query.Expr{symbol, desk, {Op: query.And, Args: []query.Expr{price}}}}
	for want, e := range map[string]*query.Expr{
		"scan of 700 rows in 2 parts: there is no filter":                     nil,
		"scan of 700 rows in 2 parts: no index has a term that every row":     {Op: query.Or, Args: []query.Expr{symbol, desk}},
		"scan of 700 rows in 2 parts: Account has about":                      {Op: query.Eq, Field: view.Account, Values: []view.Value{view.TextValue("house")}},
		"index, 1 rows: eq of ClOrdID has about 1 rows":                       {Op: query.Eq, Field: view.ClOrdID, Values: []view.Value{view.TextValue(id)}},
		"rows: eq of Desk has about":                                          &and,
		"filter on columns: (Symbol eq \"IBM\" and Desk eq \"d7\" and (Price": &and,
	} {
		q := &query.Query{Select: []view.Field{view.Seq}, Where: e}
		if got := explain(c, q); !strings.Contains(got, want) {
			t.Errorf("plan %q, want %q", got, want)
		}
	}
}

func TestWorkIsBounded(t *testing.T) {
	c := newCase(t, 2, 700, true)
	sorted := []query.Order{{Field: view.ClOrdID}}
	for want, x := range map[string]struct {
		q query.Query
		l query.Limits
	}{
		"rows looked at":               {query.Query{Select: []view.Field{view.Seq}}, query.Limits{Scan: 10}},
		"bytes of rows":                {query.Query{Select: []view.Field{view.ClOrdID}}, query.Limits{Memory: 1000}},
		"more than 1000 bytes of rows": {query.Query{Select: []view.Field{view.Seq}, OrderBy: sorted}, query.Limits{Memory: 1000}},
		"more than 5 groups":           {query.Query{GroupBy: []view.Field{view.Symbol}}, query.Limits{Groups: 5}},
		"bytes of groups":              {query.Query{GroupBy: []view.Field{view.Symbol, view.Account}}, query.Limits{Memory: 5000}},
	} {
		r, err := query.Run(context.Background(), c.View, &x.q, x.l)
		if bound := (*query.BoundError)(nil); !errors.As(err, &bound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want an error with %q", r, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := query.Run(ctx, c.View, &query.Query{Select: []view.Field{view.Seq}}, query.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a question that was given up: %v", err)
	}
}

// TestPagesSurviveWrites asks for pages while rows are added and dropped: they are those of
// the first page's prefix, or an error.
func TestPagesSurviveWrites(t *testing.T) {
	c, r := newCase(t, 4, 600, false), rand.New(rand.NewPCG(4, 4))
	asked := []query.Query{
		{Select: []view.Field{view.Seq, view.State}, Limit: 50},
		{Select: []view.Field{view.Seq, view.State}, Limit: 50, OrderBy: []query.Order{{Field: view.State}, {Field: view.Symbol, Desc: true}}},
		{GroupBy: []view.Field{view.Symbol, view.State}, Aggregates: []query.Aggregate{{Func: query.Count}}, Limit: 7},
	}
	for i := range asked {
		q := asked[i]
		want := c.Answer(&q, c.View.Base(), c.View.Applied())
		var got [][]view.Value
		for {
			answer, err := query.Run(context.Background(), c.View, &q, query.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, answer.Rows...)
			if q.After = answer.Next; q.After == nil {
				break
			}
			if err := c.Add(r, 20); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows in all pages, want %d", len(got), len(want))
		}
		for k := range want {
			for f := range want[k] {
				if got[k][f] != want[k][f] {
					t.Fatalf("row %d is %v, want %v", k, got[k], want[k])
				}
			}
		}
	}
	for i := range asked {
		q := asked[i]
		answer, err := query.Run(context.Background(), c.View, &q, query.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		q.After = answer.Next
		c.View.Drop(c.View.Base() + 150)
		if _, err = query.Run(context.Background(), c.View, &q, query.Limits{}); !errors.As(err, new(*view.TooOldError)) {
			t.Errorf("a page of which rows were dropped: %v", err)
		}
	}
}

// TestMemoryOfDroppedRowsIsUsedAgain drops rows and reuses their memory, several chunks of it, and
// compares answers about the rest.
func TestMemoryOfDroppedRowsIsUsedAgain(t *testing.T) {
	if race.Enabled {
		t.Skip("many rows and one goroutine: run without the race detector")
	}
	c, err := querytest.New(0, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := rand.New(rand.NewPCG(5, 5))
	const bulk = 4<<16 + 60_000
	for n := uint64(1); n <= bulk; n += 5000 {
		if err := c.AddBulk(n, n+4999, false, 100); err != nil {
			t.Fatal(err)
		}
		c.View.Sort()
		if n > 20_000 {
			c.View.Drop(n - 20_000)
		}
	}
	c.View.Drop(c.View.Applied() - 10)
	used := c.View.Used()
	if err := c.Add(r, 900); err != nil {
		t.Fatal(err)
	}
	c.View.Drop(c.Rows[200].Seq)
	if used > 20<<20 {
		t.Errorf("%d bytes for 20,000 rows at a time: dropped ones are not used again", used)
	}
	for range 300 {
		q := c.Question(r)
		q.At = c.View.Base() + 1 + uint64(r.IntN(int(c.View.Applied()-c.View.Base())))
		same(t, c, q, 10000)
	}
}

// TestPagesAtAnotherCopy: the rows of all pages are those of the first, whatever earlier rows the copy has at which they
// go on.
func TestPagesAtAnotherCopy(t *testing.T) {
	c := newCase(t, 2, 700, true)
	base := c.View.Base() + 400
	late, err := view.New(querytest.Options(c.Store, base, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	for seq := base + 1; seq <= c.View.Applied(); seq++ {
		if err := late.Apply(c.Store.Read(seq)); err != nil {
			t.Fatal(err)
		}
	}
	late.Publish()
	run := func(v *view.View, q query.Query) *query.Result {
		t.Helper()
		r, err := query.Run(t.Context(), v, &q, query.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, q := range map[string]query.Query{
		"rows":   {Select: []view.Field{view.Seq}, OrderBy: []query.Order{{Field: view.ClOrdID, Desc: true}}},
		"groups": {GroupBy: []view.Field{view.Symbol, view.Side}, Aggregates: []query.Aggregate{{Func: query.Count}, {Func: query.Sum, Field: view.OrderQty}}},
	} {
		want := run(late, q).Rows
		q.Limit = 3
		first := run(late, q)
		q.After, q.Limit = first.Next, 0
		got := append(first.Rows, run(c.View, q).Rows...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d in two pages, %d at once", name, len(got), len(want))
		}
		q.After, q.At, q.From = nil, first.At, first.Base
		if r := run(c.View, q); !reflect.DeepEqual(r.Rows, want) || r.Base != base {
			t.Errorf("%s from entry %d: %d, want %d", name, r.Base, len(r.Rows), len(want))
		}
	}
	old := query.Query{Select: []view.Field{view.Seq}, From: base - 1}
	if _, err := query.Run(t.Context(), late, &old, query.Limits{}); !errors.As(err, new(*view.TooOldError)) {
		t.Errorf("from before the view: %v", err)
	}
}
