package flow

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func params(t Type, rate int) Params {
	return Params{Arrival: Arrival{Type: t}.Defaulted(), Varied: true, Rate: rate, Warmup: time.Second, Measure: 5 * time.Second, Probes: 2}
}

func schedule(t testing.TB, p Params) *Schedule {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every arrival offers in the measured time exactly its rate, in order; that makes a bursty step
// comparable with a steady one.
func TestEveryArrivalMeetsTheRate(t *testing.T) {
	for _, kind := range []Type{Steady, Hawkes, Day} {
		for _, rate := range []int{10, 500, 3000} {
			p := params(kind, rate)
			s := schedule(t, p)
			n := s.Orders(math.MaxInt64)
			if !slices.IsSorted(s.at) || s.at[0] < 0 || s.at[n-1] >= int64(p.Warmup+p.Measure) {
				t.Errorf("%s %d/s: times are not sorted within the step: %d to %d", kind, rate, s.at[0], s.at[n-1])
			}
			if measured := n - s.Orders(int64(p.Warmup)); measured != int64(5*rate) {
				t.Errorf("%s %d/s: %d orders in 5 s", kind, rate, measured)
			}
			if warm := s.Orders(int64(p.Warmup)); warm > int64(rate) {
				t.Errorf("%s %d/s: %d orders in the warm-up of 1 s", kind, rate, warm)
			}
			if s.Messages().Len() != n {
				t.Errorf("%s %d/s: %d messages for %d times", kind, rate, s.Messages().Len(), n)
			}
		}
	}
}

func TestSameSeedSameOrders(t *testing.T) {
	for _, kind := range []Type{Steady, Hawkes, Day} {
		p := params(kind, 500)
		a, b := schedule(t, p), schedule(t, p)
		if !slices.Equal(a.at, b.at) || !slices.Equal(a.messages.events, b.messages.events) {
			t.Errorf("%s: two schedules of one seed differ", kind)
		}
		for name, other := range map[string]func(*Params){
			"step":  func(p *Params) { p.Step++ },
			"probe": func(p *Params) { p.Probe++ },
			"seed":  func(p *Params) { p.Arrival.Seed++ },
		} {
			q := p
			other(&q)
			if c := schedule(t, q); slices.Equal(a.messages.events, c.messages.events) && kind != Steady {
				t.Errorf("%s: another %s gives the same orders", kind, name)
			}
		}
	}
}

// The bursts of a short step: a stretch as bursty at 100 ms as the scenario requires (6 to 14) is
// found for every step and probe of a plan.
func TestHawkesStepsAreBursty(t *testing.T) {
	for step := range 6 {
		for probe := range 2 {
			p := params(Hawkes, 500*(step+1))
			p.Step, p.Probe = step, probe
			s := schedule(t, p)
			f := NewFano(int64(p.Warmup), 100*time.Millisecond)
			for _, at := range s.at {
				f.Add(at)
			}
			f.Close(int64(p.Warmup + p.Measure))
			if v, ok := f.Value(); !ok || v < minFano100*0.9 || v > maxFano100*1.1 {
				t.Errorf("step %d probe %d: Fano factor at 100 ms is %.1f", step, probe, v)
			}
		}
	}
}

func TestSteadyHasNoBursts(t *testing.T) {
	p := params(Steady, 1000)
	s := schedule(t, p)
	f := NewFano(0, 10*time.Millisecond)
	for _, at := range s.at {
		f.Add(at)
	}
	f.Close(int64(p.Warmup + p.Measure))
	if v, ok := f.Value(); !ok || v != 0 || f.Peak() != 10 {
		t.Errorf("Fano factor %v, peak %d in 10 ms", v, f.Peak())
	}
}

// The day: an opening above the mean, a lull at noon, and the close above all.
func TestDayCurve(t *testing.T) {
	if total := dayMass(1); math.Abs(dayInverse(dayMass(0.3)/total)-0.3) > 1e-9 {
		t.Errorf("the inverse of the curve does not invert it")
	}
	sum, n := 0., 100_000
	for i := range n {
		sum += dayIntensity((float64(i) + 0.5) / float64(n))
	}
	if math.Abs(sum/float64(n)-1) > 1e-3 {
		t.Errorf("the curve's mean is %v, want 1", sum/float64(n))
	}
	open, noon, late, spike := dayIntensity(0), dayIntensity(0.45), dayIntensity(0.98), dayIntensity(0.999)
	if open < 2 || noon > 0.75 || late < 1.2 || spike < open {
		t.Errorf("opening %.2f, noon %.2f, late %.2f, close %.2f", open, noon, late, spike)
	}
	p := params(Day, 3000)
	p.Measure = 60 * time.Second
	s := schedule(t, p)
	from, to := PeakMinute(int64(p.Measure))
	peak := s.Orders(int64(p.Warmup)+to) - s.Orders(int64(p.Warmup)+from)
	if want := 3000 * (to - from) / 1e9; peak < 3*want {
		t.Errorf("the peak minute (%d..%d ms) has %d orders, the mean minute %d", from/1e6, to/1e6, peak, want)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		a    Arrival
		want string
	}{
		"type":                 {Arrival{Type: "poisson"}, `arrival "poisson": there are`},
		"branching low":        {Arrival{Type: Hawkes, Branching: 9}, "branching 9: must be 10 to 99"},
		"branching high":       {Arrival{Type: Hawkes, Branching: 100}, "branching 100"},
		"branching of another": {Arrival{Type: Day, Branching: 95}, "branching: only for arrival hawkes"},
		"recording of another": {Arrival{Type: Steady, Recording: "x.csv"}, "replay: only for arrival replay"},
		"messages":             {Arrival{Type: Replay, MaxMessages: MaxMessages + 1}, "max-messages 5000001: must be 1 to 5000000"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.a.Defaulted().Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := New(params(Replay, 1)); err == nil || !strings.Contains(err.Error(), "--replay") {
		t.Errorf("replay without a recording: %v", err)
	}
}

func BenchmarkHawkes(b *testing.B) {
	h := newHawkes(1000, 0.95, 1)
	for b.Loop() {
		h.next()
	}
}
