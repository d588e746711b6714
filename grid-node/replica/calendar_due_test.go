package replica

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// TestDuePhases: what was missed is made up in order; of a book that has entered none, and of what is a day old, only the last
// phase counts.
func TestDuePhases(t *testing.T) {
	const hour = int64(3600_000_000_000)
	c := &Calendar{}
	for n := int64(1); n <= 5; n++ {
		c.Phases = append(c.Phases, Phase{At: n * hour, State: match.Open})
	}
	for name, v := range map[string]struct{ done, now, due int64 }{
		"nothing yet":           {0, 0, 0},
		"the first":             {0, 1, 1},
		"the last of several":   {0, 3, 3},
		"in order":              {1, 4, 2},
		"done":                  {4, 4, 0},
		"done by a clock ahead": {5, 2, 0},
		"a day later":           {1, 27, 3},
		"days later":            {1, 90, 5},
		"and that is done":      {5, 90, 0},
		"between two":           {2, 3, 3},
	} {
		got := int64(0)
		if p := c.due(v.done*hour, v.now*hour); p != nil {
			got = p.At / hour
		}
		if got != v.due {
			t.Errorf("%s: %d is due, want %d", name, got, v.due)
		}
	}
	if p, next := c.At(3*hour + 1); p == nil || p.At != 3*hour || next == nil || next.At != 4*hour {
		t.Errorf("the present phase is %v, the next %v", p, next)
	}
}
