package failoverdrill

import (
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// TestSuitesFitAPair: an ordinary pair meets the requirements of every suite.
func TestSuitesFitAPair(t *testing.T) {
	grid := &api.OrderGrid{Spec: api.OrderGridSpec{Shards: 1, Partitions: 8, Replicas: 2, MinInSync: 1}}
	for _, s := range plan.Suites() {
		grid.Spec.Execution = nil
		spec, err := plan.ResolveSuite(&api.FailoverDrillSpec{Suite: s.Name, Safety: api.DrillSafety{LastCopy: api.LastCopyKeep, MaxShards: 1}})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := plan.Steps(spec, plan.ShapeOf(grid), 1)
		if err != nil {
			t.Fatal(err)
		}
		if s.Matches {
			var c preflight
			if c.checkFaults(&api.FailoverDrill{Spec: *spec}, grid, steps); len(c.problems) != 1 || c.reason() != reasonGridMismatch {
				t.Errorf("%s of a grid that stores: %s", s.Name, c.message())
			}
			grid.Spec.Execution = &api.ExecutionSpec{Mode: api.ExecutionMatch}
		}
		var c preflight
		c.checkFaults(&api.FailoverDrill{Spec: *spec}, grid, steps)
		if len(c.problems) > 0 {
			t.Errorf("%s: %s", s.Name, c.message())
		}
	}
}
