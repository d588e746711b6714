package report

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// searched runs a search on a grid whose create-to-end is 0.3 us for each order/s of a probe: 1,000
// us are reached at 3,333. change may modify a step.
func searched(t *testing.T, o scenario.Options, change func(*Result, int)) *Result {
	t.Helper()
	r := fixture(t, "stac-knee", o)
	conditions := r.Conditions[0]
	r.Conditions, r.Probes[0].Steps, r.Probes[1].Steps = nil, nil, nil
	for n := 0; ; n++ {
		s := r.Plan.Steps[n]
		conditions.Step = n
		r.Conditions = append(r.Conditions, conditions)
		for i := range r.Probes {
			ps := cleanStep(r.Plan, s, i)
			ps.CreateToEnd = Histogram{}
			if err := ps.CreateToEnd.hdr().RecordValues(int64(s.Rate)*300, ps.Samples); err != nil {
				t.Fatal(err)
			}
			r.Probes[i].Steps = append(r.Probes[i].Steps, ps)
		}
		if change != nil {
			change(r, n)
		}
		if !r.Plan.Extend(Tried(r)) {
			return r
		}
	}
}

func kneeOf(t *testing.T, r *Report) Judgement {
	t.Helper()
	for _, j := range r.Judgements {
		if j.Name == "KNEE" {
			return j
		}
	}
	t.Fatalf("no KNEE in %+v", r.Judgements)
	return Judgement{}
}

func TestKnee(t *testing.T) {
	rep := build(t, clone(t, searched(t, scenario.Options{}, nil)))
	j := kneeOf(t, rep)
	for _, want := range []string{"orders/s for a pair of servers, in 3 of 3 confirming runs", "3 pairs for 15,000 orders/s", "published: 6,000 a pair, 3 pairs", "higher ones miss"} {
		if j.Status != Pass || !strings.Contains(j.Detail, want) {
			t.Errorf("%+v lacks %q", j, want)
		}
	}
	// Within 5 % of what the formula says.
	if k := rep.knee(); k.rate > 6666 || k.rate < 6300 || k.above <= k.rate {
		t.Errorf("knee %+v, the formula says 6,666", k)
	}
	if rep.Verdict != ReportValid || rep.Rows[0].Metric != "knee" || rep.Rows[0].Published.Value != 6000 || *rep.Rows[1].Here != 3 {
		t.Errorf("%s %s %+v", rep.Verdict, rep.Reason, rep.Rows[:2])
	}
	table := rep.Tables(false)[0]
	if table.Name != "search" || len(table.Rows) != len(rep.Result.Plan.Steps) {
		t.Errorf("table %s with %d rows of %d steps", table.Name, len(table.Rows), len(rep.Result.Plan.Steps))
	}
}

func TestKneeOfGridsThatDoNotKeepUp(t *testing.T) {
	// Above 1,000 a probe orders pile up: that is a miss, not a disturbance.
	rep := build(t, searched(t, scenario.Options{}, func(r *Result, n int) {
		for i := range r.Probes {
			if s := &r.Probes[i].Steps[n]; r.Plan.Steps[n].Rate > 1000 {
				s.AckedRate = 900
			}
		}
	}))
	if k, j := rep.knee(), kneeOf(t, rep); k.rate > 2000 || k.rate < 1900 || j.Status != Pass || !strings.Contains(j.Detail, "did not keep up") || rep.Verdict != ReportValid {
		t.Errorf("%+v %+v %s: %s", k, j, rep.Verdict, rep.Reason)
	}
	// A run on a machine with other load proves nothing about a rate.
	rep = build(t, searched(t, scenario.Options{}, func(r *Result, n int) { r.Conditions[n].ForeignPct = 50 }))
	if j := kneeOf(t, rep); j.Status != Invalid || rep.Verdict != ReportInvalid || len(rep.Result.Plan.Steps) != 2 {
		t.Errorf("%+v %s after %d steps", j, rep.Verdict, len(rep.Result.Plan.Steps))
	}
	// A lost order takes precedence.
	rep = build(t, searched(t, scenario.Options{}, func(r *Result, n int) { r.Probes[0].Steps[n].Ledger.Lost = 1 }))
	if rep.Verdict != ReportIncorrect {
		t.Errorf("%s: %s", rep.Verdict, rep.Reason)
	}
	rep = build(t, searched(t, scenario.Options{Search: &scenario.Search{Objective: scenario.Objective{Statistic: "p99", LimitUs: 20}}}, nil))
	if j := kneeOf(t, rep); j.Status != Fail || len(rep.Failed()) != 1 || strings.Contains(j.Detail, "published") {
		t.Errorf("%+v", j)
	}
}
