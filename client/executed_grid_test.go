package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
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
	partition := c.RouteSymbol("IBM")
	want := executions(t, c, partition, "")
	for id, e := range want {
		if e.Kind > client.ExecTriggered {
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
