package cli

import (
	"fmt"

	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// fits returns an error if the nodes of --dev need more memory than this machine has.
func (f *runFlags) fits(plan scenario.Plan) error {
	available := host.AvailableMiB()
	for _, p := range plan.Grids() {
		nodes := int64(p.Shards * p.Replicas)
		if need := nodes * f.nodeMemory(p); available > 0 && need > available {
			return fmt.Errorf("scenario %s (%s) needs %d nodes of %d MiB, and this machine has %d MiB available: use --scaled or --quick, or --endpoint with a grid on other machines",
				plan.Scenario, plan.Mode, nodes, f.nodeMemory(p), available)
		}
	}
	return nil
}
