package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
)

func TestTimeplotPlan(t *testing.T) {
	for mode, want := range map[Mode][]string{
		Exact:  {"1000 2 servers run 1", "4000 2 servers run 1", "4000 1 server run 1"},
		Scaled: {"250 2 servers run 1", "1000 2 servers run 1", "1000 1 server run 1"},
		Quick:  {"250 2 servers run 1", "1000 2 servers run 1", "1000 1 server run 1"},
	} {
		p := plan(t, "stac-timeplot", Options{Mode: mode})
		if got := steps(p); !slices.Equal(got, want) {
			t.Errorf("%s: steps %q, want %q", mode, got, want)
		}
		if p.MeasureTime() != 3*time.Second || p.Threads != 4 || p.Probes != 2 || p.Replicas != 2 || p.Repeats != 1 {
			t.Errorf("%s: %+v", mode, p)
		}
		parts := p.Grids()
		if len(parts) != 2 {
			t.Fatalf("%s: %d grids, want one of two servers and one of one", mode, len(parts))
		}
		for i, part := range parts {
			if servers := 2 - i; part.Replicas != servers || part.Probes != servers || part.Servers() != servers || len(part.Steps) != servers {
				t.Errorf("%s: grid %d is %+v, want one of %d servers, with as many probes and steps", mode, i, part, servers)
			}
			for _, s := range part.Steps {
				if s.TotalRate() != s.Rate*part.Probes || part.Copies(s) != part.Replicas {
					t.Errorf("%s: step %+v of a grid of %d", mode, s, part.Replicas)
				}
			}
		}
	}
	if p := plan(t, "stac-timeplot", Options{Mode: Exact}); p.Warmup != 30_000 || len(p.Differences) != 0 {
		t.Errorf("exact differs: %q, warm-up %v", p.Differences, p.WarmupTime())
	}
	if p := plan(t, "stac-timeplot", Options{Mode: Quick}); len(p.Differences) != 2 {
		t.Errorf("quick differs in %q, want rates and warm-up", p.Differences)
	}
}

func TestTimeplotPlanRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"rates": {Rates: []int{100}}, "probes": {Probes: 2}, "orders": {Orders: Varied}, "arrival": {Arrival: &flow.Arrival{Type: flow.Hawkes}}, "replicas": {Replicas: 1},
	} {
		if _, err := New(data(t), "stac-timeplot", o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(data(t), "stac-timeplot", Options{Arrival: &flow.Arrival{Type: flow.Steady}}); err != nil {
		t.Errorf("a steady arrival: %v", err)
	}
}
