package report

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Concat joins results of the parts of a plan that each needed a grid (scenario.Plan.Grids), in
// their order. The last ones may be missing, if the run was interrupted.
func Concat(plan scenario.Plan, results ...*Result) (*Result, error) {
	parts := plan.Grids()
	if len(results) == 0 || len(results) > len(parts) {
		return nil, fmt.Errorf("join %d results of a plan with %d grids", len(results), len(parts))
	}
	out := *results[0]
	out.Plan, out.Manifests, out.Probes, out.Conditions, out.RoundTrips, out.Omitted = plan, nil, nil, nil, nil, nil
	first := 0 // index in the plan of the part's first step
	for i, r := range results {
		if len(r.Plan.Steps) != len(parts[i].Steps) {
			return nil, fmt.Errorf("join results: the plan of grid %d has %d steps, its result's %d", i+1, len(parts[i].Steps), len(r.Plan.Steps))
		}
		if err := out.appendPart(r, first); err != nil {
			return nil, err
		}
		first += len(parts[i].Steps)
	}
	return &out, nil
}

func (r *Result) appendPart(part *Result, first int) error {
	for i, p := range part.Probes {
		p.Steps = append([]ProbeStep(nil), p.Steps...)
		for k := range p.Steps {
			p.Steps[k].Step += first
		}
		switch {
		case i == len(r.Probes):
			r.Probes = append(r.Probes, p)
		case r.Probes[i].Name != p.Name:
			return errors.New("join results: their probes differ")
		default:
			r.Probes[i].Steps = append(r.Probes[i].Steps, p.Steps...)
		}
	}
	for _, c := range part.Conditions {
		c.Step += first
		r.Conditions = append(r.Conditions, c)
	}
	if len(r.Manifests) == 0 { // the machine is the same; the grid's address is irrelevant
		r.Manifests = part.Manifests
	}
	r.RoundTrips = append(r.RoundTrips, part.RoundTrips...)
	return nil
}
