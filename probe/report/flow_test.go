package report

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func burstRun() (*Result, run) {
	a := flow.Arrival{Type: flow.Hawkes}.Defaulted()
	plan := scenario.Plan{Scenario: "flow-hawkes", Replicas: 2, Probes: 1, Measure: 10_000, Arrival: &a}
	p := ProbeStep{Created: 900, Acked: 900, MinCopies: 2, Intended: 900, Samples: 900, CreatedRate: 90, AckedRate: 90,
		Offered: &Offered{Fano: []FanoFactor{{WindowMs: 100, Intended: 8, Created: 8}}, PeakRate: 5000}}
	for range 900 {
		p.Lag.Record(1000)
	}
	return &Result{Plan: plan}, run{step: scenario.Step{Rate: 100, Probes: 1, Run: 1, Arrival: flow.Hawkes}, probes: []probeRun{{"A", p}}}
}

// With bursts the guards compare with the intended times, still detect late orders, name bursts as
// their cause, and require bursts.
func TestGuardsOfBursts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ProbeStep)
		want   string // of the only reason; empty: valid
	}{
		"fewer than the mean rate, as intended": {func(*ProbeStep) {}, ""},
		"created less than intended":            {func(p *ProbeStep) { p.CreatedRate = 88 }, "created 88 orders/s of 90"},
		"the grid did not keep up":              {func(p *ProbeStep) { p.AckedRate = 85 }, "85 orders/s acknowledged of 90 offered"},
		"late in bursts":                        {func(p *ProbeStep) { p.LateCreated, p.Offered.LateInBursts = 20, 15 }, "most of them in bursts, of up to 5,000 orders/s in 10 ms: more than its cores could make"},
		"late elsewhere":                        {func(p *ProbeStep) { p.LateCreated, p.Offered.LateInBursts = 20, 5 }, "2.2 % of orders more than 1 ms late (allowed 1 %)"},
		"bursts smoothed":                       {func(p *ProbeStep) { p.Offered.Fano[0].Created = 3 }, "Fano factor of 3.0 at 100 ms (allowed 6 to 14)"},
		"bursts too large":                      {func(p *ProbeStep) { p.Offered.Fano[0].Created = 15 }, "Fano factor of 15.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, v := burstRun()
			c.change(&v.probes[0].ProbeStep)
			reasons := guard(r, v)
			switch {
			case c.want == "" && len(reasons) > 0:
				t.Errorf("not valid: %+v", reasons)
			case c.want != "" && (len(reasons) != 1 || !strings.Contains(reasons[0].Text, c.want)):
				t.Errorf("reasons %+v, want %q", reasons, c.want)
			case name == "late elsewhere" && strings.Contains(reasons[0].Text, "bursts"):
				t.Errorf("blames bursts: %s", reasons[0].Text)
			}
		})
	}
}
