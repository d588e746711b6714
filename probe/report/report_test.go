package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

func quick() scenario.Options { return scenario.Options{Mode: scenario.Quick} }

// Each guard, one at a time, on an otherwise clean run.
func TestGuards(t *testing.T) {
	slow := func(h *Histogram, ns int64, n int) {
		for range n {
			h.Record(ns)
		}
	}
	for name, c := range map[string]struct {
		change  func(*ProbeStep, *Conditions)
		guard   string
		verdict string
		words   string
	}{
		"lag p99":         {func(s *ProbeStep, _ *Conditions) { slow(&s.Lag, 5_000_000, 40) }, "schedule", Invalid, "more than 5,"},
		"late share":      {func(s *ProbeStep, _ *Conditions) { s.LateCreated = s.Intended/100 + 1 }, "schedule", Invalid, "more than 1 ms late"},
		"created slower":  {func(s *ProbeStep, _ *Conditions) { s.CreatedRate *= 0.98 }, "rate", Invalid, "created"},
		"acked slower":    {func(s *ProbeStep, _ *Conditions) { s.AckedRate *= 0.96 }, "capacity", Invalid, "did not keep up"},
		"probe saturated": {func(_ *ProbeStep, k *Conditions) { k.ProbePct = 80 }, "generator", Invalid, "80 %"},
		"steal":           {func(_ *ProbeStep, k *Conditions) { k.StealPct, k.PressurePct = 2, 20 }, "host", Contended, "stolen"},
		"foreign load":    {func(_ *ProbeStep, k *Conditions) { k.ForeignPct = 15 }, "host", Contended, "other processes"},
		"few samples":     {func(s *ProbeStep, _ *Conditions) { s.Samples = 19 }, "samples", Invalid, "19 samples"},
		"refused orders":  {func(s *ProbeStep, _ *Conditions) { s.Rejected = 1 }, "answers", Invalid, "1 orders refused"},
		"blind detector":  {func(s *ProbeStep, _ *Conditions) { s.Detector = "negative control: x" }, "detector", Invalid, "negative control"},
		"one copy":        {func(s *ProbeStep, _ *Conditions) { s.MinCopies = 1 }, "topology", Invalid, "1 copies, the scenario has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, "stac-pair", quick())
			c.change(&r.Probes[0].Steps[0], &r.Conditions[0])
			rep := build(t, r)
			reasons := rep.Checks[0].Reasons
			if len(reasons) != 1 || reasons[0].Guard != c.guard || reasons[0].Verdict != c.verdict || !strings.Contains(reasons[0].Text, c.words) {
				t.Fatalf("reasons %+v", reasons)
			}
			if rep.Verdict != ReportInvalid || rep.Checks[0].Verdict != c.verdict || rep.Checks[1].Verdict != OK {
				t.Errorf("report %s, checks %s %s", rep.Verdict, rep.Checks[0].Verdict, rep.Checks[1].Verdict)
			}
			for _, row := range rep.Rows {
				want := OK
				if row.Rate == 100 {
					want = c.verdict
				}
				if row.Verdict != want && row.Verdict != NoValue && row.Probe != "B" {
					t.Errorf("row %+v, want %s", row, want)
				}
			}
		})
	}
}

// Not enough by itself: a pair of servers and a probe on two cores make tasks wait, and a
// hypervisor may steal a little.
func TestHostGuardNeedsBoth(t *testing.T) {
	for _, c := range [][2]float64{{1.9, 90}, {50, 19}} {
		r := fixture(t, "stac-pair", quick())
		r.Conditions[0].StealPct, r.Conditions[0].PressurePct = c[0], c[1]
		if rep := build(t, r); rep.Verdict != ReportValid {
			t.Errorf("steal %v pressure %v: %s", c[0], c[1], rep.Reason)
		}
	}
}

func TestIncorrectBeatsEverything(t *testing.T) {
	for name, change := range map[string]func(*ProbeStep){
		"lost":     func(s *ProbeStep) { s.Ledger.Lost = 1 },
		"dup":      func(s *ProbeStep) { s.Ledger.Duplicates = 1 },
		"gap":      func(s *ProbeStep) { s.Backups.Gaps = 1 },
		"chain":    func(s *ProbeStep) { s.Backups.ChainBreaks = 1 },
		"disorder": func(s *ProbeStep) { s.Disorder = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, "stac-pair", quick())
			change(&r.Probes[1].Steps[0])
			r.Probes[1].Steps[0].CreatedRate = 1 // INVALID as well
			rep := build(t, r)
			if rep.Verdict != ReportIncorrect || rep.Checks[0].Verdict != Incorrect {
				t.Errorf("%s (%s), %s", rep.Verdict, rep.Reason, rep.Checks[0].Verdict)
			}
			if name != "disorder" && rep.Judgements[0].Status != Fail {
				t.Errorf("%+v", rep.Judgements[0])
			}
		})
	}
}

// One of two runs disturbed: the other is used alone.
func TestInvalidRunIsLeftOut(t *testing.T) {
	o := quick()
	o.Repeats = 2
	r := fixture(t, "stac-single", o)
	clean := build(t, fixture(t, "stac-single", o))
	r.Conditions[0].ForeignPct = 90
	for range 1000 {
		r.Probes[0].Steps[0].CreateToEnd.Record(1e9)
	}
	rep := build(t, r)
	a, b := clean.mean(clean.groups[0]), rep.mean(rep.groups[0])
	if *a.Here != *b.Here || b.Samples*2 != a.Samples {
		t.Errorf("clean %v (n=%d), with a disturbed run %v (n=%d)", *a.Here, a.Samples, *b.Here, b.Samples)
	}
	if rep.Verdict != ReportValid || !strings.Contains(rep.Reason, "1 of 4 runs") {
		t.Errorf("%s: %s", rep.Verdict, rep.Reason)
	}
}

func TestFewSamplesPrintNoTail(t *testing.T) {
	rep := build(t, fixture(t, "stac-pair", quick()))
	for _, row := range rep.Rows {
		if row.Rate != 100 || row.Metric != "c2e p99.9" {
			continue
		}
		if row.Here != nil || row.Verdict != NoValue || row.Reason != "n=1000, 10000 needed" {
			t.Errorf("%+v", row)
		}
		return
	}
	t.Error("no such row")
}

// A rate without a published row is shown beside the nearest, never compared.
func TestOtherRatesAreNotCompared(t *testing.T) {
	rep := build(t, fixture(t, "stac-single", scenario.Options{}))
	seen := 0
	for _, row := range rep.Rows {
		if row.Published == nil || row.Published.SameRate {
			continue
		}
		seen++
		if row.Ratio != nil || row.Published.Row != "2000" || len(row.Notes) == 0 {
			t.Errorf("%+v", row)
		}
	}
	if seen != 2*4 { // 500 and 1,000 orders/s, four published statistics
		t.Errorf("%d rows stand beside another rate", seen)
	}
	for _, j := range rep.Judgements {
		if j.Name == "LAB-ABS" && !strings.Contains(j.Detail, "all 1 rows") {
			t.Errorf("judged by rows of other rates: %+v", j)
		}
	}
}

// The two disputed cells carry their note and are not judged.
func TestDisputedCellsAreNotJudged(t *testing.T) {
	r := fixture(t, "stac-pair", quick())
	for i := range r.Probes {
		for range 100_000 {
			r.Probes[i].Steps[0].SendToEnd.Record(900_000) // far above 287 us, at 100/probe only
		}
	}
	for _, j := range build(t, r).Judgements {
		if j.Name == "LAB-ABS" && j.Status != Pass {
			t.Errorf("%+v", j)
		}
	}
}

func TestMergeJoinsProbesOfOneRun(t *testing.T) {
	whole := fixture(t, "stac-pair", quick())
	parts := make([]*Result, 2)
	for i := range parts {
		p := *whole
		p.Probes = whole.Probes[i : i+1]
		parts[i] = clone(t, &p)
	}
	merged, err := Merge(parts...)
	if err != nil {
		t.Fatal(err)
	}
	a, b := build(t, whole), build(t, merged)
	for i := range a.Rows {
		if a.Rows[i].Here != nil && *a.Rows[i].Here != *b.Rows[i].Here {
			t.Errorf("%+v after merging %v", a.Rows[i], *b.Rows[i].Here)
		}
	}
	if alone := build(t, parts[0]); alone.Verdict != ReportInvalid || !strings.Contains(alone.Reason, "1 probes, the step has 2") {
		t.Errorf("a missing probe was not detected: %s %s", alone.Verdict, alone.Reason)
	}
	if _, err := Merge(parts[0], parts[0]); err == nil {
		t.Error("the same probe merged twice")
	}
	if _, err := Merge(parts[0], fixture(t, "stac-single", quick())); err == nil {
		t.Error("another run merged")
	}
	if _, err := Merge(); err == nil {
		t.Error("nothing merged")
	}
}

// Merging adds counts; percentiles follow from the merged counts.
func TestHistogramMergeIsNotAnAverage(t *testing.T) {
	var a, b Histogram
	for range 99 {
		a.Record(100_000)
	}
	for range 99 {
		b.Record(100_000)
	}
	for range 20 {
		b.Record(10_000_000)
	}
	p99a, p99b := a.Percentile(99), b.Percentile(99)
	a.Merge(b)
	got := a.Percentile(99)
	if got != p99b || got == (p99a+p99b)/2 {
		t.Errorf("p99 of the merged is %d, of the parts %d and %d", got, p99a, p99b)
	}
	if a.Count() != 218 {
		t.Errorf("count %d", a.Count())
	}
	var empty Histogram
	if empty.Mean() != 0 || empty.Percentile(50) != 0 || empty.StdDev() != 0 || math.IsNaN(empty.Mean()) {
		t.Error("an empty histogram has figures")
	}
}

func TestParseResultRefuses(t *testing.T) {
	good, err := json.Marshal(fixture(t, "stac-pair", quick()))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]string{
		"schema":      {`"schema":"ordergrid.dev/probe-result/v1"`, `"schema":"ordergrid.dev/probe-result/v9"`},
		"step":        {`"step":0`, `"step":77`},
		"negative":    {`"step":0`, `"step":-1`},
		"step id":     {`{"id":0`, `{"id":4`},
		"histogram":   {`"lag":"`, `"lag":"!`},
		"cut":         {`}]}`, ``},
		"more behind": {``, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(string(good), c[0], c[1], 1)
			if c[0] == "" {
				bad = string(good) + c[1]
			}
			if bad == string(good) {
				t.Fatal("test is stale")
			}
			if _, err := ParseResult([]byte(bad)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzParseResult(f *testing.F) {
	small := fixture(f, "stac-single", scenario.Options{Rates: []int{20}, Measure: 1e9, Repeats: 1})
	b, err := json.Marshal(small)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"schema":"ordergrid.dev/probe-result/v1"}`))
	d := data(f)
	f.Fuzz(func(_ *testing.T, b []byte) {
		r, err := ParseResult(b)
		if err != nil {
			return
		}
		if rep, err := New(d, r); err == nil {
			_ = rep.Text(discard{}, TextOptions{PerRun: true})
			_ = rep.CSV(discard{})
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestFit: a result that is too large drops data that no verdict depends on, and names it.
func TestFit(t *testing.T) {
	r := &Result{Schema: ResultSchema, Probes: []Probe{{Name: "A", Steps: []ProbeStep{{
		Series: &Series{Whole: make([]Bucket, 100)}, Spikes: []Spike{{Index: 7, Orders: make([]SpikeOrder, 100)}},
	}}}}}
	for _, c := range []struct {
		limit           int
		orders, buckets int
		omitted         int
	}{{1 << 20, 100, 100, 0}, {13 << 10, 0, 100, 1}, {4 << 10, 0, 0, 2}} {
		b, err := r.Fit(c.limit)
		if err != nil || len(b) > c.limit {
			t.Fatalf("limit %d: %d bytes, %v", c.limit, len(b), err)
		}
		var got Result
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		s, buckets := got.Probes[0].Steps[0], 0
		if s.Series != nil {
			buckets = len(s.Series.Whole)
		}
		if len(s.Spikes) != 1 || s.Spikes[0].Index != 7 || len(s.Spikes[0].Orders) != c.orders || buckets != c.buckets || len(got.Omitted) != c.omitted {
			t.Errorf("limit %d: %d orders, %d buckets, omitted %q", c.limit, len(s.Spikes[0].Orders), buckets, got.Omitted)
		}
	}
	if _, err := r.Fit(100); err == nil {
		t.Error("100 bytes are enough for a result")
	}
	if s := r.Probes[0].Steps[0]; s.Series == nil || len(s.Spikes[0].Orders) != 100 {
		t.Error("Fit changed the result itself")
	}
}
