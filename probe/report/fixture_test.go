package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func data(t testing.TB) *published.Data {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fixture is a clean run whose latencies follow from rate and probe by a
// formula, so that goldens do not move.
func fixture(t testing.TB, name string, o scenario.Options) *Result {
	t.Helper()
	plan, err := scenario.New(data(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{
		Schema: ResultSchema, RunID: "0000000A", StartedAt: "2026-01-02T03:04:05Z", Plan: plan,
		Manifests: []Manifest{{
			Probes: "AB", Host: "bench", OS: "linux", Kernel: "6.1.0", CPU: "Example CPU", Cores: 2, MemoryMiB: 24000,
			Virtual: true, GoVersion: "go1.26", Version: "v0.1.0", Shared: true, Flags: []string{"--quick"},
		}},
	}
	for i := range plan.Probes {
		p := Probe{Name: string(rune('A' + i)), Index: i, Partition: fmt.Sprintf("p%d", plan.Partition(i)), Copies: []string{"a", "b"}[:plan.Replicas]}
		for _, s := range plan.Steps {
			if i < s.Probes {
				p.Steps = append(p.Steps, cleanStep(plan, s, i))
			}
		}
		r.Probes = append(r.Probes, p)
	}
	for _, s := range plan.Steps {
		r.Conditions = append(r.Conditions, Conditions{
			Step: s.ID, Probes: "AB", ElapsedMs: plan.Warmup + plan.Measure, Cores: 2, BusyPct: 40, StealPct: 0.1, PressurePct: 10,
			ForeignPct: 1, ProbePct: 12, LoadBefore: 0.5, LoadAfter: 0.9,
			Nodes: []Node{{Name: "n0", CPUCores: 0.20, PausesPerSec: 0}, {Name: "n1", CPUCores: 0.22, PausesPerSec: 0.1}},
		})
	}
	if r.isWrite() {
		for _, part := range plan.Grids() {
			for _, rate := range plan.Rates {
				x := RoundTrip{Probe: "A", Replicas: part.Replicas, Rate: rate}
				for i := range int64(1000) {
					x.Latency.Record(1000 * (20 + 2000/int64(rate) + i%20))
				}
				r.RoundTrips = append(r.RoundTrips, x)
			}
		}
	}
	return r
}

func cleanStep(plan scenario.Plan, s scenario.Step, probe int) ProbeStep {
	all := plan.Orders(s)
	measured := int64(s.Rate) * plan.Measure / 1000
	out := ProbeStep{
		Step: s.ID, Created: all, Acked: all, MinCopies: plan.Copies(s), Intended: measured, Samples: measured,
		CreatedRate: float64(s.Rate), AckedRate: float64(s.Rate), Ledger: LedgerCounts{Entries: all + 2},
	}
	if plan.Copies(s) > 1 {
		out.Backups = out.Ledger
	}
	// The pattern repeats after 2,000 orders.
	distinct, each := measured, int64(1)
	if measured%2000 == 0 {
		distinct, each = 2000, measured/2000
	}
	record := func(h *Histogram, us int64) {
		if err := h.hdr().RecordValues(us*1000, each); err != nil {
			panic(err)
		}
	}
	for i := range distinct {
		us := 60 + int64(s.Rate)/100 + int64(probe) + i%40
		if s.Record == fixorder.EightFields {
			us += 4
		}
		if s.Replicas > 1 {
			us = us * 9 / 4
		}
		if i%100 == 99 {
			us += 150
		}
		if i%2000 == 1999 {
			us += 1500
		}
		if us+9 > 1000 {
			out.Over1ms += each
		}
		record(&out.SendToEnd, us)
		record(&out.CreateToEnd, us+9)
		record(&out.IntendedToEnd, us+39)
		record(&out.Lag, 30)
	}
	return out
}

// clone goes through JSON, as results between processes do.
func clone(t testing.TB, r *Result) *Result {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ParseResult(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func build(t testing.TB, r *Result) *Report {
	t.Helper()
	rep, err := New(data(t), r)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}
