package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/proc"
)

func TestMemoryPlan(t *testing.T) {
	for _, limit := range []int64{64 << 20, 85 << 20, 1 << 30, 16 << 30} {
		for _, partitions := range []int{1, 2, 16} {
			p := planMemory(limit, partitions)
			if p.orders+p.heap != limit {
				t.Errorf("limit %d: orders %d and heap %d are not the limit", limit, p.orders, p.heap)
			}
			if 2*p.inFlight > p.orders/32 { // the reserve of a copy; see store.Append
				t.Errorf("limit %d: %d bytes in flight do not fit a copy's reserve of %d twice", limit, p.inFlight, p.orders/32)
			}
			if p.clients < p.buffers/4 || p.clients+2*p.inFlight > p.buffers {
				t.Errorf("limit %d: %d bytes for clients of %d for connections, twice %d in flight", limit, p.clients, p.buffers, p.inFlight)
			}
			if p.buffers+int64(partitions)*p.ahead > p.heap*3/4 {
				t.Errorf("limit %d, %d partitions: buffers %d and memory ahead %d leave too little of %d", limit, partitions, p.buffers, p.ahead, p.heap)
			}
		}
	}
}

// TestCopyWithLessMemory: the smallest copy counts. The primary rejects orders in time,
// names the full copy, and the copy stays in sync; it is not dropped, relearning
// everything, repeatedly.
func TestCopyWithLessMemory(t *testing.T) {
	g := newGrid(t, 2, 1)
	var said proc.Tail
	g.base.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g.start(0)
	g.base.MemoryLimit = 64 << 20
	g.start(1)
	g.ready()
	c := g.client()
	var (
		taken atomic.Int64
		first atomic.Pointer[client.CapacityError]
		wg    sync.WaitGroup
	)
	for w := range 64 {
		wg.Go(func() {
			for i := 0; first.Load() == nil && taken.Load() < 200_000; i++ {
				_, err := c.Submit(t.Context(), fix(fmt.Sprintf("SMALL-%d-%d", w, i)))
				var full *client.CapacityError
				switch {
				case err == nil:
					taken.Add(1)
				case errors.As(err, &full):
					first.CompareAndSwap(nil, full)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	full := first.Load()
	if full == nil {
		t.Fatalf("%d orders were taken, the copy has 48 MiB for them", taken.Load())
	}
	if taken.Load() < 100_000 || !strings.Contains(full.Error(), "the copy on g-s0-1 is at its memory limit") {
		t.Errorf("after %d orders: %v", taken.Load(), full)
	}
	g.ready()
	if log := said.String(); strings.Contains(log, "that the primary can") { // a silent member may be dropped on a busy machine
		t.Errorf("a copy was discarded for its memory:\n%s", log)
	}
}
