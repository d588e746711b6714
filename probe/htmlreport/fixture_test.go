package htmlreport

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// fixture is a result whose latencies follow from rate, probe and order by a
// formula: every 500th order begins a stall of 5 ms.
func fixture(t testing.TB, name string, o scenario.Options) *report.Result {
	t.Helper()
	plan, err := scenario.New(data(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &report.Result{
		Schema: report.ResultSchema, RunID: "0000000A", StartedAt: "2026-01-02T03:04:05Z", Plan: plan,
		Manifests: []report.Manifest{{
			Probes: "AB", Host: "bench", OS: "linux", Kernel: "6.1.0", CPU: "Example CPU", Cores: 2, MemoryMiB: 24000, GoMaxProcs: 14, FIX: "4.2",
			Virtual: true, GoVersion: "go1.26", Version: "v0.1.0", Shared: true, Flags: []string{"--quick=true"}, Grid: "10.0.0.1:7400",
			Settings: map[string]string{"clocksource": "tsc", "transparent_hugepage": "madvise"},
		}},
	}
	for i := range plan.Probes {
		p := report.Probe{Name: string(rune('A' + i)), Index: i, Partition: "p" + string(rune('0'+i)), Copies: []string{"10.0.0.1:7400", "10.0.0.2:7400"}[:plan.Replicas]}
		for _, s := range plan.Steps {
			if i < s.Probes {
				p.Steps = append(p.Steps, step(plan, s, i))
			}
		}
		r.Probes = append(r.Probes, p)
	}
	for _, s := range plan.Steps {
		r.Conditions = append(r.Conditions, report.Conditions{
			Step: s.ID, Probes: "AB", ElapsedMs: plan.Warmup + plan.Measure, Cores: 2, BusyPct: 40, StealPct: 0.1, PressurePct: 10, ForeignPct: 1, ProbePct: 12,
			Nodes: []report.Node{
				{Name: "n0", CPUCores: 0.05 + float64(s.Rate)/15000},
				{Name: "n1", CPUCores: 0.04 + float64(s.Rate)/14000},
			},
			PauseSources: []report.PauseSource{{Of: "probe", Times: report.TimesExact}},
		})
	}
	if name == published.WriteScenario {
		for _, part := range plan.Grids() {
			for _, rate := range plan.Rates {
				x := report.RoundTrip{Probe: "A", Replicas: part.Replicas, Rate: rate}
				for i := range int64(1000) {
					x.Latency.Record(1000 * (20 + i%20))
				}
				r.RoundTrips = append(r.RoundTrips, x)
			}
		}
	}
	return r
}

const stallEvery, stallUs = 500, 5000.0

func step(plan scenario.Plan, s scenario.Step, probe int) report.ProbeStep {
	all := plan.Orders(s)
	measured := int64(s.Rate) * plan.Measure / 1000
	out := report.ProbeStep{
		Step: s.ID, Created: all, Acked: all, MinCopies: plan.Copies(s), Intended: measured, Samples: measured,
		CreatedRate: float64(s.Rate), AckedRate: float64(s.Rate), Ledger: report.LedgerCounts{Entries: all + 2},
	}
	if plan.Copies(s) > 1 {
		out.Backups = out.Ledger
	}
	out.Series = &report.Series{FirstBucketMs: 50, WholeBucketMs: 100}
	first, whole := map[int]*report.Bucket{}, map[int]*report.Bucket{}
	stalledUntil := -1.0
	spike := report.Spike{Thread: 1, Queued: 12}
	for i := range measured {
		at := float64(i) * 1000 / float64(s.Rate) // ms
		send := 70 + float64(s.Rate)/100 + float64(probe) + float64(i*7919%97)/2
		create := send + 9
		if i%stallEvery == stallEvery/2 {
			stalledUntil = at + stallUs/1000
		}
		if at < stalledUntil {
			create += 1000 * (stalledUntil - at)
		}
		if create > 1000 {
			out.Over1ms++
		}
		out.SendToEnd.Record(int64(send * 1000))
		out.CreateToEnd.Record(int64(create * 1000))
		out.IntendedToEnd.Record(int64(create*1000) + 30_000)
		out.Lag.Record(30_000)
		add(first, int(at/50), 50, create, send, at < 3000)
		add(whole, int(at/100), 100, create, send, true)
		if stall := 250 * 1000 / float64(s.Rate); math.Abs(at-stall) < 12 && len(spike.Orders) < 120 {
			spike.Orders = append(spike.Orders, report.SpikeOrder{AtMs: at, CreateToEndUs: create, SendToEndUs: send, Thread: int(i % 4)})
			if create > spike.CreateToEndUs {
				spike.AtMs, spike.CreateToEndUs, spike.SendToEndUs, spike.StallFromMs, spike.StallToMs = at, create, send, at, stalledUntil
			}
		}
	}
	spike.Descents = []report.Descent{{Thread: 1, Orders: 3, FromMs: spike.StallFromMs, ToMs: spike.StallToMs, FromUs: spike.CreateToEndUs, ToUs: 100, SlopeUsPerMs: -1000}}
	spike.Pauses = []report.Pause{{Of: "10.0.0.1:9400", AtMs: spike.StallFromMs - 0.2, Us: 1800, Cause: "gc"}}
	out.Spikes = []report.Spike{spike}
	out.Series.First, out.Series.Whole = inOrder(first), inOrder(whole)
	return out
}

func add(to map[int]*report.Bucket, i int, widthMs, create, send float64, ok bool) {
	if !ok {
		return
	}
	b := to[i]
	if b == nil {
		b = &report.Bucket{AtMs: float64(i) * widthMs}
		to[i] = b
	}
	n := float64(b.Orders)
	b.Orders++
	b.CreateToEnd.MeanUs = (b.CreateToEnd.MeanUs*n + create) / (n + 1)
	b.SendToEnd.MeanUs = (b.SendToEnd.MeanUs*n + send) / (n + 1)
	b.CreateToEnd.MaxUs, b.SendToEnd.MaxUs = max(b.CreateToEnd.MaxUs, create), max(b.SendToEnd.MaxUs, send)
}

func inOrder(m map[int]*report.Bucket) (out []report.Bucket) {
	for i := range 100_000 {
		if b := m[i]; b != nil {
			out = append(out, *b)
		}
		if len(out) == len(m) {
			break
		}
	}
	return out
}

func data(t testing.TB) *published.Data {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func quick() scenario.Options { return scenario.Options{Mode: scenario.Quick} }

// build goes through JSON, as results of earlier runs do.
func build(t testing.TB, r *report.Result) *report.Report {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := report.ParseResult(b)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := report.New(data(t), back)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}
