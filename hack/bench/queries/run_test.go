package queries

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/probe/host"
)

// quick measures next to nothing, on a machine that may be busy.
func quick(t *testing.T, s ...System) *results.Queries {
	t.Helper()
	r := Runner{Options: Options{Orders: 1_003, Changes: true, Limits: host.Limits{MaxSteal: 100, MaxForeign: 100}}, Say: t.Logf}
	table, err := r.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// liar is a grid that gets another order than is told.
type liar struct {
	*Grid
	instead func(x *Order)
}

func (l *liar) Load(ctx context.Context, batch []Order) (time.Duration, error) {
	i := slices.IndexFunc(batch, func(x Order) bool { return x.Account == hotAccount })
	batch = slices.Clone(batch)
	l.instead(&batch[i])
	return l.Grid.Load(ctx, batch)
}

// A grid that answers from what it was given is right about all of it. Of one that has another quantity in one order, those
// answers are found wrong in which that order is, and no others.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	honest := &Grid{Dir: dir}
	table := quick(t, honest)
	if err := table.Failed(); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 13 { // load, patch, drop, five questions of two
		t.Errorf("%d rows: %+v", len(table.Rows), table.Rows)
	}
	for _, r := range table.Rows {
		if r.Ms <= 0 || r.Times == 0 {
			t.Errorf("%+v", r)
		}
	}
	other := &liar{Grid: &Grid{Dir: dir}, instead: func(x *Order) {
		text := strings.Replace(string(x.FIX), "\x0138=7777\x01", "\x0138=7778\x01", 1)
		x.FIX = sealed([]byte(text))
	}}
	table = quick(t, other)
	var wrong []string
	for _, r := range table.Rows {
		if r.Wrong != "" {
			wrong = append(wrong, r.System+" "+r.Question)
		}
	}
	// Range has the order or not: it is asked for neither.
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return strings.HasSuffix(s, " range") || strings.HasSuffix(s, " get") })
	if want := []string{"grid equal", "grid-sql equal", "grid count", "grid-sql count", "grid group", "grid-sql group"}; !slices.Equal(wrong, want) {
		t.Errorf("wrong: %q, wanted %q", wrong, want)
	}
	if table.Failed() == nil {
		t.Error("wrong answers are no failure")
	}
}

// broken cannot be built.
type broken struct{ *Grid }

func (b *broken) Prepare(context.Context) error { return errors.New("no compiler") }

// A system that cannot be had is in the table with its reason, and the others are measured.
func TestFailure(t *testing.T) {
	table := quick(t, &broken{&Grid{}})
	if err := table.Failed(); err == nil || !strings.Contains(err.Error(), "no compiler") {
		t.Errorf("%v", err)
	}
	if len(table.Rows) != 8 {
		t.Errorf("%+v", table.Rows)
	}
}

// A region that lacks a change, or has one left, is found.
func TestRegionIsRead(t *testing.T) {
	g := &Grid{Dir: t.TempDir(), orders: NewOrders(1_000)}
	if err := g.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.regions(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all Answer
	for i := range g.orders.N {
		all.addText(string(g.orders.Of(i).FIX))
	}
	if wrong, err := g.holds(t.Context(), all); wrong != "" || err != nil {
		t.Errorf("%s, %v", wrong, err)
	}
	if _, err := g.region.Patch(t.Context(), []byte("Q000000002"), g.orders.tif, []byte(patchedTIF)); err != nil {
		t.Fatal(err)
	}
	if wrong, err := g.holds(t.Context(), all); wrong == "" || err != nil {
		t.Errorf("a change more was not found: %v", err)
	}
}
