package sim

import "testing"

// TestJournalSeeds runs the world journal: some seeds that are the same each time, some new
// ones.
func TestJournalSeeds(t *testing.T) {
	notUnderRace(t)
	m := Many{World: WorldJournal, Seeds: 9, FreshFrom: NewFrom(), Fresh: 3, StopAfter: 3}
	if testing.Short() {
		m.Seeds, m.Fresh = 3, 0
	}
	sum := m.Run()
	for _, r := range sum.Failed {
		t.Errorf("seed %d (%s): %v\nreplay: %s", r.Seed, r.Profile, r.Violation, ReplayJournal(r.Seed))
	}
	if s := &sum.Stats; s.Acked == 0 || sum.Faults[faultPowerCut] == 0 || sum.Faults[faultSpoiled] == 0 {
		t.Errorf("no work was done in %d seeds: %+v, %d power cuts", sum.Seeds, *s, sum.Faults[faultPowerCut])
	}
}
