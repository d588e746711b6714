package runner

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const ms = int64(time.Millisecond)

// known is a step of 1,000 orders/s for 100 ms of warm-up and 1 s, against a server that takes 200
// µs, creation 30 µs late and sending 10 µs later. At 500 ms it stalls for 50 ms: orders due
// meanwhile are answered at 550 ms.
func known(t *testing.T) (scenario.Plan, *share) {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	warmup := 100 * time.Millisecond
	plan, err := scenario.New(d, "stac-single", scenario.Options{Rates: []int{1000}, Warmup: &warmup, Measure: time.Second, Repeats: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := load.NewSteady(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	sh := &share{schedule: s, orders: make([]load.Order, 1100)}
	for i := range sh.orders {
		t1 := int64(i)*ms + 30_000
		t2 := t1 + 10_000
		t3 := t2 + 200_000
		switch {
		case i >= 500 && i < 504: // with the server: all four threads are stuck
			t3 = 550 * ms
		case i >= 504 && i < 550: // waits for a thread
			t2 = 550 * ms
			t3 = t2 + 200_000
		}
		sh.orders[i] = load.Order{T1: t1, T2: t2, T3: t3, Seq: uint64(i + 1), Epoch: 1, Copies: 1, Fate: load.Acked}
	}
	sh.outcome.Created = int64(len(sh.orders))
	return plan, sh
}

func near(t *testing.T, what string, got, wantNs float64) {
	t.Helper()
	if math.Abs(got-wantNs) > wantNs/1000+1 { // three digits
		t.Errorf("%s is %.0f ns, by hand %.0f ns", what, got, wantNs)
	}
}

func TestTallyByHand(t *testing.T) {
	plan, sh := known(t)
	ps := tally(plan, plan.Steps[0], 0, sh)
	if ps.Created != 1100 || ps.Acked != 1100 || ps.Intended != 1000 || ps.Samples != 1000 || ps.MinCopies != 1 || ps.Disorder != 0 || ps.LateCreated != 0 {
		t.Fatalf("%+v", ps)
	}
	near(t, "send-to-end p50", float64(ps.SendToEnd.Percentile(50)), 200_000)
	near(t, "send-to-end p99", float64(ps.SendToEnd.Percentile(99)), 200_000) // blind to the queue
	near(t, "create-to-end p50", float64(ps.CreateToEnd.Percentile(50)), 210_000)
	// 990 orders of 1,000 are below: the 11th worst is the one of 510 ms.
	near(t, "create-to-end p99", float64(ps.CreateToEnd.Percentile(99)), 550e6+200e3-510e6-30e3)
	near(t, "create-to-end max", float64(ps.CreateToEnd.Max()), 550e6-500e6-30e3)
	near(t, "intended-to-end p50", float64(ps.IntendedToEnd.Percentile(50)), 240_000)
	near(t, "lag", float64(ps.Lag.Percentile(99)), 30_000)
	if ps.Over1ms != 50 {
		t.Errorf("%d orders above 1 ms, by hand 50", ps.Over1ms)
	}
	if ps.CreatedRate != 1000 || ps.AckedRate != 1000 {
		t.Errorf("rates %v %v", ps.CreatedRate, ps.AckedRate)
	}
}

func TestTallyLeavesOutWarmupAndWhatWasNotAcknowledged(t *testing.T) {
	plan, sh := known(t)
	sh.orders[5].T3 += int64(time.Hour) // in the warm-up: counted, not measured
	sh.orders[600].Fate = load.Rejected
	sh.orders[601].Fate = load.Unknown
	sh.orders[602] = load.Order{T1: sh.orders[602].T1}
	sh.orders[603].T2 = sh.orders[603].T1 - 1
	sh.outcome.Errors = []error{errors.New("refused")}
	ps := tally(plan, plan.Steps[0], 0, sh)
	if ps.Acked != 1097 || ps.Rejected != 1 || ps.Unknown != 1 || ps.Unsent != 1 || ps.Samples != 997 || ps.Intended != 1000 || ps.Disorder != 1 || len(ps.Notes) != 1 {
		t.Errorf("%+v", ps)
	}
	if ps.CreateToEnd.Max() > int64(time.Minute) {
		t.Error("the warm-up was measured")
	}
	sh.outcome.Created = 300 // interrupted: the rest does not exist
	if ps := tally(plan, plan.Steps[0], 0, sh); ps.Created != 300 || ps.Intended != 200 || ps.CreatedRate != 200 {
		t.Errorf("%+v", ps)
	}
	sh.outcome.Created = 0
	if ps := tally(plan, plan.Steps[0], 0, sh); ps.MinCopies != 0 || ps.Created != 0 {
		t.Errorf("%+v", ps)
	}
}

func TestUsageIgnoresRestartedNodes(t *testing.T) {
	at := time.Unix(100, 0)
	before := map[string]host.NodeSample{
		"http://a": {At: at, CPU: 10, Collections: 5}, "http://b": {At: at, CPU: 10, Collections: 5},
		"http://c": {At: at, CPU: 10, Collections: -1}, "http://gone": {At: at, CPU: 1},
	}
	later := at.Add(10 * time.Second)
	after := map[string]host.NodeSample{
		"http://a": {At: later, CPU: 12, Collections: 7}, "http://b": {At: later, CPU: 1, Collections: 0}, // restarted
		"http://c": {At: later, CPU: 15, Collections: -1},
	}
	got := map[string]report.Node{}
	for _, n := range usage(before, after) {
		got[n.Name] = n
	}
	if len(got) != 2 || got["a"].CPUCores != 0.2 || got["a"].PausesPerSec != 0.2 || got["c"].CPUCores != 0.5 || got["c"].PausesPerSec != -1 {
		t.Errorf("%+v", got)
	}
}

func TestMetricsURLs(t *testing.T) {
	if got := metricsURLs(nil, []string{"10.0.0.1:7400", "127.0.0.1:40123", "[fd00::1]:7400", "junk"}); len(got) != 2 || got[0] != "http://10.0.0.1:9400" || got[1] != "http://[fd00::1]:9400" {
		t.Errorf("%q", got)
	}
	if got := metricsURLs([]string{"http://x"}, []string{"10.0.0.1:7400"}); len(got) != 1 || got[0] != "http://x" {
		t.Errorf("%q", got)
	}
}
