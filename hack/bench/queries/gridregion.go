package queries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	return g.change(g.orders.N, func(i int) []byte { return []byte(g.orders.Of(i).ID) }, func(i int, key []byte, done func(client.Receipt, error)) error {
		return g.region.PutAsync(key, g.orders.Of(i).FIX, done)
	})
}

// Patch implements System.
func (g *Grid) Patch(ctx context.Context) (time.Duration, string, error) {
	if err := g.regions(ctx); err != nil {
		return 0, "", err
	}
	n := g.orders.sells()
	begun := time.Now()
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "Q%09d", i/2*5+i%2)
	}
	done, err := g.region.PatchAll(ctx, keys, g.orders.tif, []byte(patchedTIF))
	if err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	if done.Changed != n {
		return took, fmt.Sprintf("%d keys were patched, must be %d", done.Changed, n), nil
	}
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

// change changes n values of the region, many at the same time, until one fails.
func (g *Grid) change(n int, key func(i int) []byte, send func(i int, key []byte, done func(client.Receipt, error)) error) error {
	f := newFlight(partitions, together, func(client.Receipt) {})
	for i := range n {
		k := key(i)
		p := int(g.c.RouteClOrdID(k))
		if err := f.begin(p, func() {}); err != nil {
			return err
		}
		if err := send(i, k, func(r client.Receipt, err error) { f.ended(p, r, err) }); err != nil {
			return err
		}
	}
	return f.land()
}
