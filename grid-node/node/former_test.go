package node

import (
	"errors"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// formerly submits two orders to a pair and ends it, and returns its record then.
func formerly(t *testing.T) (*grid, []client.Receipt, arbiter.Record) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	was := submit(t, c, "OLD", 2)
	for _, r := range was {
		o, err := c.Get(t.Context(), r.ID(), client.Of(r))
		if err != nil || r.Hash == 0 || o.Hash() != r.Hash || r.Lineage != 1 {
			t.Fatalf("receipt %s: order with hash %016x, error %v", r, o.Hash(), err)
		}
	}
	g.kill(0)
	g.kill(1)
	rec, err := g.store.Get(t.Context(), PartitionName("g", 0))
	if err != nil {
		t.Fatal(err)
	}
	return g, was, rec
}

// others submits orders until one has the id of r, and checks that it is not mistaken for
// r.
func others(t *testing.T, g *grid, r client.Receipt) (now client.Receipt) {
	t.Helper()
	c := g.client()
	for _, now = range submit(t, c, "NEW", 8) {
		if now.ID() == r.ID() {
			break
		}
	}
	if now.ID() != r.ID() {
		t.Fatalf("the last order is %s; none has the id %s: the test is inconclusive", now, r.ID())
	}
	if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID == "OLD-0" {
		t.Fatalf("order %s, error %v, want the order that has the id now", o.ClOrdID, err)
	}
	var other *client.OtherOrderError
	if _, err := c.Get(t.Context(), r.ID(), client.Of(r)); !errors.As(err, &other) || other.Found != now.Name() {
		t.Fatalf("receipt %s: error %v, want that %s has its id", r, err, now.Name())
	}
	if o, err := c.Get(t.Context(), now.ID(), client.Of(now), client.WithMode(client.Backup)); err != nil || o.Hash() != now.Hash {
		t.Fatalf("receipt %s: order with hash %016x, error %v", now, o.Hash(), err)
	}
	return now
}

// An administrator accepts the loss of both copies; the numbers are given to other orders.
func TestReceiptsOfALineageThatWasLost(t *testing.T) {
	g, was, rec := formerly(t)
	if _, err := g.store.SetSpec(rec.Name, func(s *arbiter.Spec) error { s.AcceptDataLossEpoch = rec.Epoch; return nil }); err != nil {
		t.Fatal(err)
	}
	g.up()
	if now := others(t, g, was[0]); now.Lineage != 2 {
		t.Errorf("receipt %s, want lineage 2", now)
	}
}

// The grid is recreated under its name: epochs, lineages and numbers restart.
func TestReceiptsOfAGridOfBefore(t *testing.T) {
	_, was, _ := formerly(t)
	g := newGrid(t, 2, 1).up()
	now := others(t, g, was[0])
	if now.Lineage != 1 || now.Epoch != was[0].Epoch {
		t.Errorf("receipt %s, want the lineage and epoch of %s: by them alone it could not be told", now, was[0])
	}
	if _, err := g.client().Get(t.Context(), was[0].ID(), client.OfEpoch(was[0].Epoch)); err != nil {
		t.Errorf("by the epoch alone: %v, want the order of the new grid", err)
	}
}
