package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// keysOf are n keys of a prefix.
func keysOf(prefix string, n int) (keys [][]byte) {
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "%s-%05d", prefix, i))
	}
	return keys
}

// entriesOf have values "value 0", "value 1" and so on.
func entriesOf(keys [][]byte) (entries []client.Entry) {
	for i, k := range keys {
		entries = append(entries, client.Entry{Key: k, Value: fmt.Appendf(nil, "value %d", i)})
	}
	return entries
}

// scanned are the values of a region with a prefix.
func scanned(t *testing.T, r *client.Region, prefix string) map[string]client.Entry {
	t.Helper()
	all := map[string]client.Entry{}
	if err := r.Scan(t.Context(), []byte(prefix), func(e client.Entry) error {
		all[string(e.Key)] = client.Entry{Value: bytes.Clone(e.Value), Version: e.Version}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGridRegionBatches puts, patches and removes many keys at once.
func TestGridRegionBatches(t *testing.T) {
	c := dial(t, regions(t))
	ctx, r := t.Context(), c.Region("positions")
	keys := keysOf("K", 3000)
	entries := append(entriesOf(keys), client.Entry{Key: keys[7], Value: []byte("value x")}, client.Entry{Key: []byte("K-big"), Value: make([]byte, wire.MaxRegionPair-5)})
	got, err := r.PutAll(ctx, entries)
	parts := len(c.Table())
	if err != nil || got.Changed != 3001 || got.Missing != 0 || got.Batches < parts || got.Batches > 3000/512+2*parts+1 {
		t.Fatalf("put %+v of %d partitions, %v; want 3001 changed", got, parts, err)
	}
	all := scanned(t, r, "K-")
	versions := map[string]bool{}
	for i, k := range keys {
		e, want := all[string(k)], fmt.Sprintf("value %d", i)
		if i == 7 {
			want = "value x"
		}
		if string(e.Value) != want {
			t.Fatalf("%s is %q, want %q", k, e.Value, want)
		}
		versions[fmt.Sprint(c.RouteClOrdID(k), e.Version)] = true
	}
	if len(all) != 3001 || len(versions) > got.Batches {
		t.Errorf("%d keys with %d versions, want 3001 with at most %d: one of each batch", len(all), len(versions), got.Batches)
	}

	some := append(keysOf("K", 1000), keysOf("none", 500)...)
	if got, err = r.PatchAll(ctx, some, 0, []byte("VALUE")); err != nil || got.Changed != 1000 || got.Missing != 500 {
		t.Fatalf("patched %+v, %v; want 1000 changed, 500 missing", got, err)
	}
	if all = scanned(t, r, "K-"); string(all["K-00999"].Value) != "VALUE 999" || string(all["K-01000"].Value) != "value 1000" {
		t.Errorf("after the patch: %q, %q", all["K-00999"].Value, all["K-01000"].Value)
	}
	if got, err = r.RemoveAll(ctx, keysOf("none", 5)); err != nil || got != (client.Batched{Missing: 5}) {
		t.Errorf("removed %+v, %v; want 5 missing and no entry", got, err)
	}
	if got, err = r.RemoveAll(ctx, append(some, []byte("K-big"))); err != nil || got.Changed != 1001 || got.Missing != 500 {
		t.Errorf("removed %+v, %v; want 1001 changed, 500 missing", got, err)
	}
	if all = scanned(t, r, ""); len(all) != 2000 {
		t.Errorf("%d keys are left, want 2000", len(all))
	}
	if got, err = r.PutAll(ctx, nil); err != nil || got != (client.Batched{}) {
		t.Errorf("put of nothing: %+v, %v", got, err)
	}
}

// TestGridRegionBatchesRefused: a batch that does not fit changes nothing, and what failed is said.
func TestGridRegionBatchesRefused(t *testing.T) {
	c := dial(t, regions(t))
	ctx, r := t.Context(), c.Region("positions")
	var failed *client.BatchError
	if _, err := r.PutAll(ctx, []client.Entry{{Key: []byte("a")}, {}}); err == nil || errors.As(err, &failed) {
		t.Errorf("an empty key: %v", err)
	}
	if _, err := r.PutAll(ctx, []client.Entry{{Key: []byte("a")}}, client.IfAbsent()); err == nil || errors.As(err, &failed) {
		t.Errorf("a condition: %v", err)
	}
	keys := keysOf("K", 100)
	if _, err := r.PutAll(ctx, entriesOf(keys)); err != nil {
		t.Fatal(err)
	}
	for _, at := range [][]byte{keys[10], keys[90]} { // the patch fits all values but these
		if _, err := r.Put(ctx, at, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.PatchAll(ctx, keys, 5, []byte("-"))
	if !errors.Is(err, client.ErrTooLarge) || !errors.As(err, &failed) || len(failed.Unknown) != 0 || len(failed.Unapplied)+got.Changed != 100 {
		t.Fatalf("a patch behind the end of two values: %+v, %v", got, err)
	}
	unapplied := map[string]bool{}
	for _, k := range failed.Unapplied {
		unapplied[string(k)] = true
	}
	for i, k := range keys {
		e, err := r.Get(ctx, k)
		want := fmt.Sprintf("value %d", i)
		if !unapplied[string(k)] {
			want = fmt.Sprintf("value-%d", i)
		} else if i == 10 || i == 90 {
			want = "x"
		}
		if err != nil || string(e.Value) != want {
			t.Errorf("%s is %q (%v), want %q", k, e.Value, err, want)
		}
	}
	if _, err := c.Region("nothing").RemoveAll(ctx, keys); !errors.Is(err, client.ErrRegionUnknown) || !errors.As(err, &failed) || len(failed.Unapplied) != 100 {
		t.Errorf("a region that is not there: %v", err)
	}
	small := c.Region("small")
	got, err = small.PutAll(ctx, entriesOf(keysOf("s", 2000)))
	if !errors.Is(err, client.ErrCapacity) || !errors.As(err, &failed) || got.Changed+len(failed.Unapplied) != 2000 {
		t.Errorf("more than fits: %+v, %v", got, err)
	}
	if all := scanned(t, small, ""); len(all) != got.Changed {
		t.Errorf("%d keys are there, want %d: a batch that is refused puts none", len(all), got.Changed)
	}
}

// TestGridRegionBatchesKilledPrimary puts and removes tokens by batches while primaries are killed: each batch is applied
// once, and a retry is told what the first copy did.
func TestGridRegionBatchesKilledPrimary(t *testing.T) {
	g := regions(t)
	c := dial(t, g)
	ctx, r := t.Context(), c.Region("positions")
	const workers, tokens = 4, 60
	var stop atomic.Bool
	var rounds atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				keys := keysOf(fmt.Sprintf("w%d-%d", w, i), tokens)
				if got, err := r.PutAll(ctx, entriesOf(keys)); err != nil || got.Changed != tokens {
					t.Errorf("put %+v, %v", got, err)
					return
				}
				absent := append(keysOf("none", tokens), keys...)
				if got, err := r.RemoveAll(ctx, absent); err != nil || got.Changed != tokens || got.Missing != tokens {
					t.Errorf("removed %+v, %v; want %d changed, as many missing", got, err, tokens)
					return
				}
				rounds.Add(1)
			}
		})
	}
	for range 2 {
		waitForRedundancy(t, c)
		time.Sleep(50 * time.Millisecond) // some traffic at full redundancy
		killPrimary(t, c, g)
	}
	waitForRedundancy(t, c)
	stop.Store(true)
	wg.Wait()
	if all := scanned(t, r, ""); len(all) != 0 {
		t.Errorf("%d keys are left, want 0", len(all))
	}
	t.Logf("%d rounds", rounds.Load())
}
