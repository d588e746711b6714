package query_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid" // v1.3.0: draws that shrink to the smallest question that fails

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// drawn is a rapid.T as a source, so that questions shrink.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

// rows at the end of a chunk, so that zones and sorted runs count.
const beforeChunk = 3<<16 - 300

func newCase(t testing.TB, seed uint64, n int, plain bool) *querytest.Case {
	t.Helper()
	c, err := querytest.New(beforeChunk, 4<<16)
	if err != nil {
		t.Fatal(err)
	}
	c.Plain = plain
	t.Cleanup(c.Close)
	if err := c.Add(rand.New(rand.NewPCG(seed, 1)), n); err != nil {
		t.Fatal(err)
	}
	return c
}

// someCases are one with values of all kinds, and one with values that fit the columns, so
// that zones tell something, and with sorted runs.
func someCases(t testing.TB) []*querytest.Case {
	c := []*querytest.Case{newCase(t, 1, 500, false), newCase(t, 2, 700, true)}
	for c[1].View.Sort() {
	}
	return c
}

// ask answers a question page by page, each a few rows.
func ask(t interface{ Fatal(...any) }, c *querytest.Case, q query.Query, page uint32) ([][]view.Value, error) {
	var rows [][]view.Value
	q.Limit = page
	for n := 0; ; n++ {
		sent, err := query.Decode(q.Append(nil), query.Limits{}) // as it would come over a network
		if err != nil {
			t.Fatal(err)
		}
		r, err := query.Run(context.Background(), c.View, sent, query.Limits{})
		if err != nil {
			return nil, err
		}
		rows = append(rows, r.Rows...)
		if r.Next == nil {
			return rows, nil
		}
		if q.After = r.Next; len(r.Rows) == 0 || n > 2000 {
			t.Fatal("a page is empty, or there are more pages than rows")
		}
	}
}

func same(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, c *querytest.Case, q *query.Query, page uint32) {
	at, base := q.At, c.View.Base()
	if at == 0 {
		at = c.View.Applied()
	}
	want := c.Answer(q, base, at)
	got, err := ask(t, c, *q, page)
	for _, row := range want {
		for _, v := range row {
			if v == view.TextValue("overflow") {
				if over := (*query.OverflowError)(nil); !errors.As(err, &over) {
					t.Fatalf("a sum that no decimal holds: %v", err)
				}
				return
			}
		}
	}
	if err != nil {
		t.Fatalf("%v in %+v", err, q)
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d, of %s", len(got), len(want), explain(c, q))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d is %v, want %v, of %s", i, got[i], want[i], explain(c, q))
		}
	}
}

func explain(c *querytest.Case, q *query.Query) string {
	x, s, err := query.Open(c.View, q, query.Limits{})
	if err != nil {
		return err.Error()
	}
	defer s.Release()
	return x.Explain()
}

// TestRandomQuestions compares answers with those of a loop over the rows, at random
// prefixes, in pages. ORDERGRID_QUESTIONS=100000 asks so many.
func TestRandomQuestions(t *testing.T) {
	cases := append(someCases(t), newCase(t, 3, 20, false))
	count := 0
	if n, err := strconv.Atoi(os.Getenv("ORDERGRID_QUESTIONS")); err == nil {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		for ; count < n; count++ {
			one(t, r, cases)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 {
			one(rt, drawn{rt}, cases)
			count++
		}
	})
	t.Logf("%d questions", count)
}

func one(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, r querytest.Source, cases []*querytest.Case) {
	c := cases[r.IntN(len(cases))]
	q := c.Question(r)
	if r.IntN(3) == 0 {
		q.At = beforeChunk + 1 + uint64(r.IntN(int(c.View.Applied()-beforeChunk)))
	}
	same(t, c, q, uint32([]int{37, 101, 10000}[r.IntN(3)]))
}
