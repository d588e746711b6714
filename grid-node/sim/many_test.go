package sim

import (
	"slices"
	"testing"
)

// TestMissing: a run of enough seeds has to see every fault that its worlds make. Power cuts
// are of the world journal.
func TestMissing(t *testing.T) {
	all := Summary{Seeds: enoughSeeds, Profiles: map[string]uint64{}}
	for _, name := range Worlds() {
		all.Profiles[name] = 1
	}
	for k := range all.Faults {
		all.Faults[k] = 1
	}
	for _, c := range []struct {
		world string
		seeds uint64
		never faultKind
		want  bool
	}{
		{"", enoughSeeds, faultCut, true},
		{"", enoughSeeds, faultPowerCut, false},
		{"", enoughSeeds, faultHeirUnheard, false},
		{"", enoughSeeds - 1, faultCut, false},
		{WorldJournal, enoughSeeds, faultPowerCut, true},
		{WorldJournal, enoughSeeds, faultHeirUnheard, true},
		{WorldJournal, enoughSeeds, faultRewind, false},
		{WorldMatch, enoughSeeds, faultCut, false},
	} {
		sum := all
		sum.World, sum.Seeds, sum.Faults[c.never] = c.world, c.seeds, 0
		if got := sum.Missing(); slices.Contains(got, c.never.String()) != c.want || len(got) > 1 {
			t.Errorf("world %q, %d seeds without %q: missing %q, want it there: %v", c.world, c.seeds, c.never, got, c.want)
		}
	}
}
