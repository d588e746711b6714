package hostile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// askers are clients of a grid with views that ask for much, and read nothing.
var askers = []neighbour{
	{name: "100 ask 64 questions for every order, page by page, and read nothing", conns: 100, say: asks(64, everything()), seen: "ordergrid_node_questions_rejected_total"},
	{name: "50 ask with 20,000 terms, and reconnect", conns: 50, say: asks(16, terms(20_000)), stay: 300 * time.Millisecond, seen: "ordergrid_node_questions_total"},
	{name: "100 ask 16 times for an order by key, and reconnect", conns: 100, say: asks(16, byKey()), stay: 300 * time.Millisecond, seen: "ordergrid_node_questions_total"},
	{name: "100 ask for groups by every order, and reconnect", conns: 100, say: asks(16, manyGroups()), stay: 300 * time.Millisecond, seen: "ordergrid_node_questions_total"},
}

func asks(n int, question []byte) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendQuery(b, 0, &wire.Query{ReqID: uint64(i + 1), TimeoutMs: 30_000, MaxBytes: 1 << 30, Question: question})
	}
	return b
}

func everything() []byte {
	q := query.Query{}
	for _, d := range view.Standard() {
		q.Select = append(q.Select, d.Field)
	}
	return q.Append(nil)
}

func terms(n int) []byte {
	q := query.Query{Select: []view.Field{view.Seq}, Where: anyOf(n)}
	return q.Append(nil)
}

// byKey is what the loop answers itself.
func byKey() []byte {
	key := query.Expr{Op: query.Eq, Field: view.ClOrdID, Values: []view.Value{view.TextValue("no such order")}}
	q := query.Query{Select: []view.Field{view.Seq}, Where: &key}
	return q.Append(nil)
}

// anyOf is a filter of n terms.
func anyOf(n int) *query.Expr {
	e := &query.Expr{Op: query.Or}
	for range n {
		e.Args = append(e.Args, query.Expr{Op: query.Present, Field: view.Account})
	}
	return e
}

func manyGroups() []byte {
	q := query.Query{GroupBy: []view.Field{view.Received}, Aggregates: []query.Aggregate{{Func: query.Sum, Field: view.OrderQty}, {Func: query.Count}}}
	return q.Append(nil)
}

// What such clients do to orders is as with other neighbours; and a client that asks little is answered beside them, at
// most after another attempt.
func TestAskersDenyNothing(t *testing.T) {
	exe := program(t)
	args := []string{"--views=64Mi", "--view-rows=65536", "--view-values=2048"}
	for _, n := range askers {
		t.Run(n.name, func(t *testing.T) {
			g := start(t, exe, args...)
			asker := newTrader(t, g)
			stop, answered := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				defer func() { answered <- n }()
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					if _, err := asker.c.Query(t.Context(), client.Query{Query: query.Query{Aggregates: []query.Aggregate{{Func: query.Count}}}}); err != nil {
						t.Errorf("after %d answers: %v", n, err)
						return
					}
					n++
				}
			}()
			n.beside(t, g, start(t, exe, args...))
			close(stop)
			n := <-answered
			t.Logf("%d questions of another client were answered", n)
			if n == 0 {
				t.Error("no question of another client was answered")
			}
		})
	}
}

// What cannot be asked is refused with the reason, by the client that would send it or by the node.
func TestQuestionsThatCannotBeAsked(t *testing.T) {
	w := newTrader(t, start(t, program(t), "--views=64Mi", "--view-rows=65536", "--view-values=2048"))
	w.trade(3, 0)
	seq := []view.Field{view.Seq}
	for name, x := range map[string]struct {
		q    query.Query
		want string
	}{
		"10,001 terms":            {query.Query{Select: seq, Where: anyOf(10_001)}, "10001, allowed: 0 to 10000"},
		"100,000 terms":           {query.Query{Select: seq, Where: anyOf(100_000)}, "bytes, allowed: 65536; ask for fewer values"},
		"a text of 1 MB":          {query.Query{Select: seq, Where: &query.Expr{Op: query.Eq, Field: view.Account, Values: []view.Value{view.TextValue(string(make([]byte, 1<<20)))}}}, "bytes, allowed: 65536"},
		"100,000 rows":            {query.Query{Select: seq, Limit: 100_000}, "allowed: "},
		"a number for a text":     {query.Query{Select: seq, Where: &query.Expr{Op: query.Eq, Field: view.Symbol, Values: []view.Value{view.IntValue(1)}}}, "allowed: values of kind text"},
		"groups by a unique text": {query.Query{GroupBy: []view.Field{view.ClOrdID}}, "allowed: fields whose values rows share"},
	} {
		_, err := w.c.Query(t.Context(), client.Query{Query: x.q})
		var refused *client.QueryError
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		} else if errors.As(err, &refused) && refused.Code != wire.QueryRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
