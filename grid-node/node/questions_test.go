package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ofAccount is a question for the orders of an account.
func ofAccount(account string) client.Query {
	return client.Query{Query: query.Query{Select: []view.Field{view.Seq, view.ClOrdID},
		Where: &query.Expr{Op: query.Eq, Field: view.Account, Values: []view.Value{view.TextValue(account)}}}}
}

// asked is an answer to ofAccount, with the receipts that it had to see.
type asked struct {
	cuts []client.Cut
	ids  []string
	seen []client.Receipt
}

// logOrders are the orders of an account in the log of a partition, ClOrdID by seq.
func logOrders(t *testing.T, c *client.Client, p wire.PartitionID, account string) map[uint64]string {
	t.Helper()
	orders := map[uint64]string{}
	if _, err := c.ReadLog(t.Context(), p, "", 1, func(e client.LogEntry) error {
		if e.Kind == order.KindOrder && string(order.Account(e.Bytes)) == account {
			orders[e.Seq] = string(order.ClOrdID(e.Bytes))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return orders
}

// check holds an answer against the logs: the orders of the cuts, each once, and nothing else.
func (a *asked) check(logs []map[uint64]string) error {
	var want []string
	for i, cut := range a.cuts {
		for seq, id := range logs[i] {
			if seq <= cut.Seq {
				want = append(want, id)
			}
		}
	}
	for _, r := range a.seen {
		if r.Seq > a.cuts[r.Partition].Seq {
			return fmt.Errorf("cut of %s at %d, it had to see %d", r.Partition, a.cuts[r.Partition].Seq, r.Seq)
		}
	}
	got := slices.Sorted(slices.Values(a.ids))
	if slices.Sort(want); !slices.Equal(got, want) {
		return fmt.Errorf("%d rows, want %d, at %+v", len(got), len(want), a.cuts)
	}
	return nil
}

func ask(ctx context.Context, c *client.Client, q client.Query) (*asked, error) {
	a, err := c.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &asked{cuts: a.Cuts}
	for _, row := range a.Rows {
		out.ids = append(out.ids, row[1].Text)
	}
	return out, nil
}

// Answers while primaries are killed under load have each order of their cuts once, and those
// of the receipts that the asking client has.
func TestAnswersThroughKillsAreTheLog(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Views = &Views{Memory: 128 << 20, Rows: 1 << 16}
	g.up()
	c := g.client()
	var n atomic.Int64
	var mu sync.Mutex
	var answers []*asked
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r, err := c.Submit(t.Context(), fix(fmt.Sprintf("q%d-%d", k, i)))
				if err != nil {
					t.Errorf("order %d: %v", i, err)
					return
				}
				n.Add(1)
				if i%8 != 0 {
					continue
				}
				q := ofAccount("ACCT")
				q.After, q.Linearizable = []client.Receipt{r}, i%16 == 0
				a, err := ask(t.Context(), c, q)
				if err != nil {
					t.Errorf("question %d: %v", i, err)
					return
				}
				a.seen = q.After
				mu.Lock()
				answers = append(answers, a)
				mu.Unlock()
			}
		})
	}
	for round := range 2 {
		before := n.Load()
		g.until(func() bool { return n.Load() > before+100 || t.Failed() }, "no orders flow")
		g.kill(round % 2)
		g.until(func() bool { return n.Load() > before+200 || t.Failed() }, "no orders flow")
		g.start(round % 2)
		g.ready()
	}
	cancel()
	wg.Wait()
	logs := []map[uint64]string{logOrders(t, c, 0, "ACCT"), logOrders(t, c, 1, "ACCT")}
	for i, a := range answers {
		if err := a.check(logs); err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	// The check finds a row that is missing, one that is there twice, and one that is wrong.
	a := answers[len(answers)-1]
	for _, ids := range [][]string{a.ids[1:], append(slices.Clone(a.ids), a.ids[0]), append(slices.Clone(a.ids[1:]), "wrong")} {
		if (&asked{cuts: a.cuts, ids: ids}).check(logs) == nil {
			t.Error("a false answer is taken")
		}
	}
	t.Logf("%d orders, %d answers", n.Load(), len(answers))
}

// Pages of rows and of groups of two partitions are the whole answer, at the cuts of the first.
func TestPagesOfTwoPartitions(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Views = &Views{Memory: 128 << 20, Rows: 1 << 16}
	c := g.up().client()
	receipts := submit(t, c, "page", 120)
	rows := ofAccount("ACCT")
	rows.OrderBy = []query.Order{{Field: view.ClOrdID, Desc: true}}
	rows.Limit, rows.After = 7, receipts
	ids := map[string]int{}
	var last string
	for page := 0; ; page++ {
		a, err := c.Query(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range a.Rows {
			if id := r[1].Text; last != "" && id >= last {
				t.Errorf("%s behind %s", id, last)
			}
			last = r[1].Text
			ids[last]++
		}
		if page == 0 {
			submit(t, c, "late", 20)
		}
		if rows.Page = a.Next; rows.Page == nil {
			break
		}
	}
	if len(ids) != 120 || slices.Max(slices.Collect(maps.Values(ids))) != 1 || len(last) < 6 || last != "page-0" {
		t.Errorf("%d orders, the last is %q", len(ids), last)
	}
	groups := client.Query{Query: query.Query{GroupBy: []view.Field{view.Symbol}, Aggregates: []query.Aggregate{{Func: query.Count}, {Func: query.Sum, Field: view.OrderQty}}},
		Linearizable: true}
	a, err := c.Query(t.Context(), groups)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Rows) != 1 || a.Rows[0][1].Int != 140 || a.Rows[0][2].Number.String() != "70000" || len(a.Cuts) != 2 || a.Cuts[0].Hash == 0 {
		t.Errorf("groups %v, cuts %+v", a.Rows, a.Cuts)
	}
	if plan, err := c.Explain(t.Context(), 1, ofAccount("ACCT")); err != nil || plan == "" {
		t.Errorf("plan %q, %v", plan, err)
	}
}

// What cannot be answered is refused with the reason, at once.
func TestQuestionsAreRefused(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Views = &Views{Memory: 64 << 20, Rows: 1 << 16}
	c := g.up().client()
	r := submit(t, c, "refused", 3)[2]
	deep := &query.Expr{Op: query.Not, Args: []query.Expr{{Op: query.And}}}
	for range 64 {
		deep = &query.Expr{Op: query.Not, Args: []query.Expr{*deep}}
	}
	many := &query.Expr{Op: query.Or}
	for range 20_000 {
		many.Args = append(many.Args, query.Expr{Op: query.Present, Field: view.Price})
	}
	for name, q := range map[string]client.Query{
		"unknown field": {Query: query.Query{Select: []view.Field{9999}}},
		"kind":          {Query: query.Query{Select: []view.Field{view.Seq}, Where: &query.Expr{Op: query.Eq, Field: view.Price, Values: []view.Value{view.TextValue("a")}}}},
		"depth":         {Query: query.Query{Select: []view.Field{view.Seq}, Where: deep}},
		"terms":         {Query: query.Query{Select: []view.Field{view.Seq}, Where: many}},
		"limit":         {Query: query.Query{Select: []view.Field{view.Seq}, Limit: 1 << 30}},
	} {
		var refused *client.QueryError
		if _, err := c.Query(t.Context(), q); !errors.As(err, &refused) || refused.Code != wire.QueryRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := ofAccount("ACCT")
	r.Hash++
	other.After = []client.Receipt{r}
	var diverged *client.QueryError
	if _, err := c.Query(t.Context(), other); !errors.As(err, &diverged) || diverged.Code != wire.QueryDiverged {
		t.Errorf("a receipt of another history: %v", err)
	}
	r.Hash, r.Seq = 0, r.Seq+1000
	other.After = []client.Receipt{r}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Query(ctx, other); err == nil {
		t.Error("an answer without an entry that it had to see")
	}
	for i := range g.nodes {
		g.until(func() bool { n := -1; g.onLoop(i, func() { n = g.nodes[i].data.clients.questions.n }); return n == 0 }, "questions stay")
	}
}

// Questions for one ClOrdID have its orders of every partition, each once, while nodes are killed; also where primaries
// keep no views.
func TestKeyedQuestionsThroughKills(t *testing.T) {
	for name, backups := range map[string]bool{"all copies": false, "backups": true} {
		t.Run(name, func(t *testing.T) {
			g := newGrid(t, 2, 2)
			g.base.Views = &Views{Memory: 128 << 20, Rows: 1 << 16, OnBackups: backups, handOver: 300 * time.Millisecond}
			c := g.up().client()
			const keys = 16
			var after []client.Receipt
			for i := range keys {
				for p := range wire.PartitionID(2) {
					r, err := c.SubmitTo(t.Context(), p, fix(fmt.Sprintf("key-%d", i)))
					if err != nil {
						t.Fatal(err)
					}
					after = append(after, r)
				}
			}
			ask := func(i int, account string) error {
				id := fmt.Sprintf("key-%d", i%keys)
				q := ofAccount(account)
				key := query.Expr{Op: query.Eq, Field: view.ClOrdID, Values: []view.Value{view.TextValue(id)}}
				if where := *q.Where; i%2 == 0 {
					q.Where = &key
				} else {
					q.Where = &query.Expr{Op: query.And, Args: []query.Expr{where, key}}
				}
				q.After = after
				a, err := c.Query(t.Context(), q)
				if err != nil {
					return err
				}
				want := []uint64{after[2*(i%keys)].Seq, after[2*(i%keys)+1].Seq}
				if i%2 == 1 && account != "ACCT" {
					want = nil
				}
				var got []uint64
				for _, row := range a.Rows {
					got = append(got, uint64(row[0].Int))
				}
				if !slices.Equal(got, want) || len(a.Cuts) != 2 || a.Next != nil {
					return fmt.Errorf("%s: rows %v of cuts %+v, want %v", id, got, a.Cuts, want)
				}
				return nil
			}
			var n atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for k := range 3 {
				wg.Go(func() {
					for i := k; ctx.Err() == nil; i++ {
						if err := ask(i, []string{"ACCT", "OTHER"}[i/2%2]); err != nil {
							t.Errorf("question %d: %v", i, err)
							return
						}
						n.Add(1)
					}
				})
			}
			for round := range 2 {
				before := n.Load()
				g.until(func() bool { return n.Load() > before+100 || t.Failed() }, "no questions are answered")
				g.kill(round % 2)
				g.until(func() bool { return n.Load() > before+200 || t.Failed() }, "no questions are answered")
				g.start(round % 2)
				g.ready()
			}
			cancel()
			wg.Wait()
			for i := range g.nodes {
				g.until(func() bool { n := -1; g.onLoop(i, func() { n = g.nodes[i].data.clients.questions.n }); return n == 0 }, "questions stay")
			}
			t.Logf("%d questions", n.Load())
		})
	}
}
