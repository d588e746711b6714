package flows

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestPublishedFlowsEveryByte runs the engine on the five flows. Its records, written in
// the words of the benchmark, have the published hashes. Without the race detector, under
// which it takes minutes.
func TestPublishedFlowsEveryByte(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("runs without the race detector")
	}
	for _, p := range Published {
		t.Run(p.Name, func(t *testing.T) {
			h := sha256.New()
			flow := p.Messages(1_000_000)
			r, err := Run(flow, h)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", h.Sum(nil)); got != p.Sum {
				t.Errorf("SHA-256 %s, published %s; %d reports", got, p.Sum, r.Lines)
			}
			t.Logf("%d messages, %d reports, %d fills, %d orders at most", len(flow), r.Lines, r.Fills, r.Most)
		})
	}
}
