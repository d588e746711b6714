package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
)

func labels(p Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, fmt.Sprintf("%d %s", s.Rate, s.Label()))
	}
	return strings.Join(out, ", ")
}

// A burst is measured right after a steady step of the same rate and orders.
func TestHawkesIsComparedWithSteady(t *testing.T) {
	p := plan(t, "flow-hawkes", Options{Mode: Quick})
	if got := labels(p); got != "500 steady, 500 hawkes, 2000 steady, 2000 hawkes" {
		t.Errorf("steps are %s", got)
	}
	if p.Arrival == nil || p.Arrival.Type != flow.Hawkes || p.Arrival.Branching != 95 || !p.Varied || p.Probes != 2 || p.Replicas != 2 {
		t.Errorf("%+v", p)
	}
	if f := p.FlowParams(p.Steps[0], 1, nil); f.Arrival.Type != flow.Steady || !f.Varied || f.Rate != 500 || f.Probe != 1 || f.Probes != 2 {
		t.Errorf("the steady step is %+v", f)
	}
	exact := plan(t, "flow-hawkes", Options{Mode: Exact})
	if len(exact.Rates) != 9 || exact.MeasureTime() != 10*time.Minute {
		t.Errorf("exact: %v for %v", exact.Rates, exact.MeasureTime())
	}
}

func TestDayIsCompressed(t *testing.T) {
	if p := plan(t, "flow-day", Options{}); p.MeasureTime() != time.Minute || labels(p) != "500 day" {
		t.Errorf("%v, %s", p.MeasureTime(), labels(p))
	}
	if p := plan(t, "flow-day", Options{Mode: Exact}); p.MeasureTime() != 390*time.Minute {
		t.Errorf("exact: %v", p.MeasureTime())
	}
}

// Ten messages, one a second.
func recording(t *testing.T) *flow.Recording {
	t.Helper()
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "%d,1,%d,100,10000,1\n", 34200+i, i+1)
	}
	r, err := flow.Read(strings.NewReader(b.String()), "X_1.csv", flow.Lobster, 100)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayHasTheRatesOfItsRecording(t *testing.T) {
	zero := time.Duration(0)
	p := plan(t, "flow-replay", Options{Recording: recording(t), Speeds: []int{8, 1}, Warmup: &zero, Measure: 20 * time.Second, Probes: 1, Repeats: 1})
	if got := labels(p); got != "1 replay 1x, 9 replay 8x" {
		t.Errorf("steps are %s", got)
	}
	if p.Arrival.Recording != "X_1.csv" || p.Orders(p.Steps[0]) != 10 || p.OrdersPerPartition() != 20 {
		t.Errorf("%+v: %d orders", p, p.OrdersPerPartition())
	}
	// Where the recording is not known, the plan is the largest possible.
	p = plan(t, "flow-replay", Options{Arrival: &flow.Arrival{MaxMessages: 5000}})
	if got := p.Orders(p.Steps[0]); got != 5000 {
		t.Errorf("%d orders", got)
	}
}

func TestArrivalOfAPublishedScenarioIsADifference(t *testing.T) {
	p := plan(t, "stac-pair", Options{Mode: Exact, Arrival: &flow.Arrival{Type: flow.Hawkes}})
	got := strings.Join(p.Differences, "; ")
	if got != "arrival hawkes, branching 0.95, seed 1 (steady); orders varied, with cancels and replaces (one and the same order)" {
		t.Error(got)
	}
	if p := plan(t, "stac-pair", Options{Arrival: &flow.Arrival{Type: flow.Steady}}); p.Arrival != nil || p.Steps[0].Arrival != "" {
		t.Errorf("steady arrival of a steady scenario changes the plan: %+v", p.Arrival)
	}
	p = plan(t, "stac-pair", Options{Orders: Varied})
	if p.Arrival == nil || !p.Varied || !strings.Contains(strings.Join(p.Differences, "; "), "orders varied") {
		t.Errorf("%+v", p)
	}
}

func TestFlowRefuses(t *testing.T) {
	long := time.Minute
	for name, c := range map[string]struct {
		scenario string
		o        Options
		want     string
	}{
		"another arrival":       {"flow-day", Options{Arrival: &flow.Arrival{Type: flow.Hawkes}}, "scenario flow-day is about arrival day; leave it out"},
		"branching":             {"flow-hawkes", Options{Arrival: &flow.Arrival{Branching: 100}}, "branching 100: must be 10 to 99"},
		"branching of a day":    {"flow-day", Options{Arrival: &flow.Arrival{Branching: 50}}, "only for arrival hawkes"},
		"rates of a replay":     {"flow-replay", Options{Rates: []int{5}}, "rates: a replay has those of its recording"},
		"speed":                 {"flow-replay", Options{Speeds: []int{9}}, "speed 9: must be 1 to 8"},
		"speed twice":           {"flow-replay", Options{Speeds: []int{2, 2}}, "speed 2: is given twice"},
		"speed of a steady run": {"stac-pair", Options{Speeds: []int{2}}, "speeds: only for arrival replay"},
		"orders":                {"stac-pair", Options{Orders: "many"}, `orders "many": there are uniform and varied`},
		"recording too short":   {"flow-replay", Options{Recording: recording(t), Warmup: &long}, "has no message after the warm-up of 1m0s"},
		"messages":              {"flow-replay", Options{Arrival: &flow.Arrival{MaxMessages: -1}}, "max-messages -1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(data(t), c.scenario, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
