package selftest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/runner"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// The known server of the self-test, and the load on it.
const (
	Service   = 200 * time.Microsecond
	Stall     = 50 * time.Millisecond
	Every     = time.Second
	Rate      = 1000 // orders/s
	Threads   = 4
	floorTime = 2 * time.Second
)

// Line is one figure: expected and measured.
type Line struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Expected float64 `json:"expected"`
	Measured float64 `json:"measured"`
	// Low and High are the tolerance.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// OK reports whether the figure is within its tolerance.
func (l Line) OK() bool { return l.Measured >= l.Low && l.Measured <= l.High }

// Outcome of a self-test.
type Outcome struct {
	RoundTrip time.Duration `json:"roundTripNs"` // to the known server and back, without service time
	Lines     []Line        `json:"lines"`
	// Step is the measurement with stalls, Overload that with more orders than are answered.
	Step     report.ProbeStep `json:"step"`
	Overload report.ProbeStep `json:"overload"`
}

// OK reports whether every figure is within its tolerance.
func (o *Outcome) OK() bool {
	for _, l := range o.Lines {
		if !l.OK() {
			return false
		}
	}
	return true
}

// Options of a self-test.
type Options struct {
	Measure time.Duration // whole seconds, at least 2; of each of the two parts
	// Overload is by how much the rate exceeds the answers, such as 0.01.
	Overload float64
	Progress runner.Progress
}

// Run measures the known server three times: without service time, for the round
// trip; with service time and stalls; with more orders than it answers.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	if o.Measure < 2*time.Second || o.Measure%time.Second != 0 || o.Measure > time.Hour {
		return nil, fmt.Errorf("measure %v: must be whole seconds, 2s to 1h", o.Measure)
	}
	if o.Overload <= 0 || o.Overload > 1 {
		return nil, fmt.Errorf("overload %v: must be more than 0 and at most 1", o.Overload)
	}
	// The threads of the probe and of the server keep a scheduler processor each
	// while they wait; the runner raises this for its own only.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1 + 2*Threads + 8))
	floor, err := measure(ctx, o, Behaviour{}, Rate, floorTime)
	if err != nil {
		return nil, err
	}
	out := &Outcome{RoundTrip: time.Duration(floor.SendToEnd.Percentile(50))}
	b := Behaviour{Service: Service, Every: Every, Stall: Stall}
	if out.Step, err = measure(ctx, o, b, Rate, o.Measure); err != nil {
		return nil, err
	}
	out.Lines = stalled(&out.Step, b, o.Measure, floor.SendToEnd)
	offered := int(Rate * (1 + o.Overload))
	if out.Overload, err = measure(ctx, o, Behaviour{PerSecond: Rate}, offered, o.Measure); err != nil {
		return nil, err
	}
	out.Lines = append(out.Lines, overloaded(&out.Overload, offered, o.Measure)...)
	return out, nil
}

// measure runs the unmodified probe against a server of the behaviour.
func measure(ctx context.Context, o Options, b Behaviour, rate int, over time.Duration) (step report.ProbeStep, err error) {
	d, err := published.Load()
	if err != nil {
		return step, err
	}
	warmup := time.Second
	if b.PerSecond > 0 {
		warmup = 0 // a backlog begins with the first order
	}
	plan, err := scenario.New(d, "stac-single", scenario.Options{Rates: []int{rate}, Warmup: &warmup, Measure: over, Repeats: 1, Threads: Threads})
	if err != nil {
		return step, err
	}
	s, err := Serve(b)
	if err != nil {
		return step, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := runner.Prepare(ctx, runner.Config{
		Plan: plan, Endpoints: []string{s.Address()}, Grid: gridName, FIX: fixorder.FIX42, Run: fixorder.NewRun(), Probes: []int{0},
		Shared: true, Progress: o.Progress,
	})
	if err != nil {
		return step, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	res, err := r.Run(ctx, time.Time{})
	if err != nil {
		return step, err
	}
	step = res.Probes[0].Steps[0]
	if n := step.Violations(); n > 0 || step.Detector != "" || step.Acked != step.Created || step.Samples == 0 {
		return step, fmt.Errorf("the known server lost nothing, the ledger reports: %d of %d acknowledged, %d violations %s %v", step.Acked, step.Created, n, step.Detector, step.Notes)
	}
	return step, nil
}

const us = float64(time.Microsecond)

// stalled compares the latencies of a step with the expected ones. A tenth and 100 us of deviation
// are allowed (a wake-up or two of a machine that is not quite idle), and the excess of the round
// trip alone over its median.
func stalled(s *report.ProbeStep, b Behaviour, over time.Duration, floor report.Histogram) []Line {
	want := b.Expect(Rate, Threads, over, time.Duration(floor.Percentile(50)))
	near := func(what string, expected time.Duration, measured, p float64) Line {
		e := float64(expected) / us
		tail := float64(floor.Percentile(p)-floor.Percentile(50)) / us
		return Line{What: what, Unit: "us", Expected: e, Measured: measured, Low: e*0.9 - 100, High: e*1.1 + 100 + tail}
	}
	c2e, s2e := &s.Stats.CreateToEnd, &s.Stats.SendToEnd
	lines := []Line{{What: "created late, p99", Unit: "us", Expected: 0, Measured: float64(s.Lag.Percentile(99)) / us, Low: 0, High: 100}}
	for _, l := range []struct {
		name string
		want []time.Duration
		got  *report.Stats
		h    report.Histogram
	}{{"send-to-end", want.SendToEnd, s2e, s.SendToEnd}, {"create-to-end", want.CreateToEnd, c2e, s.CreateToEnd}} {
		lines = append(lines, near(l.name+" mean", mean(l.want), l.got.MeanUs, 50))
		for _, p := range []float64{50, 90, 97, 99} {
			lines = append(lines, near(fmt.Sprintf("%s p%g", l.name, p), percentile(l.want, p), float64(l.h.Percentile(p))/us, p))
		}
		lines = append(lines, near(l.name+" max", percentile(l.want, 100), l.got.MaxUs, 100))
	}
	// Intended-to-end is create-to-end plus the lateness of the order's creation.
	i2e := &s.Stats.IntendedToEnd
	sum := c2e.MeanUs + s.Stats.Lag.MeanUs
	return append(lines, Line{What: "intended-to-end mean", Unit: "us", Expected: sum, Measured: i2e.MeanUs, Low: sum - 1, High: sum + 1})
}

// overloaded compares a step with more orders than are answered with its arithmetic: the last order
// has waited for the whole backlog, while no order is with the server for longer than the threads
// before it take.
func overloaded(s *report.ProbeStep, offered int, over time.Duration) []Line {
	seconds := over.Seconds()
	end := seconds * float64(offered-Rate) / Rate * 1e6 // us
	with := float64(Threads) / Rate * 1e6
	return []Line{
		{What: fmt.Sprintf("overload, %d orders/s of %d: create-to-end max", offered, Rate), Unit: "us", Expected: end + with, Measured: s.Stats.CreateToEnd.MaxUs, Low: end * 0.9, High: (end+with)*1.1 + 1000},
		{What: "overload: send-to-end p50", Unit: "us", Expected: with, Measured: float64(s.SendToEnd.Percentile(50)) / us, Low: with * 0.9, High: with*1.1 + 100},
	}
}
