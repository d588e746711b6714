package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
	"github.com/ordergrid/ordergrid/probe/system"
)

// around is what a scenario takes besides its steps: starting the grid, reading the logs back. It is generous.
const around = 15 * time.Second

// size is a set of parameters that a scenario may be run with.
type size struct {
	mode   scenario.Mode
	length time.Duration
	plan   *scenario.Plan // nil of a scenario about a system
}

// sizes are those of a scenario, the longest first.
func (s *sitting) sizes(name string) (out []size, err error) {
	f := s.f.plan // a copy: the modes are chosen here
	for _, m := range []struct {
		allowed bool
		mode    scenario.Mode
	}{{f.exact, scenario.Exact}, {!f.quick, scenario.Scaled}, {true, scenario.Quick}} {
		if !m.allowed || s.f.budget == 0 && len(out) > 0 {
			continue
		}
		one := size{mode: m.mode}
		if slices.Contains(published.SystemScenarios(), name) {
			one.length, err = system.Length(s.d, name, m.mode)
		} else {
			f.exact, f.scaled, f.quick = m.mode == scenario.Exact, m.mode == scenario.Scaled, m.mode == scenario.Quick
			var p scenario.Plan
			p, err = f.plan(s.d, name)
			one.plan, one.length = &p, p.Length()
		}
		if err != nil {
			return nil, err
		}
		one.length += around
		out = append(out, one)
	}
	return out, nil
}

// choose returns the longest size that leaves time for the shortest of those later.
func (s *sitting) choose(sizes []size, later []string) (size, bool) {
	if s.f.budget == 0 {
		return sizes[0], true
	}
	left := s.f.budget - time.Since(s.began)
	reserved := time.Duration(0)
	for _, name := range later {
		if s.outcomes[name] != nil {
			continue
		}
		sizes, err := s.sizes(name)
		if err != nil {
			continue // reported when its turn comes
		}
		if _, _, ok := s.kept(name, sizes); !ok {
			reserved += sizes[len(sizes)-1].length
		}
	}
	for i, p := range sizes {
		if last := i == len(sizes)-1; p.length+reserved <= left || last && p.length <= left {
			return p, true
		}
	}
	return size{}, false
}

// kept takes over the results of an earlier run with one of these sizes and this version, and reports whether there are.
func (s *sitting) kept(name string, sizes []size) (mode scenario.Mode, ended error, ok bool) {
	if s.f.fresh {
		return "", nil, false
	}
	dir := filepath.Join(s.f.out, name)
	if sizes[0].plan == nil {
		return s.keptSystem(name, dir, sizes)
	}
	res, err := readResult(dir)
	if err != nil || len(res.Manifests) == 0 || res.Manifests[0].Version != version.String() || !whole(res) {
		return "", nil, false
	}
	for _, p := range sizes {
		if res.Plan.Search == nil && !samePlan(*p.plan, res.Plan) || res.Plan.Search != nil && p.mode != res.Plan.Mode {
			continue
		}
		if rep, err := report.New(s.d, res); err == nil {
			s.take(rep)
			return p.mode, outcome(rep), true
		}
	}
	return "", nil, false
}

func (s *sitting) keptSystem(name, dir string, sizes []size) (scenario.Mode, error, bool) {
	b, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return "", nil, false
	}
	rep, err := system.Read(b)
	if err != nil || rep.Scenario != name || rep.Version != version.String() {
		return "", nil, false
	}
	for _, p := range sizes {
		if string(p.mode) == rep.Mode {
			s.outcomes[name] = rep.Outcome()
			return p.mode, systemOutcome(rep), true
		}
	}
	return "", nil, false
}

// whole reports whether every probe of a result has all steps: a run that was cut short has not.
func whole(r *report.Result) bool {
	steps := map[int]bool{}
	for _, p := range r.Probes {
		for _, x := range p.Steps {
			steps[x.Step] = true
		}
	}
	return len(steps) == len(r.Plan.Steps)
}

func samePlan(a, b scenario.Plan) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return errors.Join(err1, err2) == nil && bytes.Equal(x, y)
}
