package orderprobe

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// planOf is the plan that the probe's pods derive from the same settings. For a replay it is the largest possible: only
// the pods see the recording. grid, which may be nil, has how many copies gs-write measures.
// A pod that starts grids of its own has none: its plan has one process and no step.
func planOf(data *published.Data, probe *api.OrderProbe, grid *api.OrderGrid) (scenario.Plan, error) {
	if probe.Spec.Scenario.OwnGrids() {
		return scenario.Plan{Scenario: string(probe.Spec.Scenario), Probes: 1}, nil
	}
	o := scenario.Options{Arrival: arrivalOf(probe), Orders: ordersOf(probe), Speeds: speedsOf(probe)}
	switch probe.Spec.Parameters {
	case api.ParametersExact:
		o.Mode = scenario.Exact
	case api.ParametersQuick:
		o.Mode = scenario.Quick
	default:
		o.Mode = scenario.Scaled
	}
	if over := probe.Spec.Overrides; over != nil {
		for _, r := range over.RatesPerProbe {
			o.Rates = append(o.Rates, int(r))
		}
		if over.Warmup != nil {
			o.Warmup = &over.Warmup.Duration
		}
		if over.Measure != nil {
			o.Measure = over.Measure.Duration
		}
		o.Search = search(over.Search)
		o.Repeats, o.Threads, o.Probes = number(over.Repeats), number(over.Threads), number(over.Probes)
	}
	if probe.Spec.Scenario == api.ScenarioWrite && grid != nil && slices.Contains(scenario.WriteCopies, int(grid.Spec.Replicas)) {
		o.Replicas = int(grid.Spec.Replicas)
	}
	return scenario.New(data, string(probe.Spec.Scenario), o)
}

// search is nil when it is not changed.
func search(s *api.ProbeSearch) *scenario.Search {
	if s == nil {
		return nil
	}
	out := &scenario.Search{From: number(s.From), To: number(s.To), Goal: number(s.Goal)}
	out.Objective.Statistic = s.Statistic
	if s.Limit != nil {
		out.Objective.LimitUs = s.Limit.Microseconds()
	}
	return out
}

func number(p *int32) int {
	if p == nil {
		return 0
	}
	return int(*p)
}

// orderBytes is the memory of an order of the scenarios in a grid node, at most: the FIX message, header and indexes.
const orderBytes = fixorder.Size + store.PerOrder

// mismatch is why the plan cannot be run on the grid; empty if it can.
func mismatch(plan scenario.Plan, grid *api.OrderGrid) (reason, message string) {
	if len(plan.Grids()) > 1 { // gs-write accepts either of its grids, and this is neither
		return reasonGridMismatch, fmt.Sprintf("scenario %s needs an OrderGrid with replicas 1 (without replication) or 2; %s has %d; name another one, or create it",
			plan.Scenario, grid.Name, grid.Spec.Replicas)
	}
	if int(grid.Spec.Shards) < plan.Shards || int(grid.Spec.Replicas) != plan.Replicas {
		return reasonGridMismatch, fmt.Sprintf("scenario %s needs an OrderGrid with at least %d shards and exactly %d replicas; %s has %d and %d; name another one, or create it",
			plan.Scenario, plan.Shards, plan.Replicas, grid.Name, grid.Spec.Shards, grid.Spec.Replicas)
	}
	// Every node holds a copy of each of its shard's partitions.
	need := plan.OrdersPerPartition() * int64(plan.Replicas) * orderBytes
	if have := grid.Spec.Memory.Value(); need > have {
		const mib = 1 << 20
		return reasonGridTooSmall, fmt.Sprintf("the plan creates up to %d orders a partition, which take about %s in each grid node; OrderGrid %s has spec.memory %s; raise it, or measure fewer rates, shorter",
			plan.OrdersPerPartition(), resource.NewQuantity((need/mib+1)*mib, resource.BinarySI), grid.Name, grid.Spec.Memory.String())
	}
	return "", ""
}
