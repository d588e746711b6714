package selftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// TestExpectByHand: 1,000 orders/s, 200 us, a stall of 50 ms a second, four
// threads, no way between. Orders come every ms; Expect puts the first 25.0005 ms
// into a stall's middle, so in the second from there on, order i counts from the
// stall's beginning at -24.9995 ms of the next period.
func TestExpectByHand(t *testing.T) {
	b := Behaviour{Service: Service, Every: Every, Stall: Stall}
	e := b.Expect(1000, 4, time.Second, 0)
	if len(e.CreateToEnd) != 1000 || len(e.SendToEnd) != 1000 {
		t.Fatalf("%d %d", len(e.CreateToEnd), len(e.SendToEnd))
	}
	// The first stall is the one from 975.0005 ms: orders at 0, 1 ... ms of a
	// clock that reads 975.0005 ms; it begins at 24.9995 ms of that, ends at
	// 74.9995 ms. Orders 25 to 28 are with the server when nothing comes back, 29 on wait.
	stallEnd := 74.9995
	var c2e, s2e []float64 // of those that the stall touched, ms
	for i := 25; i <= 28; i++ {
		c2e, s2e = append(c2e, stallEnd-float64(i)), append(s2e, stallEnd-float64(i))
	}
	for i := 29; ; i++ {
		sent := stallEnd + 0.2*float64((i-29)/4) // four at a time, 0.2 ms each
		if sent <= float64(i) {
			break
		}
		c2e, s2e = append(c2e, sent+0.2-float64(i)), append(s2e, 0.2)
	}
	near := func(what string, got time.Duration, wantMs float64) {
		t.Helper()
		if d := float64(got)/1e6 - wantMs; d > 0.001 || d < -0.001 {
			t.Errorf("%s is %v, by hand %.4f ms", what, got, wantMs)
		}
	}
	total := func(touched []float64) float64 {
		sum := 0.2 * float64(1000-len(touched))
		for _, v := range touched {
			sum += v
		}
		return sum / 1000
	}
	near("create-to-end mean", mean(e.CreateToEnd), total(c2e))
	near("send-to-end mean", mean(e.SendToEnd), total(s2e))
	near("create-to-end max", percentile(e.CreateToEnd, 100), c2e[0])
	near("send-to-end max", percentile(e.SendToEnd, 100), s2e[0])
	near("send-to-end p99", percentile(e.SendToEnd, 99), 0.2) // blind to the queue: 4 of 1,000
	near("create-to-end p99", percentile(e.CreateToEnd, 99), c2e[10])
	if len(c2e) < 50 {
		t.Errorf("%d orders affected, 50 are created in the stall", len(c2e))
	}
}

// TestOverloadByHand: a server of 1,000 orders/s with 1 % more load falls behind by 10 orders each
// second.
func TestOverloadByHand(t *testing.T) {
	e := Behaviour{PerSecond: 1000, Every: time.Second}.Expect(1010, 4, 10*time.Second, 0)
	// Order 10,099 of 10,100 is created at 9.999 s and answered at 10.1 s.
	if got := percentile(e.CreateToEnd, 100); got < 100*time.Millisecond || got > 102*time.Millisecond {
		t.Errorf("create-to-end max %v, by hand 101 ms", got)
	}
	if got := percentile(e.SendToEnd, 99); got != 4*time.Millisecond {
		t.Errorf("send-to-end p99 %v, four threads of 1 ms are 4 ms", got)
	}
}

type silent struct{}

func (silent) Begin(scenario.Step, time.Duration)    {}
func (silent) End(scenario.Step, []report.ProbeStep) {}
func (silent) Say(string)                            {}

// TestRealServer asserts only what holds on any machine: the server never answers early, so waits
// are at least the computed ones, and the queue is visible in create-to-end far more often than in
// send-to-end. The figures themselves are for "order-probe selftest" on an idle machine.
func TestRealServer(t *testing.T) {
	o, err := Run(t.Context(), Options{Measure: 2 * time.Second, Overload: 0.2, Progress: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	if min := o.Step.Stats.SendToEnd.MinUs; min < 199 {
		t.Errorf("send-to-end min is %.1f us, the server takes 200", min)
	}
	above := func(h report.Histogram, limit time.Duration) (n int64) {
		for p := 100.0; p > 0 && h.Percentile(p) > int64(limit); p -= 0.05 {
			n++
		}
		return n
	}
	// Of 50 orders created in a stall of 50 ms, 25 wait 25 ms or more for its end.
	if n := above(o.Step.CreateToEnd, 24*time.Millisecond); n < 40 {
		t.Errorf("%d of 2,000 orders have a create-to-end above 24 ms; two stalls make at least 50", n)
	}
	if !slices.ContainsFunc(o.Step.Spikes, func(s report.Spike) bool { return s.Queued >= 10 && len(s.Descents) > 0 }) {
		t.Errorf("two stalls, and the worst spikes are %+v", o.Step.Spikes)
	}
	// 2,400 orders at 1,000 a second take 2.4 s at least: the last one waits 0.4 s.
	s := o.Overload
	if s.Stats.CreateToEnd.MaxUs < 390_000 {
		t.Errorf("20 %% overload for 2 s: create-to-end max %.0f us, at least 400,000", s.Stats.CreateToEnd.MaxUs)
	}
	whole := s.Series.Whole
	first, last := whole[0], whole[len(whole)-1]
	if last.CreateToEnd.P50Us < 5*last.SendToEnd.P50Us || last.CreateToEnd.P50Us < first.CreateToEnd.P50Us {
		t.Errorf("overload: create-to-end %.0f us at first, %.0f at last; send-to-end %.0f at last", first.CreateToEnd.P50Us, last.CreateToEnd.P50Us, last.SendToEnd.P50Us)
	}
	var b bytes.Buffer
	if err := o.Text(&b); err != nil || !strings.Contains(b.String(), "create-to-end p97") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Measure: time.Second, Overload: 0.1}, {Measure: 2500 * time.Millisecond, Overload: 0.1}, {Measure: 2 * time.Second}, {Measure: 2 * time.Second, Overload: 2}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
