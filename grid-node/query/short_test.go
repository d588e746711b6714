package query_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// TestShort compares short questions, with and without further terms, with the answers of OpenAt, and finds that all
// others are left to it.
func TestShort(t *testing.T) {
	for _, c := range someCases(t) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		found := 0
		for range 300 {
			q := c.Question(r)
			q.GroupBy, q.Aggregates, q.OrderBy, q.Select = nil, nil, nil, []view.Field{view.Seq, view.ClOrdID, view.State, view.Price}
			row := c.Rows[r.IntN(len(c.Rows))]
			key := text(view.ClOrdID, row.Values[view.ClOrdID].Text)
			if id := row.Values[view.OrigClOrdID].Text; id != "" && r.IntN(2) == 0 {
				key = text(view.OrigClOrdID, id)
			}
			switch {
			case q.Where == nil || r.IntN(3) == 0:
				q.Where = &key
			default:
				q.Where = &query.Expr{Op: query.And, Args: []query.Expr{*q.Where, key}}
			}
			want, err := query.Run(context.Background(), c.View, q, query.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := short(t, c.View, q, 1<<10)
			if got == nil {
				if len(q.Where.Args) == 0 || len(q.Where.Args[0].Args) == 0 && len(q.Where.Args[0].Values) <= 8 {
					t.Fatalf("%s is not taken for a short question", explain(c, q))
				}
				continue
			}
			found += len(got.Rows)
			got.Scanned, want.Scanned = 0, 0 // another of two keys may be looked up
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, want %+v, of %s", got, want, explain(c, q))
			}
			if short(t, c.View, q, 0) != nil && len(want.Rows) > 0 {
				t.Fatal("a question for a row is answered without looking at one")
			}
		}
		if found == 0 {
			t.Error("no short question has found a row")
		}
		key, symbol := text(view.ClOrdID, "no such order"), text(view.Symbol, "IBM")
		for name, q := range map[string]*query.Query{
			"all":       {Select: []view.Field{view.Seq}},
			"no key":    {Select: []view.Field{view.Seq}, Where: &symbol},
			"groups":    {Where: &key, Aggregates: []query.Aggregate{{Func: query.Count}}},
			"position":  {Select: []view.Field{view.Seq}, Where: &key, At: c.View.Applied()},
			"or":        {Select: []view.Field{view.Seq}, Where: &query.Expr{Op: query.Or, Args: []query.Expr{key, key}}},
			"no field":  {Where: &key},
			"many keys": {Select: []view.Field{view.Seq}, Where: &query.Expr{Op: query.In, Field: view.ClOrdID, Values: []view.Value{key.Values[0], view.TextValue("a")}}},
		} {
			if short(t, c.View, q, 16) != nil {
				t.Errorf("%s: taken for a short question", name)
			}
		}
	}
}

// short is the answer to a short question; nil if it is none.
func short(t *testing.T, v *view.View, q *query.Query, rows int) *query.Result {
	t.Helper()
	s, err := v.Snapshot(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	x := query.ShortAt(s, q, query.Limits{}, rows)
	if x == nil {
		return nil
	}
	if done, err := x.Step(rows + 1); !done || err != nil {
		t.Fatalf("a short question is not answered by one step: %v, %v", done, err)
	}
	return x.Result()
}
