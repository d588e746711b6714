package published

import "fmt"

// Flow are the parameters of a scenario about order flow that goes beyond the published tests. Zero
// means not given.
type Flow struct {
	// Kernel, Mix and CancelLifetime describe the generation by package flow.
	Kernel         [][2]float64       `json:"kernel"`
	Mix            map[string]float64 `json:"mix"`
	CancelLifetime string             `json:"cancel_lifetime"`
	Rates          []int              `json:"rates"` // orders/s of each probe
	MeasureS       int                `json:"measure_s"`
	Speed          []int              `json:"speed"`   // of a replay
	Minutes        int                `json:"minutes"` // of a trading day
	Seconds        int                `json:"seconds"` // that the day is compressed to
}

// IsFlowScenario reports whether the scenario is about order flow, the kind
// whose parameters Flow can read. Everything else is as in stac-pair.
func (s Scenario) IsFlowScenario() bool {
	switch s.Name {
	case "flow-hawkes", "flow-replay", "flow-day":
		return true
	}
	return false
}

// Flow reads both parameter sets of a flow scenario.
func (s Scenario) Flow() (exact, scaled Flow, err error) {
	if !s.IsFlowScenario() {
		return exact, scaled, fmt.Errorf("scenario %q is not about order flow", s.Name)
	}
	if err := decodeStrict(s.Exact, &exact); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: exact: %w", s.Name, err)
	}
	if err := decodeStrict(s.Scaled, &scaled); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: scaled_2core: %w", s.Name, err)
	}
	return exact, scaled, nil
}
