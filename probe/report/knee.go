package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// try is one step of a search, with its measurement.
type try struct {
	scenario.Tried
	run   int
	total int     // orders/s of all probes
	us    float64 // the objective's statistic
	why   string  // why it is not valid, or that the grid did not keep up
}

// Tried is what a search has learned from the steps of a result so far.
func Tried(r *Result) (out []scenario.Tried) {
	for _, t := range tries(r, groups(r)) {
		out = append(out, t.Tried)
	}
	return out
}

// LastTry describes the result of the last step of a search.
func LastTry(r *Result) string {
	all := tries(r, groups(r))
	if len(all) == 0 {
		return ""
	}
	t := all[len(all)-1]
	return fmt.Sprintf("%s orders/s: %s; %s", thousands(float64(t.total)), t.text(r.Plan.Search), t.outcome())
}

func (t try) outcome() string {
	switch {
	case !t.Valid:
		return "not valid"
	case t.Meets:
		return "meets"
	}
	return "misses"
}

func (t try) text(s *scenario.Search) string {
	text := fmt.Sprintf("%s %s us of %s", s.Objective.Statistic, short(t.us), thousands(float64(s.Objective.LimitUs)))
	if t.why != "" {
		text += ", " + t.why
	}
	return text
}

// tries puts the steps of a search in the order they were made.
func tries(r *Result, gs []*group) (out []try) {
	s := r.Plan.Search
	if s == nil {
		return nil
	}
	for _, step := range r.Plan.Steps {
		for _, g := range gs {
			for _, run := range g.runs {
				if run.step.ID == step.ID {
					out = append(out, tryOf(s, g, run))
				}
			}
		}
	}
	return out
}

// tryOf judges one run. A grid that cannot keep up is no disturbance: the rate is beyond the knee.
func tryOf(s *scenario.Search, g *group, r run) try {
	t := try{Tried: scenario.Tried{Rate: g.rate, Valid: true}, run: r.step.Run, total: g.total}
	var h Histogram
	for _, p := range r.probes {
		h.Merge(p.CreateToEnd)
	}
	for _, m := range metrics {
		if m.name == s.Objective.Statistic {
			t.us = m.value(h) / 1e3
			if h.Count() < m.samples {
				t.Valid, t.why = false, fmt.Sprintf("%d samples, %s needs %d", h.Count(), m.name, m.samples)
			}
		}
	}
	kept := true
	for _, why := range r.reasons {
		if t.why == "" {
			t.why = why.Text
		}
		if why.Guard == "capacity" || why.Guard == "answers" {
			kept = false
		} else {
			t.Valid = false
		}
	}
	t.Meets = t.Valid && kept && t.us <= float64(s.Objective.LimitUs)
	return t
}

// knee is the end of a search: total rates of a pair; 0 if there is none.
type knee struct {
	rate, above   int // that meets, and the lowest above it that does not
	meets, needed int // runs at rate, and how many confirm it
	pairs         int // for the goal
}

func (r *Report) knee() (k knee) {
	s, plan := r.Result.Plan.Search, r.Result.Plan
	lo, hi, meets := s.Bounds(Tried(r.Result))
	k = knee{rate: lo * plan.Probes, above: hi * plan.Probes, meets: meets, needed: s.Confirmations}
	k.pairs = pairsFor(s.Goal, k.rate)
	return k
}

func pairsFor(goal, rate int) int {
	if rate == 0 {
		return 0
	}
	return (goal + rate - 1) / rate
}

// publishedKnee is the highest rate in the published table whose mean is within
// the limit, orders/s of a pair; 0 if the objective is not about the mean.
func publishedKnee(d *published.Data, o scenario.Objective) (rate int) {
	t, ok := d.Table(stac, "3-5")
	if !ok || o.Statistic != "mean" {
		return 0
	}
	for _, row := range t.Rows {
		if row["mean_us"].IsNumber() && row["mean_us"].Number <= float64(o.LimitUs) {
			rate = max(rate, int(row["total_rate_ops"].Number))
		}
	}
	return rate
}

// kneeRows are the two main figures of the scenario.
func (r *Report) kneeRows(d *published.Data) []Row {
	k, s := r.knee(), r.Result.Plan.Search
	if k.rate == 0 {
		return nil
	}
	pub := publishedKnee(d, s.Objective)
	base := Row{Rate: k.rate / r.Result.Plan.Probes, TotalRate: k.rate, Verdict: OK}
	rate := valueRow(base, "knee", "1/s", float64(k.rate))
	pairs := valueRow(base, fmt.Sprintf("pairs for %s orders/s", thousands(float64(s.Goal))), "pairs", float64(k.pairs))
	if pub > 0 {
		rate.Published = &Published{Value: float64(pub), Table: "3-5", Row: fmt.Sprint(pub), SameRate: true}
		pairs.Published = &Published{Value: float64(pairsFor(s.Goal, pub)), Table: "3-5", Row: fmt.Sprint(pub), SameRate: true}
	}
	for _, row := range []*Row{&rate, &pairs} {
		if row.Published != nil {
			q := math.Round(1e4**row.Here/row.Published.Value) / 1e4
			row.Ratio = &q
		}
	}
	return []Row{rate, pairs}
}

// judgeKnee is FAIL only when not even the lowest rate meets the objective.
func judgeKnee(r *Report, d *published.Data) Judgement {
	s, k := r.Result.Plan.Search, r.knee()
	j := Judgement{Name: "KNEE", Status: Pass}
	all := tries(r.Result, r.groups)
	if k.rate == 0 {
		last := all[len(all)-1]
		j.Status, j.Detail = Fail, fmt.Sprintf("create-to-end %s is not met at %s orders/s, the lowest rate: %s", s.Objective, thousands(float64(last.total)), last.text(s))
		if !last.Valid {
			j.Status = Invalid
		}
		return j
	}
	j.Detail = fmt.Sprintf("create-to-end %s up to %s orders/s for a pair of servers, in %d of %d confirming runs", s.Objective, thousands(float64(k.rate)), min(k.meets, k.needed), k.needed)
	if k.meets < k.needed {
		j.Status = Invalid // the search was cut short
	}
	j.Detail += fmt.Sprintf("; %d %s for %s orders/s", k.pairs, scenario.Plural(k.pairs, "pair", "pairs"), thousands(float64(s.Goal)))
	if pub := publishedKnee(d, s.Objective); pub > 0 {
		j.Detail += fmt.Sprintf(" (published: %s a pair, %d pairs)", thousands(float64(pub)), pairsFor(s.Goal, pub))
	}
	if k.above == 0 {
		return Judgement{j.Name, j.Status, j.Detail + "; the end of the range that was searched: the knee is not below it"}
	}
	for _, t := range all {
		if t.total == k.above && !t.Meets {
			j.Detail += fmt.Sprintf("; at %s: %s", thousands(float64(k.above)), t.text(s))
			break
		}
	}
	j.Detail += "; assumed: if a rate misses it, higher ones miss it too"
	return j
}

// searchTable lists every step in the order they were made.
func (r *Report) searchTable() *Table {
	s := r.Result.Plan.Search
	t := &Table{Name: "search", Title: fmt.Sprintf("the search for the highest rate with create-to-end %s, step by step (us)", s.Objective),
		Columns: append([]Column{{Name: "step"}}, append(r.rateColumns(), Column{Name: "run"}, Column{Name: s.Objective.Statistic, gap: 3}, Column{Name: "limit"}, Column{Name: "outcome", Left: true}, Column{Name: "why", Left: true})...)}
	for i, x := range tries(r.Result, r.groups) {
		style := map[string]string{"meets": "good", "misses": "bad"}[x.outcome()]
		if style == "" {
			style = "doubt"
		}
		cells := append([]Cell{{Text: fmt.Sprint(i + 1)}}, r.rateCells(&group{rate: x.Rate, total: x.total})...)
		t.add(append(cells, Cell{Text: fmt.Sprint(x.run)}, Cell{Text: short(x.us)}, Cell{Text: thousands(float64(s.Objective.LimitUs))},
			Cell{Text: x.outcome(), Style: style}, Cell{Text: strings.TrimSpace(x.why), Style: "dim"})...)
	}
	return t
}

// beyondKnee: a rate above the knee without a valid run does not make the search invalid.
func (r *Report) beyondKnee(g *group) bool {
	if r.Result.Plan.Search == nil {
		return false
	}
	k := r.knee()
	return k.rate > 0 && g.total > k.rate
}
