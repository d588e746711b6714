package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestGridPing(t *testing.T) {
	g := testgrid.Run(t)
	eachIO(t, func(t *testing.T, io func(*client.Config)) {
		c := dial(t, g, io)
		for _, part := range c.Table() {
			p, err := c.OpenPinger(t.Context(), part.ID)
			if err != nil {
				t.Fatal(err)
			}
			if p.Address() != part.Primary.Address {
				t.Errorf("%s: pings %s, the primary is %s", part.ID, p.Address(), part.Primary.Address)
			}
			for range 100 {
				if err := p.Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if err := p.Ping(t.Context()); err == nil {
				t.Error("a closed Pinger pings")
			}
		}
		none, err := wire.MakePartitionID(7)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.OpenPinger(t.Context(), none); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("a partition that does not exist: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p, err := c.OpenPinger(ctx, c.Table()[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		cancel()
		if err := p.Ping(ctx); err != nil && !errors.Is(err, context.Canceled) { // the answer may be there first
			t.Errorf("cancelled: %v", err)
		}
	})
}
