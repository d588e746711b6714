package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
)

func steps(p Plan) (words []string) {
	for _, s := range p.Steps {
		words = append(words, fmt.Sprintf("%d %s run %d", s.Rate, s.Label(), s.Run))
	}
	return words
}

func TestWritePlan(t *testing.T) {
	p := plan(t, "gs-write", Options{Rates: []int{100, 500}})
	want := []string{
		"100 empty, 1 copy run 1", "100 8 fields, 1 copy run 1", "500 empty, 1 copy run 1", "500 8 fields, 1 copy run 1",
		"100 empty, 2 copies run 1", "100 8 fields, 2 copies run 1", "500 empty, 2 copies run 1", "500 8 fields, 2 copies run 1",
	}
	if got := steps(p); !slices.Equal(got, want) {
		t.Errorf("steps %s", strings.Join(got, "; "))
	}
	if p.Probes != 1 || p.Threads != 1 || p.Shards != 1 || p.Replicas != 2 || p.Warmup != 1000 || p.Measure != 4000 {
		t.Errorf("%+v", p)
	}
	// Each half is on a grid of its own and equals the plan derived by a pod.
	parts := p.Grids()
	if len(parts) != 2 {
		t.Fatalf("%d grids", len(parts))
	}
	for i, part := range parts {
		half := plan(t, "gs-write", Options{Rates: []int{100, 500}, Replicas: i + 1})
		if !slices.Equal(part.Steps, half.Steps) || part.Replicas != i+1 || half.Replicas != i+1 || len(half.Grids()) != 1 || half.Processes() != 1 {
			t.Errorf("replicas %d: part %+v, plan of its own %+v", i+1, part.Steps, half.Steps)
		}
		for id, s := range part.Steps {
			if s.ID != id || part.Copies(s) != i+1 || id == 0 && s.OffsetMs != 0 || id > 0 && s.OffsetMs < part.Steps[id-1].OffsetMs+p.Warmup+p.Measure {
				t.Errorf("step %d: %+v", id, s)
			}
		}
		if got := part.OrdersPerPartition(); got != p.OrdersPerPartition() || got != 2*5*(100+500) {
			t.Errorf("%d orders in a partition, %d in the whole plan", got, p.OrdersPerPartition())
		}
	}
	if p.Steps[4].ID != 4 {
		t.Errorf("splitting the plan changed it: %+v", p.Steps)
	}
	if got := plan(t, "gs-write", Options{Mode: Quick}); got.Length().Seconds() > 50 {
		t.Errorf("quick takes %v", got.Length())
	}
}

func TestWritePlanRefuses(t *testing.T) {
	d := data(t)
	for name, c := range map[string]struct {
		scenario string
		o        Options
		want     string
	}{
		"three copies":        {"gs-write", Options{Replicas: 3}, "replicas 3: must be 1 (without replication) or 2 (with)"},
		"negative":            {"gs-write", Options{Replicas: -1}, "replicas -1"},
		"bursts":              {"gs-write", Options{Arrival: &flow.Arrival{Type: flow.Hawkes}}, "steady rate; leave both out"},
		"varied orders":       {"gs-write", Options{Orders: Varied}, "leave both out"},
		"replicas of another": {"stac-pair", Options{Replicas: 2}, "go with scenario gs-write only"},
		"a search":            {"gs-write", Options{Search: &Search{From: 1}}, "go with scenario stac-knee only"},
	} {
		if _, err := New(d, c.scenario, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every other scenario has one grid, and its plan is that part.
func TestOtherPlansHaveOneGrid(t *testing.T) {
	for _, name := range []string{"stac-single", "stac-pair", "stac-scale", "stac-knee", "flow-hawkes", "flow-day"} {
		p := plan(t, name, Options{})
		parts := p.Grids()
		if len(parts) != 1 || !slices.Equal(parts[0].Steps, p.Steps) || parts[0].Replicas != p.Replicas {
			t.Errorf("%s: %d grids: %+v", name, len(parts), parts)
		}
		for _, s := range p.Steps {
			if s.Record != fixorder.Record("") || s.Replicas != 0 || p.Copies(s) != p.Replicas {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}
