package report

import (
	"math"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// writes is a run of gs-write in which every latency is known.
func writes(t *testing.T, o scenario.Options, us func(scenario.Step) int64) *Result {
	t.Helper()
	r := fixture(t, "gs-write", o)
	for i := range r.Probes[0].Steps {
		p := &r.Probes[0].Steps[i]
		p.SendToEnd = Histogram{}
		at := us(r.Plan.Steps[p.Step])
		for n := range int64(100) { // 80 of them as asked, 20 ten times that
			v := at
			if n >= 80 {
				v *= 10
			}
			p.SendToEnd.Record(1000 * v)
		}
	}
	for i := range r.RoundTrips {
		r.RoundTrips[i].Latency = Histogram{}
		for range 100 {
			r.RoundTrips[i].Latency.Record(30_000)
		}
	}
	return r
}

// known is 100 us, 2 more with fields, doubled by replication.
func known(s scenario.Step) int64 {
	us := int64(100)
	if s.Record == fixorder.EightFields {
		us += 2
	}
	return us * int64(s.Replicas)
}

func TestWriteFigures(t *testing.T) {
	rep := build(t, clone(t, writes(t, quick(), known)))
	// A histogram has three digits, and a difference of two is as rough as they are.
	value := func(metric, label string, want, pub float64) {
		t.Helper()
		row, ok := rep.figureOf(&group{rate: 500, label: label}, metric)
		if !ok || row.Here == nil || row.Published == nil || math.Abs(*row.Here-want) > want/1000+0.2 || math.Abs(row.Published.Value-pub) > 0.001 {
			t.Errorf("%s of %s: %+v, want %v beside %v", metric, label, row, want, pub)
		}
	}
	value(writeBest, "empty, 1 copy", 100, 270)
	value(writeBest, "8 fields, 2 copies", 204, 690)
	value(writeOver, "empty, 1 copy", 70, 62)
	value(writeOver, "8 fields, 2 copies", 174, 482)
	value(writeCopies, "empty, 2 copies", 2, 630.0/270)
	value(writeCopies, "8 fields, 2 copies", 2, 690.0/290)
	value(writeCopiesUs, "8 fields, 2 copies", 102, 400)
	value(writeFields, "8 fields, 1 copy", 1.02, 290.0/270)
	value(writeFieldsUs, "8 fields, 2 copies", 4, 60)
	value(rttMean, "ping, 2 copies", 30, 208)
	// The full mean beside it: 0.8 x 100 + 0.2 x 1,000.
	for metric, want := range map[string]float64{"s2e mean": 280, writeSkew: 2.8} {
		row, _ := rep.figureOf(&group{rate: 500, label: "empty, 1 copy"}, metric)
		if row.Here == nil || math.Abs(*row.Here-want) > want/1000 {
			t.Errorf("%s: %+v, want %v", metric, row, want)
		}
	}
	for _, row := range rep.Rows {
		if row.Ratio != nil && row.Metric != writeBest {
			t.Errorf("%s is compared with another quantity: %+v", row.Metric, row)
		}
	}
	if rep.Verdict != ReportValid || len(rep.Failed()) > 0 {
		t.Errorf("%s: %s, %+v", rep.Verdict, rep.Reason, rep.Judgements)
	}
}

func shape(t *testing.T, r *Result) Judgement {
	t.Helper()
	rep := build(t, r)
	for _, j := range rep.Judgements {
		if j.Name == "SHAPE" {
			return j
		}
	}
	t.Fatalf("no SHAPE among %+v", rep.Judgements)
	return Judgement{}
}

func TestWriteShape(t *testing.T) {
	half := quick()
	half.Replicas = 1
	for name, c := range map[string]struct {
		o      scenario.Options
		us     func(scenario.Step) int64
		change func(*Result)
		status string
		words  string
	}{
		"as published":        {us: known, status: Pass, words: "2 copies / 1, 8 fields 2.00 (1.3 to 3.0, published 2.38)"},
		"replication is free": {us: func(scenario.Step) int64 { return 100 }, status: Fail, words: "2 copies / 1, empty 1.00 (1.3 to 3.0, published 2.33)"},
		"replication is dear": {us: func(s scenario.Step) int64 { return 100 * int64(s.Replicas*s.Replicas) }, status: Fail, words: "4.00 (1.3"},
		"fields save time": {us: func(s scenario.Step) int64 {
			if s.Record == fixorder.Empty {
				return 110 * int64(s.Replicas)
			}
			return 100 * int64(s.Replicas)
		}, status: Fail, words: "8 fields / empty, 1 copy 0.91 (at least 0.95"},
		"one rate of two is disturbed": {us: known, change: func(r *Result) { r.Conditions[0].ForeignPct = 40 }, status: Pass, words: "2.00"},
		"every rate is disturbed": {us: known, change: func(r *Result) {
			for i := range r.Conditions {
				r.Conditions[i].ForeignPct = 40
			}
		}, status: Invalid, words: "not valid"},
		"one grid": {o: half, us: known, status: Pass, words: "replication is not judged: one grid was measured, with 1 copy"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Mode == "" {
				c.o = quick()
			}
			r := writes(t, c.o, c.us)
			if c.change != nil {
				c.change(r)
			}
			if j := shape(t, r); j.Status != c.status || !strings.Contains(j.Detail, c.words) {
				t.Errorf("%+v, want %s and %q", j, c.status, c.words)
			}
		})
	}
}

// Other load during the measurement of the round trip invalidates the round trip, and the overhead
// of a write over it; the write itself is valid.
func TestWriteRoundTripGuards(t *testing.T) {
	for name, change := range map[string]func(*RoundTrip){
		"host":     func(x *RoundTrip) { x.Machine = &Conditions{ForeignPct: 40} },
		"schedule": func(x *RoundTrip) { x.Lag.Record(5_000_000) },
	} {
		r := fixture(t, "gs-write", quick())
		change(&r.RoundTrips[0]) // 500/s, 1 copy
		rep := build(t, clone(t, r))
		for _, c := range []struct {
			label, metric string
			ok            bool
		}{
			{"ping, 1 copy", rttMean, false}, {"ping, 2 copies", rttMean, true},
			{"empty, 1 copy", writeOver, false}, {"empty, 2 copies", writeOver, true}, {"empty, 1 copy", writeBest, true},
		} {
			if row, found := rep.figureOf(&group{rate: 500, label: c.label}, c.metric); !found || (row.Verdict == OK) != c.ok {
				t.Errorf("%s: %s of %s: %+v", name, c.metric, c.label, row)
			}
		}
		if remarks := rep.Remarks(); len(remarks) != 1 || remarks[0].Where != "500/s ping, 1 copy" {
			t.Errorf("%s: remarks %+v", name, remarks)
		}
		if rep.Verdict != ReportValid {
			t.Errorf("%s: %s", name, rep.Reason)
		}
	}
}

// A step on the grid with two copies needs two, one on the other one.
func TestWriteTopologyIsOfTheStep(t *testing.T) {
	r := fixture(t, "gs-write", quick())
	r.Probes[0].Steps[0].MinCopies, r.Probes[0].Steps[7].MinCopies = 2, 1
	rep := build(t, r)
	for i, c := range rep.Checks {
		wrong := len(c.Reasons) == 1 && c.Reasons[0].Guard == "topology"
		if want := i == 0 || i == len(rep.Checks)-1; wrong != want {
			t.Errorf("%s: %+v", c.where(), c.Reasons)
		}
	}
}

// The two halves of a run, joined, are the run.
func TestConcat(t *testing.T) {
	whole := fixture(t, "gs-write", quick())
	var halves []*Result
	for n := 1; n <= 2; n++ {
		o := quick()
		o.Replicas = n
		halves = append(halves, clone(t, fixture(t, "gs-write", o)))
	}
	joined, err := Concat(whole.Plan, halves...)
	if err != nil {
		t.Fatal(err)
	}
	var want, got strings.Builder
	if err := build(t, whole).Text(&want, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := build(t, joined).Text(&got, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("joined:\n%s\nwhole:\n%s", got.String(), want.String())
	}
	// Interrupted before the second grid: the first is valid.
	first, err := Concat(whole.Plan, halves[0])
	if err != nil || len(build(t, first).Checks) != 4 || len(halves[0].Probes[0].Steps) != 4 {
		t.Errorf("%v: %+v", err, first)
	}
	for name, results := range map[string][]*Result{
		"nothing":          nil,
		"too many":         {halves[0], halves[1], halves[0]},
		"of another plan":  {fixture(t, "stac-single", quick())},
		"of another probe": {halves[0], rename(clone(t, halves[1]))},
	} {
		if _, err := Concat(whole.Plan, results...); err == nil {
			t.Errorf("%s: joined", name)
		}
	}
}

func rename(r *Result) *Result {
	r.Probes[0].Name = "B"
	return r
}
