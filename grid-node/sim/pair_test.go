package sim

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestPairs runs pairs of a partition and its standby.
func TestPairs(t *testing.T) {
	seeds := uint64(21)
	switch {
	case race.Enabled:
		seeds = 3
	case testing.Short():
		seeds = uint64(len(shapes))
	}
	var sum Stats
	for seed := range seeds {
		r := RunPair(seed, nil)
		if r.Violation != nil {
			t.Errorf("seed %d (%s): %v\nreplay: %s", seed, r.Profile, r.Violation, ReplayPair(seed))
		}
		sum.add(&r.Stats)
	}
	if race.Enabled {
		return
	}
	if sum.Acked == 0 || sum.Failovers == 0 || sum.Freed == 0 {
		t.Errorf("no work was done: %+v", sum)
	}
	t.Logf("%+v", sum)
}

// TestSamePairSameTrace: otherwise findings could not be reproduced.
func TestSamePairSameTrace(t *testing.T) {
	notUnderRace(t)
	for seed := range uint64(3) {
		trace := func() string {
			h := sha256.New()
			r := RunPair(seed, h)
			fmt.Fprintf(h, "%+v %v", r.Stats, r.Faults)
			return fmt.Sprintf("%x", h.Sum(nil))
		}
		if trace() != trace() {
			t.Errorf("seed %d has two traces", seed)
		}
	}
}
