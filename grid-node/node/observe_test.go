package node

import (
	"regexp"
	"strconv"
	"testing"
)

// TestSoloOrderTakesTime: where no other copy is waited for, an order is committed in the
// wake-up that brought it, and the loop's clock has not moved. Its latency is nevertheless
// the time of processing, not zero.
func TestSoloOrderTakesTime(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	submit(t, g.client(), "SOLO", 100)
	_, page := g.nodes[0].get("/metrics")
	sum := regexp.MustCompile(`(?m)^ordergrid_node_order_latency_seconds_sum (\S+)$`).FindStringSubmatch(page)
	if sum == nil {
		t.Fatalf("no sum of order latencies in\n%s", page)
	}
	if s, err := strconv.ParseFloat(sum[1], 64); err != nil || s < 100*100e-9 {
		t.Errorf("100 orders took %s s in all, want at least 100 ns each (%v)", sum[1], err)
	}
}
