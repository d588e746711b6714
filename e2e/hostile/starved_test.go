package hostile

import (
	"net/http"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/histogram"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// heldUp is how long a loop of a grid may be held up before a machine counts as starved: half of the lease that members have.
const heldUp = 100 * time.Millisecond

// ticks of the loops of a grid, by node.
func ticks(t *testing.T, g *testgrid.Grid) (list []*histogram.Native) {
	t.Helper()
	for _, addr := range pages(g) {
		page, err := scrape.Get(t.Context(), http.DefaultClient, addr)
		if err != nil {
			t.Fatalf("scrape: %v", err)
		}
		h, err := page.Native("ordergrid_node_loop_tick_interval_seconds")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	return list
}

// control returns the longest time that a loop of a grid is held up from now until the function is called. Nothing is done
// to that grid meanwhile, so the machine is what held it up.
func control(t *testing.T, g *testgrid.Grid) (longest func() time.Duration) {
	t.Helper()
	before := ticks(t, g)
	return func() (most time.Duration) {
		for i, h := range ticks(t, g) {
			h.Sub(before[i])
			most = max(most, time.Duration(h.Quantile(1)*float64(time.Second)))
		}
		return most
	}
}

// inSync fails a test if a copy fell out of sync, so that the sum of epochs rose: unless that is expected of clients that keep a
// grid busy, or the machine had no time for the control either.
func inSync(t *testing.T, before, now float64, busy bool, control time.Duration) {
	t.Helper()
	switch {
	case now == before:
	case busy:
		t.Logf("sum of epochs %v, was %v: a copy fell out of sync", now, before)
	case control >= heldUp:
		t.Logf("INVALID: sum of epochs %v, was %v; a loop of a grid that nothing was done to was held up for %v: the machine is starved", now, before, control)
	default:
		t.Errorf("sum of epochs %v, was %v: a copy fell out of sync; a loop of a grid that nothing was done to was held up for %v", now, before, control)
	}
}
