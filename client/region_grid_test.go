package client_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const regionsFile = `
memory: 16Mi
regions:
- name: positions
- {name: quotes, life: 200ms}
- {name: small, maxBytes: 8Ki}
`

// regions starts a grid with regions.
func regions(t *testing.T) *testgrid.Grid {
	file := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(file, []byte(regionsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return testgrid.Run(t, "--", "--regions", file)
}

func TestGridRegions(t *testing.T) {
	c := dial(t, regions(t))
	ctx, r := t.Context(), c.Region("positions")
	key := []byte("ACC-1/IBM")
	check := func(want string, version uint64) {
		t.Helper()
		for _, mode := range []client.ReadMode{client.Confirmed, client.Leased} {
			e, err := r.Get(ctx, key, client.WithMode(mode))
			if err != nil || string(e.Value) != want || e.Version != version {
				t.Fatalf("mode %d: got %q of version %d (%v), want %q of version %d", mode, e.Value, e.Version, err, want, version)
			}
		}
	}
	must := func(receipt client.Receipt, err error) uint64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return receipt.Seq
	}
	first := must(r.Put(ctx, key, []byte("100")))
	check("100", first)
	var failed *client.ConditionError
	if _, err := r.PutIf(ctx, key, []byte("x"), 0); !errors.As(err, &failed) || failed.Version != first || !errors.Is(err, client.ErrConditionFailed) {
		t.Errorf("put if absent over version %d: %v", first, err)
	}
	second := must(r.PutIf(ctx, key, []byte("150.50"), first))
	if _, err := r.PutIf(ctx, key, []byte("x"), first); !errors.As(err, &failed) || failed.Version != second {
		t.Errorf("put if version %d over %d: %v", first, second, err)
	}
	check("150.50", second)
	check("150.75", must(r.Patch(ctx, key, 4, []byte("75"))))
	patched := make(chan error, 1)
	var third client.Receipt
	if err := r.PatchAsync(key, 0, []byte("250"), func(receipt client.Receipt, err error) { third = receipt; patched <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-patched; err != nil {
		t.Fatal(err)
	}
	check("250.75", third.Seq)
	if value, _, err := r.Take(ctx, key); err != nil || string(value) != "250.75" {
		t.Errorf("took %q (%v)", value, err)
	}
	if err := r.PatchAsync(key, 0, []byte("1"), func(_ client.Receipt, err error) { patched <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-patched; !errors.Is(err, client.ErrConditionFailed) {
		t.Errorf("a patch of nothing, without waiting: %v", err)
	}
	if _, _, err := r.Take(ctx, key); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("took it twice: %v", err)
	}
	if _, err := r.Patch(ctx, key, 0, []byte("x")); !errors.Is(err, client.ErrConditionFailed) {
		t.Errorf("patch of nothing: %v", err)
	}
	if _, err := r.Get(ctx, key); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("what was taken is there: %v", err)
	}
	must(r.Put(ctx, key, nil))
	if removed, err := r.Remove(ctx, key); !removed || err != nil {
		t.Errorf("removed %v (%v)", removed, err)
	}
	if removed, err := r.Remove(ctx, key); removed || err != nil {
		t.Errorf("removed again %v (%v)", removed, err)
	}
	if _, err := c.Region("nothing").Put(ctx, key, nil); !errors.Is(err, client.ErrRegionUnknown) {
		t.Errorf("a region that is not there: %v", err)
	}
	if _, err := r.Put(ctx, key, make([]byte, wire.MaxRegionPair)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(wire.MaxRegionPair)) {
		t.Errorf("a pair over the limit: %v", err)
	}
}

// TestGridRegionScan reads many pages, with keys and values of all sizes.
func TestGridRegionScan(t *testing.T) {
	c := dial(t, regions(t))
	ctx, r := t.Context(), c.Region("positions")
	want := map[string][]byte{}
	for i := range 300 {
		key := fmt.Sprintf("%s-%03d", []string{"a", "b"}[i%2], i)
		if i%50 == 0 {
			key += strings.Repeat("k", 60000)
		}
		want[key] = bytes.Repeat([]byte{byte(i)}, i*17%5000)
		if _, err := r.Put(ctx, []byte(key), want[key]); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, n := range map[string]int{"": 300, "a-": 150, "b-0": 50, "c": 0} {
		seen, last := 0, map[wire.PartitionID]string{}
		err := r.Scan(ctx, []byte(prefix), func(e client.Entry) error {
			if v, there := want[string(e.Key)]; !there || !bytes.Equal(v, e.Value) || string(e.Key) <= last[e.Partition] {
				t.Errorf("prefix %q: %.20q behind %.20q has %d bytes, want %d (%v)", prefix, e.Key, last[e.Partition], len(e.Value), len(v), there)
			}
			last[e.Partition] = string(e.Key)
			seen++
			return nil
		})
		if err != nil || seen != n {
			t.Errorf("prefix %q: %d entries (%v), want %d", prefix, seen, err, n)
		}
	}
	list, err := c.Regions(ctx)
	if err != nil || len(list) != 3 || list[0].Name != "positions" || list[0].Entries != 300 || list[1].Life != 200*time.Millisecond {
		t.Errorf("regions %+v (%v)", list, err)
	}
	if err := r.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(ctx, nil, func(e client.Entry) error { return fmt.Errorf("key %.20q after a clear", e.Key) }); err != nil {
		t.Error(err)
	}
}

func TestGridRegionExpiryAndBounds(t *testing.T) {
	c := dial(t, regions(t))
	ctx, quotes, small := t.Context(), c.Region("quotes"), c.Region("small")
	for _, put := range []struct {
		key string
		opt []client.PutOption
	}{{"default", nil}, {"short", []client.PutOption{client.Expires(time.Millisecond)}}, {"stays", []client.PutOption{client.Forever()}}} {
		if _, err := quotes.Put(ctx, []byte(put.key), []byte("v"), put.opt...); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"default", "short"} {
		for err := error(nil); !errors.Is(err, client.ErrNotFound); {
			if _, err = quotes.Get(ctx, []byte(key)); err != nil && !errors.Is(err, client.ErrNotFound) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if e, err := quotes.Get(ctx, []byte("stays")); err != nil || !e.Expires.IsZero() {
		t.Errorf("what stays: expires %v (%v)", e.Expires, err)
	}
	var full error
	for i := 0; full == nil && i < 200; i++ {
		_, full = small.Put(ctx, fmt.Append(nil, i), make([]byte, 100))
	}
	if !errors.Is(full, client.ErrCapacity) || !strings.Contains(full.Error(), "region small has") {
		t.Errorf("a region of 8 KiB with 200 values of 100 bytes: %v", full)
	}
}

// TestGridRegionsKilledPrimary kills primaries while counters are raised by put if version
// and tokens are taken: no raise is lost or made twice, and each token is taken once.
func TestGridRegionsKilledPrimary(t *testing.T) {
	g := regions(t)
	c := dial(t, g)
	ctx, r := t.Context(), c.Region("positions")
	const counters, workers = 6, 4
	var (
		stop   atomic.Bool
		raised [counters]atomic.Int64
		mu     sync.Mutex
		taken  = map[string]int{}
		tokens atomic.Int64
		wg     sync.WaitGroup
	)
	for w := range workers {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				n := (w + i) % counters
				if err := raise(t, r, fmt.Appendf(nil, "counter-%d", n)); err != nil {
					t.Errorf("counter %d: %v", n, err)
					return
				}
				raised[n].Add(1)
				token := fmt.Appendf(nil, "token-%d", tokens.Add(1))
				if _, err := r.Put(ctx, token, token); err != nil {
					t.Errorf("%s: %v", token, err)
					return
				}
				for range 2 {
					value, _, err := r.Take(ctx, token)
					if errors.Is(err, client.ErrNotFound) {
						continue
					}
					if err != nil {
						t.Errorf("take of %s: %v", token, err)
						return
					}
					mu.Lock()
					taken[string(value)]++
					mu.Unlock()
				}
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
	total := int64(0)
	for n := range counters {
		e, err := r.Get(ctx, fmt.Appendf(nil, "counter-%d", n))
		if got, _ := strconv.ParseInt(string(e.Value), 10, 64); err != nil || got != raised[n].Load() {
			t.Errorf("counter %d is %s (%v), it was raised %d times", n, e.Value, err, raised[n].Load())
		}
		total += raised[n].Load()
	}
	for i := range tokens.Load() {
		if n := taken[fmt.Sprintf("token-%d", i+1)]; n != 1 {
			t.Errorf("token %d was taken %d times", i+1, n)
		}
	}
	t.Logf("%d counters raised %d times, %d tokens", counters, total, tokens.Load())
}

// raise adds one to a counter. A raise whose version is not there any more was another one's,
// so it is made again.
func raise(t *testing.T, r *client.Region, key []byte) error {
	for {
		e, err := r.Get(t.Context(), key)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		n, _ := strconv.Atoi(string(e.Value))
		_, err = r.PutIf(t.Context(), key, strconv.AppendInt(nil, int64(n)+1, 10), e.Version)
		if !errors.Is(err, client.ErrConditionFailed) {
			return err
		}
	}
}

// TestGridRegionsChange: a region that is added to the file, and a bound that changes there, are in the logs without a
// restart; a file that cannot be read changes nothing.
func TestGridRegionsChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "regions.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("regions: [{name: positions}]")
	g := testgrid.Run(t, "--", "--regions", file, "--regions-memory", "16Mi")
	c := dial(t, g)
	ctx, key := t.Context(), []byte("k")
	if _, err := c.Region("positions").Put(ctx, key, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Region("later").Put(ctx, key, nil); !errors.Is(err, client.ErrRegionUnknown) {
		t.Errorf("a region that the file does not have: %v", err)
	}
	page := func(what string, is func(*nodestatus.Regions) bool) {
		t.Helper()
		for _, at := range g.HTTP {
			for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				m, err := nodestatus.GetMemory(ctx, http.DefaultClient, strings.TrimPrefix(at, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				if m.Regions != nil && m.Regions.MemoryBytes == 16<<20 && len(m.Regions.Partitions) > 0 && is(m.Regions) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s: %s reports %+v", what, at, m.Regions)
				}
			}
		}
	}
	loaded := func(text string) func(*nodestatus.Regions) bool {
		return func(x *nodestatus.Regions) bool {
			return x.Error == "" && x.SHA256 == fmt.Sprintf("%x", sha256.Sum256([]byte(text))) &&
				!slices.ContainsFunc(x.Partitions, func(p nodestatus.PartitionRegions) bool { return p.BoundAwaited || len(p.Awaited) > 0 })
		}
	}
	page("first file", loaded("regions: [{name: positions}]"))
	write("regions: [{name: positions, bytes: 1}]")
	page("a file that is wrong", func(x *nodestatus.Regions) bool { return strings.Contains(x.Error, "unknown field") })
	const second = "regions: [{name: positions, maxBytes: 8Ki}, {name: later}]"
	write(second)
	page("second file", loaded(second))
	if _, err := c.Region("later").Put(ctx, key, nil); err != nil {
		t.Errorf("a region that every copy has: %v", err)
	}
	full := false
	for i := 0; i < 200 && !full; i++ {
		_, err := c.Region("positions").Put(ctx, []byte(strconv.Itoa(i)), make([]byte, 1000))
		full = errors.Is(err, client.ErrCapacity)
		if err != nil && !full {
			t.Fatal(err)
		}
	}
	if !full {
		t.Error("a region takes more than the bound that the file has now")
	}
	regionsTellFull(t, g, "positions", true)
	if err := c.Region("positions").Clear(ctx); err != nil {
		t.Fatal(err)
	}
	regionsTellFull(t, g, "positions", false)
}

// regionsTellFull waits until the pages of the nodes and their metrics say whether a region refuses changes.
func regionsTellFull(t *testing.T, g *testgrid.Grid, name string, want bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		memory, status, metric := 0, 0, 0
		var entries, bytes uint64
		for _, at := range g.HTTP {
			at = strings.TrimPrefix(at, "http://")
			m, err := nodestatus.GetMemory(t.Context(), http.DefaultClient, at)
			if err != nil {
				t.Fatal(err)
			}
			if m.Full || m.Refused > 0 {
				t.Fatalf("%s reports that it refuses orders (%d refused): a region is full, not the grid", at, m.Refused)
			}
			for _, u := range m.Regions.Use {
				if u.Name == name {
					memory, entries, bytes = memory+len(u.Full), entries+u.Entries, bytes+u.Bytes
				}
			}
			s, err := nodestatus.Get(t.Context(), http.DefaultClient, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range s.Partitions {
				for _, r := range p.Regions {
					if r.Name == name && r.Full {
						status++
					}
				}
			}
			text := scrape(t, at)
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "ordergrid_node_region_full{") && strings.Contains(line, `region="`+name+`"`) && strings.HasSuffix(line, " 1\n") {
					metric++
				}
			}
		}
		if (memory > 0) == want && (status > 0) == want && (metric > 0) == want && (entries > 0) == want && (bytes > 0) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("region %s: /memory has %d full partitions, /status %d, metrics %d; %d entries of %d bytes; want full: %v", name, memory, status, metric, entries, bytes, want)
		}
	}
}

// scrape reads the metrics of a node.
func scrape(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return string(text)
}
