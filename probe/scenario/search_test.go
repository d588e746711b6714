package scenario

import (
	"slices"
	"testing"
)

// grid is a system under test with known latency: it meets the objective up to a rate, and the
// given tries, by number, are disturbed or miss by chance.
type grid struct {
	upTo            int
	disturbed, miss []int
}

func (g grid) search(s Search) (tried []Tried) {
	for {
		rate, more := s.Next(tried)
		if !more {
			return tried
		}
		n := len(tried)
		tried = append(tried, Tried{Rate: rate, Valid: !slices.Contains(g.disturbed, n), Meets: rate <= g.upTo && !slices.Contains(g.disturbed, n) && !slices.Contains(g.miss, n)})
	}
}

func TestSearch(t *testing.T) {
	s := Search{Objective: Objective{"mean", 1000}, From: 100, To: 4000, Confirmations: 3, MaxSteps: 24, Goal: 15000}
	for name, c := range map[string]struct {
		grid    grid
		low, hi int // the knee lies between, both included
		open    bool
	}{
		"in the middle":           {grid{upTo: 2950}, 2800, 2950, false},
		"at the beginning":        {grid{upTo: 100}, 100, 100, false},
		"not even there":          {grid{upTo: 99}, 0, 0, false},
		"beyond the end":          {grid{upTo: 9000}, 4000, 4000, true},
		"at the end":              {grid{upTo: 4000}, 4000, 4000, true},
		"just below the end":      {grid{upTo: 3999}, 3790, 3999, false},
		"one disturbed run":       {grid{upTo: 2950, disturbed: []int{1}}, 2800, 2950, false},
		"a rate disturbed twice":  {grid{upTo: 2950, disturbed: []int{3, 4}}, 380, 800, false},
		"begin disturbed twice":   {grid{upTo: 2950, disturbed: []int{0, 1}}, 0, 0, false},
		"a confirmation misses":   {grid{upTo: 2950, miss: []int{11}}, 1500, 2950, false},
		"everything is disturbed": {grid{upTo: 2950, disturbed: []int{0, 1, 2, 3, 4, 5}}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			tried := c.grid.search(s)
			lo, hi, meets := s.Bounds(tried)
			if lo < c.low || lo > c.hi || (hi == 0) != c.open || len(tried) > s.MaxSteps {
				t.Fatalf("knee %d (next above %d) after %d steps, want %d to %d: %+v", lo, hi, len(tried), c.low, c.hi, tried)
			}
			if lo > 0 && meets < s.Confirmations {
				t.Errorf("%d runs confirm %d, want %d: %+v", meets, lo, s.Confirmations, tried)
			}
			for i, x := range tried {
				if x.Rate < s.From || x.Rate > s.To {
					t.Errorf("step %d at %d: outside of %d to %d", i, x.Rate, s.From, s.To)
				}
			}
		})
	}
	// Permanent noise ends, too.
	s.MaxSteps = 10
	all := []int{}
	for i := 1; i < 100; i++ {
		all = append(all, i)
	}
	if n := len(grid{upTo: 2950, disturbed: all}.search(s)); n > s.MaxSteps {
		t.Errorf("%d steps, at most %d", n, s.MaxSteps)
	}
}

func TestParseObjective(t *testing.T) {
	for in, want := range map[string]Objective{"mean<=1ms": {"mean", 1000}, "p99 <= 500us": {"p99", 500}, "mean<=1000us": {"mean", 1000}} {
		if got, err := ParseObjective(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
		if got, err := ParseObjective(want.String()); err != nil || got != want {
			t.Errorf("%q: %+v, %v", want, got, err)
		}
	}
	for _, in := range []string{"", "mean", "mean<1ms", "p50<=1ms", "mean<=0s", "mean<=2m", "mean<=-1ms", "mean<=1", "<=1ms", "mean<=1ms<=2ms"} {
		if o, err := ParseObjective(in); err == nil {
			t.Errorf("%q is parsed as %+v", in, o)
		}
	}
}

func TestKneePlan(t *testing.T) {
	d := data(t)
	p, err := New(d, "stac-knee", Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 200 to 8,000 orders/s of a pair are 100 to 4,000 of each of its probes.
	if s := p.Search; s.From != 100 || s.To != 4000 || s.Goal != 15000 || s.Objective != (Objective{"mean", 1000}) || s.Confirmations != 3 {
		t.Errorf("%+v", s)
	}
	if len(p.Steps) != 1 || p.Steps[0].Rate != 100 || p.Probes != 2 || p.Replicas != 2 || p.Measure != 5000 || p.Processes() != 1 || len(p.ProbesOf(0)) != 2 {
		t.Errorf("%+v", p)
	}
	before := p
	if !p.Extend([]Tried{{100, true, true}}) || len(p.Steps) != 2 || p.Steps[1].ID != 1 || p.Steps[1].Rate != 200 || len(before.Steps) != 1 {
		t.Errorf("%+v", p.Steps)
	}
	for _, o := range []Options{{Rates: []int{100}}, {Repeats: 2}, {Search: &Search{From: 5000}}, {Search: &Search{Objective: Objective{Statistic: "p50"}}}} {
		if _, err := New(d, "stac-knee", o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := New(d, "stac-pair", Options{Search: &Search{From: 1}}); err == nil {
		t.Error("stac-pair accepts a search")
	}
}
