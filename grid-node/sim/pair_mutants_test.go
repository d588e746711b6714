//go:build mutants

package sim

import "testing"

// TestPairMutants: pairs of worlds find what is broken between the two sites.
func TestPairMutants(t *testing.T) {
	for _, name := range []string{"standby-noop", "standby-cursors", "link-uncommitted", "link-ahead", "promote-short", "promote-keeps-epoch", "forced-keeps-lineage", "fence-forgotten"} {
		t.Run(name, func(t *testing.T) {
			if err := SelectMutant(name); err != nil {
				t.Fatal(err)
			}
			defer SelectMutant("none") //nolint:errcheck // it exists
			for seed := range uint64(60) {
				if r := RunPair(seed, nil); r.Violation != nil {
					t.Logf("seed %d: %v", seed, r.Violation)
					return
				}
			}
			t.Error("not found by 60 pairs")
		})
	}
}
