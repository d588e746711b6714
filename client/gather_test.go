package client

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// TestGroupsOfPartitions: groups of several partitions are put together, whichever of them have one.
func TestGroupsOfPartitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for partitions := range 7 {
		g := &gather{grouped: true, q: &Query{Query: query.Query{
			GroupBy: []view.Field{view.Symbol, view.Side}, Aggregates: []query.Aggregate{{Func: query.Count}, {Func: query.Max, Field: view.Session}},
		}}}
		want := map[string][2]int64{}
		for range partitions {
			var p part
			for n := range 60 {
				symbol, side := fmt.Sprintf("S%02d", n/2), fmt.Sprint(n%2+1)
				if rng.IntN(3) == 0 {
					continue
				}
				count, most := rng.Int64N(100), rng.Int64N(100)
				p.rows = append(p.rows, []view.Value{view.TextValue(symbol), view.TextValue(side), view.IntValue(count), view.IntValue(most)})
				w := want[symbol+side]
				want[symbol+side] = [2]int64{w[0] + count, max(w[1], most)}
			}
			g.parts = append(g.parts, p)
		}
		a, err := g.answer()
		if err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(want))
		if len(a.Rows) != len(keys) {
			t.Fatalf("%d partitions: %d groups, want %d", partitions, len(a.Rows), len(keys))
		}
		for i, r := range a.Rows {
			if k := r[0].Text + r[1].Text; k != keys[i] || r[2].Int != want[k][0] || r[3].Int != want[k][1] {
				t.Errorf("%d partitions: group %d is %s of %d and %d, want %s of %v", partitions, i, k, r[2].Int, r[3].Int, keys[i], want[keys[i]])
			}
		}
	}
}

// TestGroupsOutOfOrder: an answer that would make one group two is refused.
func TestGroupsOutOfOrder(t *testing.T) {
	for name, symbols := range map[string][]string{"twice": {"A", "A"}, "falling": {"A", "C", "B"}} {
		g := &gather{grouped: true, parts: make([]part, 2), q: &Query{Query: query.Query{GroupBy: []view.Field{view.Symbol}, Aggregates: []query.Aggregate{{Func: query.Count}}}}}
		for _, s := range symbols {
			g.parts[1].rows = append(g.parts[1].rows, []view.Value{view.TextValue(s), view.IntValue(1)})
		}
		_, err := g.answer()
		if _, ok := errors.AsType[*ProtocolError](err); !ok {
			t.Errorf("%s: error %v, want a violation of the protocol", name, err)
		}
	}
}
