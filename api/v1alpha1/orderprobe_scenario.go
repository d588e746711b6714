package v1alpha1

import "slices"

// Scenario names a benchmark: stac-…, gs-…, jade-…, sol-… and bar-… of published reports, flow-… of order flow beyond them,
// match-flash of a public benchmark, match-auction of auctions, suite of all of these but flow-replay.
//
// +kubebuilder:validation:Enum=stac-single;stac-pair;stac-scale;stac-knee;stac-timeplot;flow-hawkes;flow-replay;flow-day;gs-write;stac-durability;bar-load;bar-wan;sol-fanout;sol-filter;sol-large;bar-query;bar-types;bar-client;bar-update;bar-drop;bar-failover;bar-projection;bar-topologies;jade-thin;jade-skidemo;jade-tpca;jade-async;jade-tradeem;match-flash;match-auction;jade-sessions;suite
type Scenario string

const (
	// ScenarioSingle is one server without replication.
	ScenarioSingle Scenario = "stac-single"
	// ScenarioPair is two servers, active/active, every order replicated before it is acknowledged.
	ScenarioPair Scenario = "stac-pair"
	// ScenarioScale is one, two and three independent pairs at an equal rate per probe.
	ScenarioScale Scenario = "stac-scale"
	// ScenarioHawkes is bursts against a steady rate with the same mean.
	ScenarioHawkes Scenario = "flow-hawkes"
	// ScenarioReplay plays a recording at several speeds.
	ScenarioReplay Scenario = "flow-replay"
	// ScenarioDay is a trading day, compressed.
	ScenarioDay Scenario = "flow-day"
	// ScenarioKnee looks for the highest rate of a pair under a latency objective, by bisection.
	ScenarioKnee Scenario = "stac-knee"
	// ScenarioWrite is one writer with one order in flight: eight fields or none, with replication or without.
	ScenarioWrite Scenario = "gs-write"
	// ScenarioSuite is every scenario that needs no recording, one after the other, and one page of them.
	ScenarioSuite Scenario = "suite"
)

// GridScenarios are those that measure the OrderGrid of spec.gridRef. The pod of any other one starts grids of its own.
func GridScenarios() []Scenario {
	return []Scenario{ScenarioSingle, ScenarioPair, ScenarioScale, ScenarioKnee, ScenarioHawkes, ScenarioReplay, ScenarioDay, ScenarioWrite}
}

// OwnGrids reports whether the pod of the scenario starts the grids that it measures.
func (s Scenario) OwnGrids() bool { return !slices.Contains(GridScenarios(), s) }
