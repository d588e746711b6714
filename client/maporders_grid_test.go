package client_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// notionalOf adds up the rows of answers of notional.
func notionalOf(t *testing.T, parts []client.MapPart) (orders, whole uint64) {
	t.Helper()
	for _, p := range parts {
		for b := p.Reply; len(b) >= 48; b = b[48:] {
			orders += binary.LittleEndian.Uint64(b)
			whole += binary.LittleEndian.Uint64(b[8:])
		}
	}
	return orders, whole
}

// TestGridMapOrdersKilledPrimary has Maps over orders while primaries are killed: each has all orders that were
// acknowledged before, and once nothing is sent any more the copies that are left give what the one before gave, to the
// hash.
func TestGridMapOrdersKilledPrimary(t *testing.T) {
	dir := t.TempDir()
	file, module := filepath.Join(dir, "regions.yaml"), filepath.Join(dir, "notional.wasm")
	for name, content := range map[string][]byte{file: []byte(regionsFile), module: examples.Notional} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := testgrid.Run(t, "--", "--regions", file, "--function-compute", fmt.Sprintf("notional=%s:sha256=%x", module, sha256.Sum256(examples.Notional)))
	c := dial(t, g)
	ctx := t.Context()
	const n = 120 // orders of 7 times 3 between two Maps
	var sent atomic.Int64
	submit := func() {
		t.Helper()
		for range n {
			k := sent.Add(1)
			if _, err := c.Submit(ctx, message(fmt.Sprintf("35=D 11=M-%d 55=S%d 54=1 38=7 40=2 44=3", k, k%5))); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(slices int) []client.MapPart {
		t.Helper()
		parts, err := c.Map(ctx, "notional", client.MapRequest{Orders: true, Slices: slices})
		if err != nil {
			t.Fatal(err)
		}
		orders, whole := notionalOf(t, parts)
		if want := uint64(sent.Load()); orders != want || whole != 21*want || len(parts) != slices*len(c.Table()) {
			t.Errorf("%d slices: %d orders and %d in %d parts, want %d and %d", slices, orders, whole, len(parts), want, 21*want)
		}
		return parts
	}
	for range 2 {
		submit()
		before := map[string]uint64{}
		for _, p := range ask(1) {
			before[fmt.Sprintf("%s/%d", p.Partition, p.Seq)] = p.Hash
		}
		waitForRedundancy(t, c)
		killPrimary(t, c, g)
		waitForRedundancy(t, c)
		for _, p := range ask(3) {
			if hash, same := before[fmt.Sprintf("%s/%d", p.Partition, p.Seq)]; same && hash != p.Hash {
				t.Errorf("%s, entry %d: hash %016x, and %016x at the primary before", p.Partition, p.Seq, p.Hash, hash)
			}
		}
	}
}
