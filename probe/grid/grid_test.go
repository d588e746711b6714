package grid_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// TestGridThatMatches: published orders have no place in books; a probe says so before it sends one, and does not wait.
func TestGridThatMatches(t *testing.T) {
	g, err := grid.Dial(t.Context(), grid.Config{Endpoints: testgrid.Matching(t).Endpoints, RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close() //nolint:errcheck // a connection of a test
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = g.Ready(ctx, scenario.Plan{Scenario: "stac-pair", Shards: 1, Replicas: 2, Probes: 1})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "this one matches; allowed: spec.execution.mode Store") {
		t.Errorf("got %v, want that the grid matches", err)
	}
}
