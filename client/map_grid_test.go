package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// primesGrid starts a grid with regions and the functions primes and add, and primes without the fuel
// that it takes.
func primesGrid(t *testing.T) *testgrid.Grid {
	dir := t.TempDir()
	file, primes, add := filepath.Join(dir, "regions.yaml"), filepath.Join(dir, "primes.wasm"), filepath.Join(dir, "add.wasm")
	if err := errors.Join(os.WriteFile(file, []byte(regionsFile), 0o600), os.WriteFile(primes, examples.Primes, 0o600), os.WriteFile(add, examples.Add, 0o600)); err != nil {
		t.Fatal(err)
	}
	pinned := fmt.Sprintf("%s:sha256=%x", primes, sha256.Sum256(examples.Primes))
	return testgrid.Run(t, "--", "--regions", file, "--function-compute", "primes="+pinned, "--function-compute", "starved="+pinned+",fuel=300",
		"--function-compute", fmt.Sprintf("add=%s:sha256=%x", add, sha256.Sum256(examples.Add)))
}

func u32s(vs ...uint32) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// primesIn sums up the answers of primes.
func primesIn(parts []client.MapPart) (primes, rows uint64) {
	for _, p := range parts {
		if len(p.Reply) != 16 {
			return 0, 0
		}
		primes += binary.LittleEndian.Uint64(p.Reply)
		rows += p.Rows
	}
	return primes, rows
}

func TestGridMap(t *testing.T) {
	c := dial(t, primesGrid(t))
	ctx := t.Context()
	for _, slices := range []int{0, 1, 3, 50} {
		parts, err := c.Map(ctx, "primes", client.MapRequest{Args: u32s(10_000, 1), Slices: slices})
		if n, rows := primesIn(parts); err != nil || len(parts) != max(slices, 1) || n != 1229 || rows != 0 {
			t.Errorf("%d slices: %d primes below 10,000 in %d parts of %d rows (%v), want 1229", slices, n, len(parts), rows, err)
		}
	}
	workersOf(t, c)
	const n = 1000
	last := map[uint32]client.Receipt{}
	for v := range uint32(n) {
		r, err := c.Region("positions").Put(ctx, fmt.Appendf(nil, "n-%d", v), u32s(v))
		if err != nil {
			t.Fatal(err)
		}
		last[uint32(r.Partition)] = r
	}
	for _, slices := range []int{1, 4} {
		told := map[string]uint64{}
		parts, err := c.Map(ctx, "primes", client.MapRequest{Region: "positions", Args: u32s(0, 0), Slices: slices, OnPart: func(p client.MapPart) {
			told[fmt.Sprint(p.Partition, " ", p.Slice)] += p.Rows
		}})
		found, rows := primesIn(parts)
		if err != nil || found != 168 || rows != n || len(parts) != slices*len(c.Table()) {
			t.Fatalf("%d slices: %d primes in %d parts of %d rows (%v), want 168 of %d", slices, found, len(parts), rows, err, n)
		}
		for _, p := range parts {
			if rows := told[fmt.Sprint(p.Partition, " ", p.Slice)]; rows != p.Rows || len(told) != len(parts) {
				t.Errorf("OnPart had %d rows of part %+v, and %d parts of %d", rows, p, len(told), len(parts))
			}
			if r := last[uint32(p.Partition)]; p.Seq < r.Seq || p.Fuel == 0 || p.Address == "" {
				t.Errorf("part %+v, want one of entry %d or later", p, r.Seq)
			}
			if slices == 4 && p.Rows == 0 {
				t.Errorf("slice %d of %s has no rows", p.Slice, p.Partition)
			}
		}
	}
	partitionsOf(t, c)
}

// partitionsOf has the function called for the entries of some partitions.
func partitionsOf(t *testing.T, c *client.Client) {
	t.Helper()
	all, err := c.Map(t.Context(), "primes", client.MapRequest{Region: "positions", Args: u32s(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Table() {
		parts, err := c.Map(t.Context(), "primes", client.MapRequest{Region: "positions", Partitions: []wire.PartitionID{p.ID}, Args: u32s(0, 0), Slices: 2})
		if err != nil || len(parts) != 2 || parts[0].Partition != p.ID || parts[1].Partition != p.ID {
			t.Fatalf("%s alone: %+v, %v", p.ID, parts, err)
		}
		found, rows := primesIn(parts)
		if want, of := primesIn([]client.MapPart{all[p.ID]}); found != want || rows != of {
			t.Errorf("%s alone: %d primes in %d rows, want %d in %d", p.ID, found, rows, want, of)
		}
	}
	for _, wrong := range []client.MapRequest{
		{Partitions: []wire.PartitionID{0}}, {Region: "positions", Partitions: []wire.PartitionID{}},
		{Region: "positions", Partitions: []wire.PartitionID{0, 0}}, {Region: "positions", Partitions: []wire.PartitionID{99}},
	} {
		if _, err := c.Map(t.Context(), "primes", wrong); err == nil || !strings.Contains(err.Error(), "allowed") && !strings.Contains(err.Error(), "p99") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// workersOf asks for many slices, few at a time: more are not under way, and no node is left without.
func workersOf(t *testing.T, c *client.Client) {
	t.Helper()
	const slices = 24
	for _, most := range []int{1, 3} {
		begun := time.Now()
		parts, err := c.Map(t.Context(), "primes", client.MapRequest{Args: u32s(10_000, slices), Slices: slices, AtOnce: most})
		took := time.Since(begun)
		if n, _ := primesIn(parts); err != nil || n != slices*1229 {
			t.Fatalf("%d at once: %d primes in %d slices (%v), want %d times 1229", most, n, len(parts), err, slices)
		}
		all, at := time.Duration(0), map[string]int{}
		for _, p := range parts {
			all += p.Took
			at[p.Address]++
		}
		if all > time.Duration(most)*took {
			t.Errorf("%d at once: slices take %v together, and all of them %v: more were under way", most, all, took)
		}
		if most > 1 && len(at) < 2 {
			t.Errorf("%d at once: computed at %v, want two nodes", most, at)
		}
	}
}

func TestGridMapRefused(t *testing.T) {
	c := dial(t, primesGrid(t))
	if _, err := c.Region("positions").Put(t.Context(), []byte("five"), []byte("12345")); err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // in each partition some
		if _, err := c.Region("small").Put(t.Context(), []byte{byte(i)}, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		function string
		ask      client.MapRequest
		is       error
		code     int32
	}{
		"no function":      {"none", client.MapRequest{}, client.ErrFunctionUnknown, -1},
		"no region":        {"primes", client.MapRequest{Region: "nothing", Args: u32s(0, 0)}, client.ErrRegionUnknown, -1},
		"own error":        {"primes", client.MapRequest{Args: []byte("x")}, client.ErrFunctionFailed, 1},
		"own error at row": {"primes", client.MapRequest{Region: "positions", Args: u32s(0, 0)}, client.ErrFunctionFailed, 1},
		"out of fuel":      {"starved", client.MapRequest{Args: u32s(1000, 1)}, client.ErrFunctionFailed, 0},
		"it changes":       {"add", client.MapRequest{Region: "small", Args: longs(1)}, client.ErrFunctionFailed, 0},
		"time":             {"primes", client.MapRequest{Args: u32s(1<<24, 1000), Timeout: 200 * time.Millisecond}, client.ErrMapBound, -1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := c.Map(ctx, x.function, x.ask)
		cancel()
		var failed *client.FunctionError
		if !errors.Is(err, x.is) || errors.As(err, &failed) != (x.code >= 0) || failed != nil && failed.Code != x.code {
			t.Errorf("%s: %v, want %v with code %d", name, err, x.is, x.code)
		}
	}
	for name, ask := range map[string]client.MapRequest{"arguments": {Args: make([]byte, 4097)}, "slices": {Slices: 1025}, "at once": {AtOnce: 61}, "timeout": {Timeout: 1}} {
		if _, err := c.Map(t.Context(), "primes", ask); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if parts, err := c.Map(t.Context(), "primes", client.MapRequest{Args: u32s(100, 1)}); err != nil {
		t.Errorf("after those: %v, %v", parts, err)
	}
}

// TestGridMapKilledPrimary kills primaries while Maps go over entries that others rewrite: each answer
// has every entry once and every prime once, or there is none.
func TestGridMapKilledPrimary(t *testing.T) {
	g := primesGrid(t)
	c := dial(t, g)
	ctx := t.Context()
	const n = 400
	put := func(v uint32) error {
		_, err := c.Region("positions").Put(ctx, fmt.Appendf(nil, "n-%d", v), u32s(v))
		return err
	}
	for v := range uint32(n) {
		if err := put(v); err != nil {
			t.Fatal(err)
		}
	}
	var (
		stop         atomic.Bool
		over, within atomic.Int64
		wg           sync.WaitGroup
	)
	wg.Go(func() {
		for v := uint32(0); !stop.Load(); v++ {
			if err := put(v % n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				parts, err := c.Map(ctx, "primes", client.MapRequest{Region: "positions", Args: u32s(0, 0), Slices: 2})
				if found, rows := primesIn(parts); err != nil || found != 78 || rows != n {
					t.Errorf("%d primes in %d rows (%v), want 78 in %d", found, rows, err, n)
					return
				}
				over.Add(1)
				parts, err = c.Map(ctx, "primes", client.MapRequest{Args: u32s(30_000, 3), Slices: 4})
				if found, _ := primesIn(parts); err != nil || found != 3*3245 {
					t.Errorf("%d primes (%v), want 3 times 3245", found, err)
					return
				}
				within.Add(1)
			}
		})
	}
	for range 2 {
		waitForRedundancy(t, c)
		killPrimary(t, c, g)
	}
	waitForRedundancy(t, c)
	stop.Store(true)
	wg.Wait()
	if over.Load() < 2 || within.Load() < 2 {
		t.Errorf("%d Maps over entries and %d without, want 2 of each or more", over.Load(), within.Load())
	}
	t.Logf("%d Maps over entries, %d without", over.Load(), within.Load())
}
