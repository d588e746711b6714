package client_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridFollowsExecutions: at every copy a follower gets the executions that are read by request, each with its symbol,
// account and ClOrdID; an order that does more than a frame holds comes as one; a selection has one side of the trades.
func TestGridFollowsExecutions(t *testing.T) {
	g := testgrid.Matching(t)
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	const resting = 240
	pad := strings.Repeat("x", 50)
	for i := range resting {
		if _, err := c.Submit(t.Context(), message(fmt.Sprintf("35=D 11=%s-%d 1=MINE 55=IBM 54=1 38=1 40=2 44=125.00", pad, i))); err != nil {
			t.Fatal(err)
		}
	}
	sweep, err := c.Submit(t.Context(), message(fmt.Sprintf("35=D 11=sweep 1=THEIRS 55=IBM 54=2 38=%d 40=2 44=125.00", resting)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), message("35=F 11=no 41=none 1=MINE 55=IBM 54=1 38=1")); err != nil {
		t.Fatal(err)
	}
	// A kill, and the mass cancel that it is, are of no order and of no book.
	stop := client.Kill{Scope: order.GuardAll, Why: "drill", Who: "ann"}
	if _, err := c.Kill(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unkill(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	partition := c.RouteSymbol("IBM")
	want := executions(t, c, partition, "")
	for id, e := range want {
		if e.Kind > client.ExecTriggered || e.Book == math.MaxUint16 { // of no order: of a book, or of a mass cancel in all
			delete(want, id)
		}
	}
	last, err := c.Submit(t.Context(), message("35=D 11=last 1=MINE 55=IBM 54=1 38=1 40=2 44=1.00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Table()[partition].Members {
		for _, o := range []client.FollowOptions{{Executions: true}, {OnlyExecutions: true}, {OnlyExecutions: true, Account: "MINE"}, {OnlyExecutions: true, Account: "THEIRS"}} {
			o.Partition, o.Replica, o.Window = partition, m.Address, 64<<10
			got, entries := followed(t, c, o, last.Seq)
			of, swept := 0, 0
			for id, e := range want {
				x, there := got[id]
				if there {
					of++
					if e.Entry == sweep.Seq {
						swept++
					}
				}
				if o.Account == "" && !there || there && (x.Execution != e || x.Symbol != "IBM" || x.PriceDigits != 2 || x.Unknown || o.Account != "" && x.Account != o.Account) {
					t.Fatalf("%+v: execution %s is %+v, want %+v", o, id, x, e)
				}
				if there && e.Kind == client.ExecFilled && (x.Account == "MINE") != (e.Side == 1) || there && e.Passive && !strings.HasPrefix(x.ClOrdID, pad) {
					t.Fatalf("execution %s is of %s, order %s", id, x.Account, x.ClOrdID)
				}
			}
			n := map[string]int{"": len(want), "MINE": 2*resting + 1, "THEIRS": resting + 1}[o.Account]
			if of != n || len(got) < n || swept == 0 || o.Executions != (entries > 0) {
				t.Errorf("%+v: %d executions of %d, %d of them of the sweep, and %d entries; want %d", o, of, len(got), swept, entries, n)
			}
		}
	}
}

// TestGridFollowsSymbols: a selection of symbols has the orders and executions of these, and no others; with an account,
// what is of both.
func TestGridFollowsSymbols(t *testing.T) {
	g := testgrid.Matching(t, "--partitions", "1")
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	if c.RouteSymbol("IBM") != c.RouteSymbol("OIL") {
		t.Fatal("the symbols are of two partitions: the test would show nothing")
	}
	const pairs = 20
	var last client.Receipt
	for i := range pairs {
		for _, m := range []string{"11=%d-a 1=MINE 55=IBM 54=1 38=3 40=2 44=125.00", "11=%d-b 1=THEIRS 55=IBM 54=2 38=1 40=2 44=125.00", "11=%d-c 1=MINE 55=OIL 54=1 38=1 40=2 44=5", "11=%d-d 1=THEIRS 55=OIL 54=2 38=1 40=2 44=5"} {
			var err error
			if last, err = c.Submit(t.Context(), message("35=D "+fmt.Sprintf(m, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Of each pair two orders are accepted, and both are filled.
	for _, k := range []struct {
		o                   client.FollowOptions
		entries, executions int
	}{
		{client.FollowOptions{Executions: true, Symbols: []string{"IBM"}}, 2 * pairs, 4 * pairs},
		{client.FollowOptions{Executions: true, Symbols: []string{"OIL", "NONE"}}, 2 * pairs, 4 * pairs},
		{client.FollowOptions{Executions: true, Symbols: []string{"IBM", "OIL"}}, 4 * pairs, 8 * pairs},
		{client.FollowOptions{OnlyExecutions: true, Symbols: []string{"OIL"}}, 0, 4 * pairs},
		{client.FollowOptions{Executions: true, Symbols: []string{"OIL"}, Account: "MINE"}, pairs, 2 * pairs},
		{client.FollowOptions{Executions: true, Symbols: []string{"NONE"}}, 0, 0},
	} {
		for _, m := range c.Table()[0].Members {
			k.o.Replica, k.o.Window = m.Address, 64<<10
			got, entries := followed(t, c, k.o, last.Seq)
			for id, e := range got {
				if !slices.Contains(k.o.Symbols, e.Symbol) || k.o.Account != "" && e.Account != k.o.Account {
					t.Errorf("%+v: execution %s is of %s, account %s", k.o, id, e.Symbol, e.Account)
				}
			}
			if entries != k.entries || len(got) != k.executions {
				t.Errorf("%+v: %d entries and %d executions, want %d and %d", k.o, entries, len(got), k.entries, k.executions)
			}
		}
	}
	for _, o := range []client.FollowOptions{{Symbols: []string{"IBM"}}, {Executions: true, Symbols: []string{""}}, {Executions: true, Symbols: make([]string, 257)}} {
		if _, err := c.Follow(t.Context(), o); err == nil || !strings.Contains(err.Error(), "FollowOptions.Symbols") {
			t.Errorf("%d symbols: %v", len(o.Symbols), err)
		}
	}
}

// followed follows up to an entry.
func followed(t *testing.T, c *client.Client, o client.FollowOptions, through uint64) (got map[string]client.Executed, entries int) {
	t.Helper()
	f, err := c.Follow(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it never fails
	got = map[string]client.Executed{}
	for f.After().Seq < through {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entries += len(b.Entries)
		for _, e := range b.Executions {
			if _, twice := got[e.ID()]; twice || e.Entry < b.From || e.Entry > b.Through.Seq {
				t.Fatalf("execution %s comes twice, or in %d..%d", e.ID(), b.From, b.Through.Seq)
			}
			got[e.ID()] = e
		}
	}
	return got, entries
}

// TestGridWithoutExecutions: a grid that stores orders refuses them.
func TestGridWithoutExecutions(t *testing.T) {
	c := dial(t, testgrid.Run(t))
	f, err := c.Follow(t.Context(), client.FollowOptions{Executions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it never fails
	var reject *client.RejectError
	if _, err := f.Next(t.Context()); !errors.As(err, &reject) || reject.Code != wire.CodeUnsupported {
		t.Errorf("executions of a grid that stores orders: %v", err)
	}
}
