package client_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// computes starts a grid with regions and the function add, once as it is and once without
// the fuel that it takes.
func computes(t *testing.T) *testgrid.Grid {
	dir := t.TempDir()
	file, module := filepath.Join(dir, "regions.yaml"), filepath.Join(dir, "add.wasm")
	if err := errors.Join(os.WriteFile(file, []byte(regionsFile), 0o600), os.WriteFile(module, examples.Add, 0o600)); err != nil {
		t.Fatal(err)
	}
	pinned := fmt.Sprintf("%s:sha256=%x", module, sha256.Sum256(examples.Add))
	return testgrid.Run(t, "--", "--regions", file, "--function-compute", "add="+pinned, "--function-compute", "starved="+pinned+",fuel=30")
}

func longs(vs ...int64) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func long(b []byte) int64 {
	if len(b) != 8 {
		return -1
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func TestGridInvoke(t *testing.T) {
	c := dial(t, computes(t))
	ctx, key := t.Context(), []byte("ACC-1/IBM")
	for i, delta := range []int64{100, -30} {
		want := []int64{100, 70}[i]
		reply, receipt, err := c.Invoke(ctx, "positions", "add", key, longs(delta))
		if err != nil || long(reply) != want {
			t.Fatalf("add %d: %x (%v), want %d", delta, reply, err, want)
		}
		if e, err := c.Region("positions").Get(ctx, key); err != nil || long(e.Value) != want || e.Version != receipt.Seq {
			t.Fatalf("the value is %x of version %d (%v), want %d of version %d", e.Value, e.Version, err, want, receipt.Seq)
		}
	}
	for name, x := range map[string]struct {
		region, function string
		args             []byte
		is               error
		code             int32
		text             string
	}{
		"own error":       {"positions", "add", longs(-1, 70), client.ErrFunctionFailed, 3, "the sum would be less than the least"},
		"out of fuel":     {"positions", "starved", longs(1), client.ErrFunctionFailed, 0, "function: out of fuel"},
		"no function":     {"positions", "subtract", longs(1), client.ErrFunctionUnknown, 0, ""},
		"no region":       {"nothing", "add", longs(1), client.ErrRegionUnknown, 0, ""},
		"arguments wrong": {"positions", "add", []byte("1"), client.ErrFunctionFailed, 1, "the value and the arguments have 8 bytes each"},
	} {
		_, _, err := c.Invoke(ctx, x.region, x.function, key, x.args)
		var failed *client.FunctionError
		if !errors.Is(err, x.is) || errors.As(err, &failed) != (x.text != "") || failed != nil && (failed.Code != x.code || failed.Text != x.text) {
			t.Errorf("%s: %v, want %v with code %d and text %q", name, err, x.is, x.code, x.text)
		}
	}
	large := []byte("large")
	if _, err := c.Region("positions").Put(ctx, large, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Invoke(ctx, "positions", "add", large, make([]byte, 65000)); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("a call that does not fit the function's area: %v, want %v", err, client.ErrTooLarge)
	}
	if e, err := c.Region("positions").Get(ctx, key); err != nil || long(e.Value) != 70 {
		t.Errorf("calls that failed left %x (%v), want 70", e.Value, err)
	}
}

// TestGridInvokeKilledPrimary kills primaries while counters are raised by calls: none is lost
// or made twice, and no two calls are answered with the same sum.
func TestGridInvokeKilledPrimary(t *testing.T) {
	g := computes(t)
	c := dial(t, g)
	ctx := t.Context()
	const counters, workers = 6, 4
	var (
		stop    atomic.Bool
		raised  [counters]atomic.Int64
		replies sync.Map
		wg      sync.WaitGroup
	)
	for w := range workers {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				n := (w + i) % counters
				reply, _, err := c.Invoke(ctx, "positions", "add", fmt.Appendf(nil, "counter-%d", n), longs(1))
				if err != nil {
					t.Errorf("counter %d: %v", n, err)
					return
				}
				raised[n].Add(1)
				if _, twice := replies.LoadOrStore([2]int64{int64(n), long(reply)}, true); twice {
					t.Errorf("counter %d: two calls are answered with %d", n, long(reply))
				}
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
	for n := range counters {
		e, err := c.Region("positions").Get(ctx, fmt.Appendf(nil, "counter-%d", n))
		if want := raised[n].Load(); err != nil || long(e.Value) != want || want == 0 {
			t.Errorf("counter %d is %d (%v), raised %d times", n, long(e.Value), err, want)
		}
	}
	t.Logf("%d calls of counter 0", raised[0].Load())
}
