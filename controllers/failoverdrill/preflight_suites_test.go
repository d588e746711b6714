package failoverdrill

import (
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/suites"
)

// TestSuitesFitAPair: an ordinary pair meets the requirements of every suite.
func TestSuitesFitAPair(t *testing.T) {
	grid := &api.OrderGrid{Spec: api.OrderGridSpec{Shards: 1, Partitions: 8, Replicas: 2, MinInSync: 1}}
	for _, s := range suites.All() {
		spec, err := suites.Resolve(&api.FailoverDrillSpec{Suite: s.Name, Safety: api.DrillSafety{LastCopy: api.LastCopyKeep, MaxShards: 1}})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := plan.Steps(spec, plan.ShapeOf(grid), 1)
		if err != nil {
			t.Fatal(err)
		}
		var c preflight
		c.checkFaults(&api.FailoverDrill{Spec: *spec}, grid, steps)
		if len(c.problems) > 0 {
			t.Errorf("%s: %s", s.Name, c.message())
		}
	}
}
