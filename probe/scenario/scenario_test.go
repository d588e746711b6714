package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/placement"
	"github.com/ordergrid/ordergrid/probe/published"
)

func plan(t testing.TB, name string, o Options) Plan {
	t.Helper()
	p, err := New(data(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func data(t testing.TB) *published.Data {
	t.Helper()
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestExactIsThePublishedRun(t *testing.T) {
	p := plan(t, "stac-pair", Options{Mode: Exact})
	if len(p.Steps) != 18 || p.Shards != 1 || p.Replicas != 2 || p.Probes != 2 || p.Threads != 4 || p.Differences != nil {
		t.Errorf("%+v", p)
	}
	if p.WarmupTime() != 30*time.Second || p.MeasureTime() != 10*time.Minute {
		t.Errorf("warm-up %v, measure %v", p.WarmupTime(), p.MeasureTime())
	}
	// The report repeats a rate at once.
	if p.Steps[0].Rate != 100 || p.Steps[1].Rate != 100 || p.Steps[1].Run != 2 || p.Steps[2].Rate != 250 {
		t.Errorf("order: %+v", p.Steps[:3])
	}
}

func TestScaledSaysWhatDiffers(t *testing.T) {
	p := plan(t, "stac-single", Options{})
	if p.Mode != Scaled || p.Replicas != 1 || p.Probes != 1 || len(p.Steps) != 6 {
		t.Errorf("%+v", p)
	}
	got := strings.Join(p.Differences, "; ")
	want := "rates 500, 1000, 2000 orders/s per probe (published run: 2000, 4000, 6000); warm-up 2s (30 s); measured 8s a run (600 s)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Pairs alternate, so that no number of pairs always comes first.
func TestScaleInterleavesPairs(t *testing.T) {
	p := plan(t, "stac-scale", Options{})
	var order []string
	for _, s := range p.Steps {
		order = append(order, fmt.Sprintf("%dx%d", s.Pairs, s.Rate))
		if s.Probes != 2*s.Pairs {
			t.Errorf("step %+v", s)
		}
	}
	if got := strings.Join(order, " "); got != "1x100 2x100 3x100 2x250 3x250 1x250 3x500 1x500 2x500" {
		t.Errorf("order is %s", got)
	}
	for probe, want := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}} { // shard, and pod of the primary
		n := p.Partition(probe)
		if shard, pod := placement.Home(n, p.Shards), n/p.Shards; shard != want[0] || pod != want[1] {
			t.Errorf("probe %d goes to p%d, of shard %d and pod %d, want %v", probe, n, shard, pod, want)
		}
	}
}

func TestQuickDemonstrationFitsAMinute(t *testing.T) {
	total := plan(t, "stac-pair", Options{Mode: Quick}).Length() + plan(t, "stac-single", Options{Mode: Quick}).Length()
	if total > 45*time.Second {
		t.Errorf("both take %v without starting grids and reading logs", total)
	}
}

// TestScheduledReachesTheLastStep: several probes leave time between steps, in which what is under way ends.
func TestScheduledReachesTheLastStep(t *testing.T) {
	p := plan(t, "stac-pair", Options{Mode: Quick})
	last := p.Steps[len(p.Steps)-1]
	want := time.Duration(last.OffsetMs)*time.Millisecond + p.WarmupTime() + p.MeasureTime()
	if got := p.Scheduled(); got != want || got <= p.Length() {
		t.Errorf("%v, want %v, and more than the steps' %v", got, want, p.Length())
	}
}

func TestStepsDoNotOverlap(t *testing.T) {
	p := plan(t, "stac-pair", Options{})
	for i, s := range p.Steps {
		if s.ID != i || i > 0 && s.OffsetMs < p.Steps[i-1].OffsetMs+p.Warmup+p.Measure {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}

func TestOverrides(t *testing.T) {
	zero := time.Duration(0)
	p := plan(t, "stac-pair", Options{Rates: []int{3000, 50}, Warmup: &zero, Measure: time.Second, Repeats: 3, Threads: 2, Probes: 4})
	if !slices.Equal(p.Rates, []int{50, 3000}) || p.Warmup != 0 || p.Measure != 1000 || p.Repeats != 3 || p.Threads != 2 || p.Probes != 4 {
		t.Errorf("%+v", p)
	}
	if n := p.OrdersPerPartition(); n != 2*3*(50+3000) {
		t.Errorf("%d orders in a partition", n)
	}
	if len(p.Differences) != 6 {
		t.Errorf("differences: %q", p.Differences)
	}
}

func TestNewRefuses(t *testing.T) {
	negative := -time.Second
	for name, c := range map[string]struct {
		scenario string
		o        Options
		want     string
	}{
		"unknown scenario":     {"stac-triple", Options{}, "stac-single, stac-pair, stac-scale"},
		"other kind":           {"bar-load", Options{}, "there are"},
		"unknown mode":         {"stac-pair", Options{Mode: "big"}, `mode "big"`},
		"rate zero":            {"stac-pair", Options{Rates: []int{0}}, "rate 0: must be 1 to"},
		"rate huge":            {"stac-pair", Options{Rates: []int{2_000_000}}, "rate 2000000"},
		"rate twice":           {"stac-pair", Options{Rates: []int{5, 5}}, "twice"},
		"no order at all":      {"stac-pair", Options{Rates: []int{1}, Warmup: new(time.Duration), Measure: 200 * time.Millisecond}, "not one order"},
		"measure short":        {"stac-pair", Options{Measure: time.Millisecond}, "measure 1ms"},
		"measure negative":     {"stac-pair", Options{Measure: -1}, "measure"},
		"warm-up negative":     {"stac-pair", Options{Warmup: &negative}, "warm-up"},
		"threads":              {"stac-pair", Options{Threads: 65}, "threads 65: must be 1 to 64"},
		"threads negative":     {"stac-pair", Options{Threads: -1}, "threads -1"},
		"repeats":              {"stac-pair", Options{Repeats: 101}, "repeats 101"},
		"probes":               {"stac-pair", Options{Probes: 27}, "probes 27"},
		"probes of stac-scale": {"stac-scale", Options{Probes: 2}, "two probes go with every pair"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(data(t), c.scenario, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzParseRates(f *testing.F) {
	for _, s := range []string{"100,250", "", ",", "1e3", " 5 , 6", "-1", "99999999999999999999"} {
		f.Add(s)
	}
	d := data(f)
	f.Fuzz(func(t *testing.T, s string) {
		rates, err := ParseRates(s)
		if err != nil {
			return
		}
		if p, err := New(d, "stac-pair", Options{Rates: rates}); err == nil {
			for _, step := range p.Steps {
				if p.Orders(step) <= 0 {
					t.Fatalf("%q: step without orders", s)
				}
			}
		}
	})
}
