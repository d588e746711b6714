package queries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ordergrid/ordergrid/client"
)

// regionName is the region that has the orders as values.
const regionName = "orders"

// regions replaces the grid by one with a region that has all orders.
func (g *Grid) regions(ctx context.Context) error {
	if g.region != nil {
		return nil
	}
	if err := g.Stop(); err != nil {
		return err
	}
	file, err := filepath.Abs(filepath.Join(g.Dir, "regions.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "memory: %dMi\nregions:\n- name: %s\n", regionMiB(g.orders.N), regionName), 0o600); err != nil {
		return err
	}
	if err := g.start(ctx, changesMiB(g.orders.N), "--", "--regions", file); err != nil {
		return err
	}
	g.region = g.c.Region(regionName)
	return each(ctx, g.orders.N, func(ctx context.Context, i int) error {
		x := g.orders.Of(i)
		_, err := g.region.Put(ctx, []byte(x.ID), x.FIX)
		return err
	})
}

// Patch implements System.
func (g *Grid) Patch(ctx context.Context) (time.Duration, string, error) {
	if err := g.regions(ctx); err != nil {
		return 0, "", err
	}
	n := g.orders.sells()
	begun := time.Now()
	if err := each(ctx, n, func(ctx context.Context, i int) error {
		_, err := g.region.Patch(ctx, fmt.Appendf(nil, "Q%09d", i/2*5+i%2), g.orders.tif, []byte(patchedTIF))
		return err
	}); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	var want Answer
	for i := range g.orders.N {
		fix := g.orders.Of(i).FIX
		if sells(i) {
			copy(fix[g.orders.tif:], patchedTIF)
		}
		want.addText(string(fix))
	}
	wrong, err := g.holds(ctx, want)
	return took, wrong, err
}

// Drop implements System.
func (g *Grid) Drop(ctx context.Context) (time.Duration, string, error) {
	if err := g.regions(ctx); err != nil {
		return 0, "", err
	}
	begun := time.Now()
	if err := g.region.Clear(ctx); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	wrong, err := g.holds(ctx, Answer{})
	return took, wrong, err
}

// holds compares all values of the region with what must be there.
func (g *Grid) holds(ctx context.Context, want Answer) (string, error) {
	var a Answer
	err := g.region.Scan(ctx, nil, func(e client.Entry) error {
		a.addText(string(e.Value))
		return nil
	})
	if err != nil || a == want {
		return "", err
	}
	return "the region: " + a.String() + ", must be " + want.String(), nil
}

// together is how many changes of a region are under way, as in scenario bar-update.
const together = 128

// each calls f for 0 to n-1, many at the same time, until one fails.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for first := range together {
		g.Go(func() error {
			for i := first; i < n; i += together {
				if err := f(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
