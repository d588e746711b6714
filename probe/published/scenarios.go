package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Scenario is a named benchmark that reproduces published tables. Its two
// parameter sets differ from scenario to scenario; Params reads those of the
// order scenarios.
type Scenario struct {
	Name            string          `json:"name"`
	Seed            string          `json:"seed"`
	PublishedTables []string        `json:"published_tables"`
	Reproduces      string          `json:"reproduces"`
	Exact           json.RawMessage `json:"exact"`
	Scaled          json.RawMessage `json:"scaled_2core"`
	Prints          []string        `json:"prints"`
	Verdict         string          `json:"verdict"`
}

// Guard is one rule that a run must meet to be valid.
type Guard struct {
	Name string `json:"name"`
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Params are the parameters of a steady-rate order scenario. Zero means not given; the scaled set
// inherits from the exact one.
type Params struct {
	Servers          int    `json:"servers"`
	Replication      string `json:"replication"`
	QueueReplication string `json:"queueReplication"`
	Probes           int    `json:"probes"`
	Threads          int    `json:"threads"`
	Payload          string `json:"payload"`
	Arrival          string `json:"arrival"`
	RatesPerProbe    []int  `json:"rates_per_probe"` // orders/s
	WarmupS          int    `json:"warmup_s"`
	MeasureS         int    `json:"measure_s"`
	Repeats          int    `json:"repeats"`
	Pairs            []int  `json:"pairs"`
	Order            string `json:"order"`
}

type scenarioFile struct {
	Scenarios []Scenario `json:"scenarios"`
	Guards    []Guard    `json:"guards"`
	Pacer     string     `json:"pacer"`
	Output    string     `json:"output"`
}

func parseScenarios(b []byte) (scenarioFile, error) {
	var f scenarioFile
	err := decodeStrict(b, &f)
	return f, err
}

// Scenario returns a scenario by name.
func (d *Data) Scenario(name string) (Scenario, bool) {
	for _, s := range d.Scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// seeds maps a report key to the name that scenarios have for the report.
var seeds = map[string]string{"stac": "STAC", "gigaspaces": "GigaSpaces", "jade": "JADE", "solace": "Solace", "coherence": "Barclays"}

// ScenariosOf returns the scenarios that reproduce a table, those that can be run first.
func (d *Data) ScenariosOf(t *Table) (out []Scenario) {
	rest := []Scenario{}
	for _, s := range d.Scenarios {
		switch {
		case s.Seed != seeds[t.Report] || !slices.Contains(s.PublishedTables, t.Name):
		case s.IsRun() || s.IsSystemScenario():
			out = append(out, s)
		default:
			rest = append(rest, s)
		}
	}
	return append(out, rest...)
}

// IsRun reports whether a plan can be made of the scenario.
func (s Scenario) IsRun() bool {
	return s.IsOrderScenario() || s.IsFlowScenario() || s.Name == KneeScenario || s.Name == WriteScenario || s.Name == TimeplotScenario
}

// IsOrderScenario reports whether the scenario is a steady-rate order run, the
// kind whose parameters Params can read.
func (s Scenario) IsOrderScenario() bool {
	switch s.Name {
	case "stac-single", "stac-pair", "stac-scale":
		return true
	}
	return false
}

// decodeSets reads the parameter sets of a scenario, which has to be that of a name, "" for any; the two need not have the
// same fields.
func (s Scenario) decodeSets(name string, exact, scaled any) error {
	if name != "" && s.Name != name {
		return fmt.Errorf("scenario %q: its parameters are others than those of %s", s.Name, name)
	}
	if err := errors.Join(decodeStrict(s.Exact, exact), decodeStrict(s.Scaled, scaled)); err != nil {
		return fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	return nil
}

// eachSet reads the parameter sets of a scenario in the same way.
func eachSet[T any](s Scenario, read func(raw []byte) (T, error)) (exact, scaled T, err error) {
	exact, err1 := read(s.Exact)
	scaled, err2 := read(s.Scaled)
	if err = errors.Join(err1, err2); err != nil {
		err = fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	return exact, scaled, err
}

// Params reads both parameter sets of an order scenario. The scaled set inherits omitted fields
// from the exact one.
func (s Scenario) Params() (exact, scaled Params, err error) {
	if !s.IsOrderScenario() {
		return exact, scaled, fmt.Errorf("scenario %q is not a steady-rate order scenario", s.Name)
	}
	if err := decodeStrict(s.Exact, &exact); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: exact: %w", s.Name, err)
	}
	scaled = exact
	// Decoding into a non-empty slice would keep its backing array.
	scaled.RatesPerProbe, scaled.Pairs = nil, nil
	if err := decodeStrict(s.Scaled, &scaled); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: scaled_2core: %w", s.Name, err)
	}
	if scaled.RatesPerProbe == nil {
		scaled.RatesPerProbe = exact.RatesPerProbe
	}
	if scaled.Pairs == nil {
		scaled.Pairs = exact.Pairs
	}
	return exact, scaled, errors.Join(exact.check(s.Name+": exact"), scaled.check(s.Name+": scaled_2core"))
}

func (p Params) check(where string) error {
	switch {
	case len(p.RatesPerProbe) == 0:
		return fmt.Errorf("scenario %s: rates_per_probe is empty", where)
	case p.Threads < 1 || p.MeasureS < 1 || p.WarmupS < 0 || p.Repeats < 1:
		return fmt.Errorf("scenario %s: threads %d, measure_s %d, repeats %d must be at least 1 and warmup_s %d at least 0",
			where, p.Threads, p.MeasureS, p.Repeats, p.WarmupS)
	}
	for _, list := range [][]int{p.RatesPerProbe, p.Pairs} {
		last := 0
		for _, v := range list {
			if v <= last {
				return fmt.Errorf("scenario %s: %v must be positive and rising", where, list)
			}
			last = v
		}
	}
	return nil
}

func (d *Data) checkScenarios() error {
	seen := map[string]bool{}
	for _, s := range d.Scenarios {
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("scenarios.json: scenario %q is unnamed or repeated", s.Name)
		}
		seen[s.Name] = true
		if s.Name == KneeScenario {
			if _, _, err := s.Knee(); err != nil {
				return fmt.Errorf("scenarios.json: %w", err)
			}
		}
		if s.IsFlowScenario() {
			if _, _, err := s.Flow(); err != nil {
				return fmt.Errorf("scenarios.json: %w", err)
			}
		}
		if s.Name == WriteScenario {
			if err := d.checkWrite(s); err != nil {
				return err
			}
		}
		if s.Name == TimeplotScenario {
			if err := d.checkTimeplot(s); err != nil {
				return err
			}
		}
		if err := d.checkSystem(s); err != nil {
			return fmt.Errorf("scenarios.json: %w", err)
		}
		if !s.IsOrderScenario() {
			continue
		}
		if _, _, err := s.Params(); err != nil {
			return fmt.Errorf("scenarios.json: %w", err)
		}
		for _, name := range s.PublishedTables {
			if _, ok := d.Table(strings.ToLower(s.Seed), name); !ok {
				return fmt.Errorf("scenarios.json: scenario %q: no published table %q in report %q", s.Name, name, s.Seed)
			}
		}
	}
	return nil
}
