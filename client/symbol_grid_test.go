package client_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestGridRoutesBySymbol: a client that was told nothing sends an order, and what replaces and
// cancels it, to the partition of its symbol, and finds a ClOrdID in any of them.
func TestGridRoutesBySymbol(t *testing.T) {
	g := testgrid.Matching(t, "--partitions", "4")
	c := dial(t, g)
	if !c.BySymbol() || len(c.Table()) != 4 {
		t.Fatalf("by symbol: %v, %d partitions, want true and 4", c.BySymbol(), len(c.Table()))
	}
	if c.RouteSymbol("IBM") == c.RouteSymbol("OIL") {
		t.Fatal("both symbols are traded in one partition, want two")
	}
	for i := range 40 {
		symbol := []string{"IBM", "OIL"}[i%2]
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		for _, fields := range []string{"35=D 11=" + a, "35=G 11=" + b + " 41=" + a, "35=F 11=c" + a + " 41=" + b} {
			r, err := c.Submit(t.Context(), message(fields+" 55="+symbol+" 54=1 38=10 40=2 44=10"))
			if err != nil || r.Partition != c.RouteSymbol(symbol) {
				t.Fatalf("%s of %s: %s, %v, want it in %s", fields, symbol, r.ID(), err, c.RouteSymbol(symbol))
			}
		}
		o, err := find(c, b)
		if err != nil || o.ClOrdID != b || o.ID.Partition != c.RouteSymbol(symbol) {
			t.Errorf("%s is found as %s, %v, want it in %s", b, o.ID, err, c.RouteSymbol(symbol))
		}
	}
	if _, err := find(c, "unknown"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an unknown ClOrdID: %v, want %v", err, client.ErrNotFound)
	}
	for _, p := range c.Table() {
		for id, e := range executions(t, c, p.ID, "") {
			if e.Kind == client.ExecRejected || e.Kind == client.ExecCancelRejected {
				t.Errorf("execution %s is a refusal: %+v", id, e)
			}
		}
	}
	stores := dial(t, testgrid.Run(t))
	if stores.BySymbol() {
		t.Error("a grid that stores says that orders go by symbol")
	}
}

// find reads by ClOrdID without waiting in the call.
func find(c *client.Client, id string) (o client.Order, err error) {
	done := make(chan struct{})
	if failed := c.GetByClOrdIDAsync([]byte(id), func(v *client.OrderView, e error) {
		if err = e; e == nil {
			o = v.Order()
		}
		close(done)
	}); failed != nil {
		return o, failed
	}
	<-done
	return o, err
}
