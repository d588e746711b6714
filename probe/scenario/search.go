package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/published"
)

// Objective is a limit on create-to-end latency.
type Objective struct {
	Statistic string `json:"statistic"` // mean or p99
	LimitUs   int64  `json:"limitUs"`
}

func (o Objective) String() string { return fmt.Sprintf("%s <= %d us", o.Statistic, o.LimitUs) }

// Flag is the objective in the form of a flag.
func (o Objective) Flag() string { return fmt.Sprintf("%s<=%dus", o.Statistic, o.LimitUs) }

// MaxLimit of an objective.
const MaxLimit = time.Minute

// ParseObjective reads the result of String and similar forms: "mean<=1ms", "p99 <= 500us".
func ParseObjective(s string) (o Objective, err error) {
	statistic, limit, ok := strings.Cut(s, "<=")
	d, err := time.ParseDuration(strings.ReplaceAll(strings.TrimSpace(limit), " ", ""))
	o = Objective{strings.TrimSpace(statistic), d.Microseconds()}
	if !ok || err != nil || o.check() != nil {
		return o, fmt.Errorf("objective %.60q: must be mean or p99, then <= and 1us to %v, such as mean<=1ms", s, MaxLimit)
	}
	return o, nil
}

func (o Objective) check() error {
	if o.Statistic != "mean" && o.Statistic != "p99" || o.LimitUs < 1 || o.LimitUs > MaxLimit.Microseconds() {
		return fmt.Errorf("objective %s of %d us: must be mean or p99, of 1us to %v", o.Statistic, o.LimitUs, MaxLimit)
	}
	return nil
}

// Search looks for the highest rate at which an objective is met, by bisection: it assumes that a
// rate above one that misses the objective misses it too. Rates are orders/s of each probe.
type Search struct {
	Objective Objective `json:"objective"`
	From      int       `json:"from"`
	To        int       `json:"to"`
	// Confirmations is how often the result has to meet the objective.
	Confirmations int `json:"confirmations"`
	MaxSteps      int `json:"maxSteps"`
	// Goal is the total rate for which pairs are counted, orders/s.
	Goal int `json:"goal"`

	differs string // the published objective, if this is another
}

// Limits of a search.
const (
	maxSearchSteps = 32
	// retries of a rate at which the machine disturbed the run.
	invalidRuns = 2
	// searchDigits: the rates left and right of the knee differ by at most this share of it, or
	// searchStep.
	searchShare = 0.05
	searchStep  = 10
)

// Tried is one step of a search.
type Tried struct {
	Rate  int
	Valid bool // the guards were met, or the grid did not keep up
	Meets bool
}

// Bounds are the highest rate that meets the objective, and the lowest above it
// that does not; 0 if there is none. meets counts the runs at lo.
func (s *Search) Bounds(tried []Tried) (lo, hi, meets int) {
	met, missed, disturbed := map[int]int{}, map[int]bool{}, map[int]int{}
	for _, t := range tried {
		switch {
		case !t.Valid:
			disturbed[t.Rate]++
		case t.Meets:
			met[t.Rate]++
		default:
			missed[t.Rate] = true
		}
	}
	for rate, n := range disturbed {
		// It is unknown, and so is everything above.
		if n >= invalidRuns && met[rate] == 0 {
			missed[rate] = true
		}
	}
	for rate := range missed {
		if hi == 0 || rate < hi {
			hi = rate
		}
	}
	for rate := range met {
		if !missed[rate] && rate > lo && (hi == 0 || rate < hi) {
			lo = rate
		}
	}
	return lo, hi, met[lo]
}

// Next is the rate to try next; false when the search has ended.
func (s *Search) Next(tried []Tried) (rate int, more bool) {
	if len(tried) == 0 {
		return s.From, true
	}
	if len(tried) >= s.MaxSteps {
		return 0, false
	}
	lo, hi, meets := s.Bounds(tried)
	last := tried[len(tried)-1]
	switch {
	case !last.Valid && last.Rate != hi:
		return last.Rate, true // once more
	case lo == 0:
		return 0, false // not even the lowest rate
	case hi == 0 && lo < s.To:
		return min(2*lo, s.To), true
	case hi > 0 && hi-lo > max(searchStep, int(searchShare*float64(lo))):
		return lo + max(searchStep, (hi-lo)/2/searchStep*searchStep), true
	case meets < s.Confirmations:
		return lo, true
	}
	return 0, false
}

// search makes the plan's search from the scenario's parameters and the options.
func (p *Plan) search(s published.Scenario, o Options) error {
	if s.Name != published.KneeScenario {
		if o.Search != nil {
			return fmt.Errorf("an objective, a range of rates and a goal go with scenario %s only", published.KneeScenario)
		}
		return nil
	}
	if len(o.Rates) > 0 || o.Repeats > 0 {
		return errors.New("rates and repeats cannot be set: the search chooses them; set its range")
	}
	exact, scaled, err := s.Knee()
	if err != nil {
		return err
	}
	objective, err := ParseObjective(exact.SLO)
	if err != nil {
		return err
	}
	// The published set has no range: the same begin, and up to twice what the report's pair
	// reached.
	q := Search{Objective: objective, From: scaled.SearchFrom / 2, To: 12_000, Confirmations: 3, MaxSteps: maxSearchSteps, Goal: exact.GoalOps}
	if p.Mode != Exact {
		q.To, q.MaxSteps = scaled.To/2, 24
	}
	if p.Mode == Quick {
		q.Confirmations, q.MaxSteps = 1, 12
	}
	if err := q.override(o.Search); err != nil {
		return err
	}
	if q.Objective != objective {
		q.differs = objective.String()
	}
	p.Search = &q
	return nil
}

func (s *Search) override(o *Search) error {
	if o != nil {
		if o.Objective.Statistic != "" {
			s.Objective.Statistic = o.Objective.Statistic
		}
		if o.Objective.LimitUs != 0 {
			s.Objective.LimitUs = o.Objective.LimitUs
		}
		s.From, s.To, s.Goal = override(o.From, s.From), override(o.To, s.To), override(o.Goal, s.Goal)
	}
	if s.From < 1 || s.To > MaxRate || s.From >= s.To {
		return fmt.Errorf("search from %d to %d orders/s per probe: must be 1 to %d, rising", s.From, s.To, MaxRate)
	}
	if s.Goal < 1 || s.Goal > MaxRate*MaxProbes {
		return fmt.Errorf("goal %d orders/s: must be 1 to %d", s.Goal, MaxRate*MaxProbes)
	}
	return s.Objective.check()
}

// Extend adds the next step of the search to the plan; false when it has ended.
func (p *Plan) Extend(tried []Tried) bool {
	if p.Search == nil {
		return false
	}
	rate, more := p.Search.Next(tried)
	if !more {
		return false
	}
	run := 1
	for _, s := range p.Steps {
		if s.Rate == rate {
			run++
		}
	}
	p.Steps = append(p.Steps[:len(p.Steps):len(p.Steps)], Step{ID: len(p.Steps), Rate: rate, Probes: p.Probes, Run: run})
	return true
}

// MostOrders is how many orders one probe creates in the largest possible step.
func (p Plan) MostOrders() (most int64) {
	for _, s := range p.Steps {
		most = max(most, p.Orders(s))
	}
	if p.Search != nil {
		most = max(most, p.Orders(Step{Rate: p.Search.To}))
	}
	return most
}

// Processes is how many pods execute the plan. A search decides after each step, for all probes at
// once.
func (p Plan) Processes() int {
	if p.Search != nil {
		return 1
	}
	return p.Probes
}

// ProbesOf are the probes of one of the processes.
func (p Plan) ProbesOf(process int) (probes []int) {
	if p.Search == nil {
		return []int{process}
	}
	for i := range p.Probes {
		probes = append(probes, i)
	}
	return probes
}

// kneeParams are those of stac-pair except the duration of a step. The published set has none; 30 s
// are measured.
func kneeParams(s published.Scenario, exact, scaled *published.Params) error {
	_, q, err := s.Knee()
	if err != nil {
		return err
	}
	exact.Repeats, scaled.Repeats = 1, 1
	exact.WarmupS, exact.MeasureS = 5, 30
	scaled.WarmupS, scaled.MeasureS = 1, q.MeasureS
	return nil
}
