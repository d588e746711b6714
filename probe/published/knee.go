package published

import (
	"errors"
	"fmt"
	"strings"
)

// KneeScenario looks for the highest rate under a latency objective. Everything but the rates is as
// in stac-pair.
const KneeScenario = "stac-knee"

// Knee are the parameters of the search. Zero means not given.
type Knee struct {
	SLO        string `json:"slo"`         // such as mean<=1000us
	Search     string `json:"search"`      // in words
	GoalOps    int    `json:"goal_ops"`    // orders/s in total that pairs are counted for
	SearchFrom int    `json:"search_from"` // orders/s of a pair
	To         int    `json:"to"`
	MeasureS   int    `json:"measure_s"`
}

// Knee reads both parameter sets; the scaled set inherits from the exact one.
func (s Scenario) Knee() (exact, scaled Knee, err error) {
	if s.Name != KneeScenario {
		return exact, scaled, fmt.Errorf("scenario %q does not look for a knee", s.Name)
	}
	if err := decodeStrict(s.Exact, &exact); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: exact: %w", s.Name, err)
	}
	scaled = exact
	if err := decodeStrict(s.Scaled, &scaled); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: scaled_2core: %w", s.Name, err)
	}
	if exact.SLO == "" || exact.GoalOps < 1 || scaled.SearchFrom < 1 || scaled.To <= scaled.SearchFrom || scaled.MeasureS < 1 || !strings.Contains(exact.Search, "bisection, 3 confirmations") {
		return exact, scaled, errors.New("stac-knee: needs slo, goal_ops, a bisection with 3 confirmations, search_from below to, and measure_s")
	}
	return exact, scaled, nil
}
