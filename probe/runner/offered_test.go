package runner

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// flowShare is a step of one probe whose orders were created as intended and
// acknowledged after 100 us.
func flowShare(t *testing.T, kind flow.Type, rate int) (scenario.Plan, scenario.Step, *share) {
	t.Helper()
	a := flow.Arrival{Type: kind}.Defaulted()
	plan := scenario.Plan{Scenario: "stac-pair", Replicas: 2, Probes: 1, Warmup: 1000, Measure: 5000, Arrival: &a, Varied: true}
	step := scenario.Step{Rate: rate, Probes: 1, Run: 1, Arrival: kind}
	s, err := flow.New(plan.FlowParams(step, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	orders := make([]load.Order, s.Messages().Len())
	for i := range orders {
		t1 := s.Offset(int64(i))
		orders[i] = load.Order{T1: t1, T2: t1 + 1000, T3: t1 + 100_000, Fate: load.Acked, Copies: 2}
	}
	return plan, step, &share{schedule: s, messages: s.Messages(), orders: orders, outcome: load.Outcome{Created: int64(len(orders))}}
}

func TestOfferedDescribesTheFlow(t *testing.T) {
	plan, step, sh := flowShare(t, flow.Hawkes, 2000)
	o := offered(plan, step, 0, sh)
	if n := o.New + o.Cancelled + o.Replaced; n != 10_000 {
		t.Errorf("%d messages in the measured time, want 10000", n)
	}
	if len(o.Fano) != 2 || o.Fano[1].WindowMs != 100 || o.Fano[1].Created < 6 || o.Fano[1].Created > 14 || o.Fano[1].Created != o.Fano[1].Intended {
		t.Errorf("Fano factors %+v; 5 s hold windows of 10 and 100 ms only", o.Fano)
	}
	if o.PeakRate < 4000 || o.LateInBursts != 0 || o.PeakMinute != nil {
		t.Errorf("%+v", o)
	}
	// Orders created on an even schedule, though bursts were intended, are detected.
	for i := range sh.orders {
		sh.orders[i].T1 = int64(i) * int64(6*time.Second) / int64(len(sh.orders))
	}
	if o := offered(plan, step, 0, sh); o.Fano[1].Created > 1 || o.Fano[1].Intended < 6 {
		t.Errorf("smoothed orders have Fano factors %+v", o.Fano)
	}
}

// Orders late because of a burst are distinguished from others.
func TestLateInBursts(t *testing.T) {
	plan, step, sh := flowShare(t, flow.Hawkes, 2000)
	late := func(want func(burst bool) bool) (n int64) {
		const window = int64(burstWindow)
		for i := range sh.orders {
			at := sh.schedule.Offset(int64(i))
			from := at / window * window // the measured part begins at a whole window
			in := sh.schedule.Orders(from+window) - sh.schedule.Orders(from)
			sh.orders[i].T1 = at
			if at >= int64(time.Second) && want(in > 2*2000/100) {
				sh.orders[i].T1 += int64(2 * time.Millisecond)
				n++
			}
		}
		return n
	}
	if n := late(func(burst bool) bool { return burst }); n == 0 || offered(plan, step, 0, sh).LateInBursts != n {
		t.Errorf("%d late in bursts, counted %d", n, offered(plan, step, 0, sh).LateInBursts)
	}
	if n := late(func(burst bool) bool { return !burst }); n == 0 || offered(plan, step, 0, sh).LateInBursts != 0 {
		t.Errorf("%d late outside bursts, counted %d in them", n, offered(plan, step, 0, sh).LateInBursts)
	}
}

// The busiest minute of a day has the latencies of its own orders only.
func TestPeakMinute(t *testing.T) {
	plan, step, sh := flowShare(t, flow.Day, 4000)
	from, to := flow.PeakMinute(int64(5 * time.Second))
	in := int64(0)
	for i := range sh.orders {
		if at := sh.schedule.Offset(int64(i)) - int64(time.Second); at >= from && at < to {
			sh.orders[i].T3 = sh.orders[i].T1 + 3_000_000
			in++
		}
	}
	p := offered(plan, step, 0, sh).PeakMinute
	if p == nil || p.Orders != in || in < 100 || p.CreateToEnd.Count() != in || p.CreateToEnd.Min() < 2_900_000 {
		t.Errorf("%d orders in the minute, got %+v", in, p)
	}
}
