package sim

import "testing"

// TestFunctionWorlds: among a few worlds with functions records are made, and functions are
// changed and taken back.
func TestFunctionWorlds(t *testing.T) {
	notUnderRace(t)
	t.Parallel()
	var records, changes uint64
	for seed, found := uint64(1), 0; found < 4; seed++ {
		w := newWorld(seed, nil)
		calls := w.profile.calls != nil
		w.close()
		if !calls {
			continue
		}
		found++
		r := Run(seed, nil)
		if r.Violation != nil {
			t.Errorf("seed %d (%s): %v\nreplay: %s", seed, r.Profile, r.Violation, Replay(seed))
		}
		records += r.Stats.Records
		changes += r.Stats.FunctionChanges
	}
	if records == 0 || changes < 4 {
		t.Errorf("%d records and %d changes of functions in 4 worlds with functions", records, changes)
	}
}
