package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// run is one step over all its probes: the unit that is valid or not.
type run struct {
	step       scenario.Step
	probes     []probeRun
	conditions []Conditions
	reasons    []Reason // why it is not valid; empty if it is
}

type probeRun struct {
	name string
	ProbeStep
}

// group is everything measured at one rate with one number of pairs.
type group struct {
	pairs, rate, total int
	label              string // of the kind of arrival, the record, or the servers, where steps differ in it
	record             fixorder.Record
	replicas           int
	runs               []run
	used               int // runs that went into the histograms below
	c2e, s2e, i2e, lag Histogram
	over1ms            int64
}

// Reason is why a run is not valid.
type Reason struct {
	Guard   string `json:"guard"`   // schedule, rate, generator, host, samples, detector, topology, answers, arrival, capacity
	Verdict string `json:"verdict"` // INVALID or INVALID-CONTENDED
	Text    string `json:"text"`
}

// groups sorts a result into groups, in order of pairs and rate, and decides for every run whether
// it is valid. The valid runs of a group are merged; if none is valid, all are, and the rows are
// INVALID.
func groups(r *Result) []*group {
	type groupKey struct {
		pairs, rate int
		label       string
	}
	byKey := map[groupKey]*group{}
	var order []groupKey
	for _, s := range r.Plan.Steps {
		key := groupKey{s.Pairs, s.Rate, s.Label()}
		g := byKey[key]
		if g == nil {
			g = &group{pairs: s.Pairs, rate: s.Rate, total: s.TotalRate(), label: key.label, record: s.Record, replicas: s.Replicas}
			byKey[key] = g
			order = append(order, key)
		}
		v := run{step: s}
		for _, p := range r.Probes {
			for _, ps := range p.Steps {
				if ps.Step == s.ID {
					v.probes = append(v.probes, probeRun{p.Name, ps})
				}
			}
		}
		for _, c := range r.Conditions {
			if c.Step == s.ID {
				v.conditions = append(v.conditions, c)
			}
		}
		if len(v.probes) == 0 {
			continue // the run was interrupted before this step
		}
		v.reasons = guard(r, v)
		g.runs = append(g.runs, v)
	}
	// Groups that differ only in arrival stay in the order of the plan.
	slices.SortStableFunc(order, func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.pairs, b.pairs), cmp.Compare(a.rate, b.rate))
	})
	var out []*group
	for _, key := range order {
		if g := byKey[key]; len(g.runs) > 0 {
			g.merge()
			out = append(out, g)
		}
	}
	return out
}

// row of the group, without a figure.
func (g *group) row(verdict, reason string) Row {
	row := Row{Pairs: g.pairs, Rate: g.rate, TotalRate: g.total, Arrival: g.label, Verdict: verdict, Reason: reason}
	if g.replicas > 0 {
		row.Arrival, row.Record = "", g.label
	}
	return row
}

func (g *group) merge() {
	valid := 0
	for _, r := range g.runs {
		if len(r.reasons) == 0 {
			valid++
		}
	}
	for _, r := range g.runs {
		if valid > 0 && len(r.reasons) > 0 {
			continue
		}
		g.used++
		for _, p := range r.probes {
			g.c2e.Merge(p.CreateToEnd)
			g.s2e.Merge(p.SendToEnd)
			g.i2e.Merge(p.IntendedToEnd)
			g.lag.Merge(p.Lag)
			g.over1ms += p.Over1ms
		}
	}
}

// invalid reports whether no run of the group is valid.
func (g *group) invalid() bool {
	for _, r := range g.runs {
		if len(r.reasons) == 0 {
			return false
		}
	}
	return true
}

// violations over all runs: a wrong log is wrong however noisy the machine.
func (g *group) violations() (n int64) {
	for _, r := range g.runs {
		for _, p := range r.probes {
			n += p.Violations()
		}
	}
	return n
}

// verdict of every row of the group, and why.
func (g *group) verdict() (verdict, reason string) {
	if n := g.violations(); n > 0 {
		return Incorrect, fmt.Sprintf("%d violations, see the checks", n)
	}
	if !g.invalid() {
		return OK, ""
	}
	var all []Reason
	for _, r := range g.runs {
		all = append(all, r.reasons...)
	}
	return worst(all), g.why()
}

// why no run of the group is valid, in words.
func (g *group) why() string {
	var texts []string
	for _, r := range g.runs {
		for _, why := range r.reasons {
			if !slices.Contains(texts, why.Text) {
				texts = append(texts, why.Text)
			}
		}
	}
	if more := len(texts) - 1; more > 0 {
		return fmt.Sprintf("%s; and %d more", texts[0], more)
	}
	return texts[0]
}
