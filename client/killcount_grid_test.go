package client_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestGridKillCount: a kill of a client cancels 2,000 orders that rest, in parts; what the grid says
// it cancelled is what executions have, and not before the last of them.
func TestGridKillCount(t *testing.T) {
	g := testgrid.Matching(t)
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	const rest, others = 2000, 10
	for i := range rest + others {
		account := "acc"
		if i >= rest {
			account = "other"
		}
		if _, err := c.Submit(t.Context(), message(fmt.Sprintf("35=D 11=k%d 1=%s 55=IBM 54=1 38=1 40=2 44=%d.%02d", i, account, 100+i%20, 5*(i%20)))); err != nil {
			t.Fatal(err)
		}
	}
	part := c.RouteSymbol("IBM")
	// The kill is of the last order on, once every copy has said that it cancels.
	results, err := c.Kill(t.Context(), client.Kill{Scope: order.GuardClient, Name: "acc", Why: "drill", Who: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var count client.KillCount
	waitFor(t, func() bool {
		counts, err := c.KillCounts(t.Context(), order.GuardClient, "acc")
		if err != nil {
			t.Fatal(err)
		}
		if count = counts[part]; count.State != client.KillComplete && count.Cancelled != 0 {
			t.Fatalf("%+v before it is complete", count)
		}
		return count.State == client.KillComplete
	})
	cancelled := 0
	for _, e := range executions(t, c, part, "") {
		if e.Kind == client.ExecCancelled && e.Other == results[part].Entry {
			cancelled++
		}
	}
	if count.Cancelled != rest || cancelled != rest || count.Entry != results[part].Entry || count.Complete <= count.Entry {
		t.Errorf("%+v, and %d cancels in the log, want %d of entry %d", count, cancelled, rest, results[part].Entry)
	}
	if counts, err := c.KillCounts(t.Context(), order.GuardClient, "nobody"); err != nil || counts[part].State != client.KillNone {
		t.Errorf("of a kill that there is not: %+v, %v", counts, err)
	}
	if b, err := c.ReadBook(t.Context(), "IBM", 64, ""); err != nil || len(b.Bids) != others {
		t.Errorf("%d prices are left, %v, want those of %d orders", len(b.Bids), err, others)
	}
}
