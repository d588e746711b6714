package client_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestGridFull fills a grid of real processes to its memory limit from several
// clients at once. Every order is either acknowledged or refused for lack of
// memory with the numbers; what was acknowledged can be read; both copies stay in
// sync; and no process ever exceeds its memory limit.
func TestGridFull(t *testing.T) {
	const limit = 128 << 20 // of the process
	g := testgrid.Run(t, "--memory-limit", "128Mi")
	c := dial(t, g)
	waitForRedundancy(t, c)
	before, err := g.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu      sync.Mutex
		acked   = map[string]client.Receipt{}
		refused int
		full    *client.CapacityError
		wg      sync.WaitGroup
	)
	for w := range 8 {
		own := dial(t, g)
		wg.Go(func() {
			for i, no := 0, 0; no < 50; i++ { // the two partitions share the limit: neither takes more
				id := fmt.Sprintf("FULL-%d-%d", w, i)
				r, err := own.Submit(t.Context(), testgrid.Order(id, 1100))
				mu.Lock()
				switch {
				case err == nil:
					acked[id] = r
				case errors.Is(err, client.ErrCapacity) && errors.As(err, &full):
					no, refused = no+1, refused+1
				default:
					t.Errorf("order %s: %v", id, err)
					no = 50
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if full.Used < full.Limit*9/10 || full.Used > full.Limit || full.Limit >= limit || full.Limit < limit/2 {
		t.Errorf("refused with %d of %d bytes used; the process has %d", full.Used, full.Limit, limit)
	}
	if least := full.Limit * 3 / 8 / 1200; uint64(len(acked)) < least {
		t.Errorf("%d orders were taken, want at least %d", len(acked), least)
	}
	for id, r := range acked {
		if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != id {
			t.Fatalf("order %s at %s: %q, %v", id, r.ID(), o.ClOrdID, err)
		}
	}
	checkLog(t, c, acked)
	waitForRedundancy(t, c)
	after, err := g.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range after {
		peak := peakRSS(t, n.PID)
		t.Logf("%s: %d MiB resident at most, of %d", n.Pod, peak>>20, limit>>20)
		if n.PID != before[i].PID || peak > limit {
			t.Errorf("%s: process %d was %d; it used up to %d bytes of %d", n.Pod, n.PID, before[i].PID, peak, limit)
		}
	}
	t.Logf("%d orders acknowledged, %d refused: %v", len(acked), refused, full)
}

// peakRSS is the most a process has ever had in memory, in bytes.
func peakRSS(t *testing.T, pid int) (bytes int64) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &bytes); err != nil {
				t.Fatal(err)
			}
			return bytes << 10
		}
	}
	t.Skip("the kernel does not tell a process's peak (VmHWM in /proc/PID/status): run it on Linux")
	return 0
}
