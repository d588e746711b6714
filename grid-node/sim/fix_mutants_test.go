//go:build mutants

package sim

import "testing"

// TestFixMutants: worlds with FIX sessions find what is broken about them. Scripts and tests
// show it too, and show what is rarer: replica.Proof.
func TestFixMutants(t *testing.T) {
	for _, name := range []string{
		"fix-open-uncommitted", "fix-fence-ignored", "fix-prev-unchecked", "fix-refusal-unlogged", "fix-step-uncommitted", "fix-pages-kept",
		"fix-open-other", "fix-index-clordid", "fix-index-dayless", "fix-in-of-last", "fix-attempt-forgotten", "fix-reset-keeps",
		"fix-no-jump", "fix-restoreless", "fix-again-refused", "fix-again-as-sent",
		"copy-unfiltered", "copy-of-states", "copy-unsnapshotted", "copy-early", "copy-uncounted", "copy-opened-ahead", "copy-kept", "copy-on-primary",
	} {
		t.Run(name, func(t *testing.T) {
			if err := SelectMutant(name); err != nil {
				t.Fatal(err)
			}
			defer SelectMutant("none") //nolint:errcheck // it exists
			sum := Many{Seeds: 600, World: WorldFix, StopAfter: 1}.Run()
			if len(sum.Failed) == 0 {
				t.Fatalf("not found by %d worlds", sum.Seeds)
			}
			t.Logf("world %d, seed %d: %v", sum.Seeds, sum.Failed[0].Seed, sum.Failed[0].Violation)
		})
	}
}
