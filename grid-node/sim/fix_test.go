package sim

import (
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestFixWorlds runs worlds with FIX sessions, of every kind.
func TestFixWorlds(t *testing.T) {
	m := Many{From: 5000, Seeds: 60, World: WorldFix, StopAfter: 3}
	switch {
	case race.Enabled:
		m.Seeds = 4
	case testing.Short():
		m.Seeds = 30
	}
	sum := runSeeds(t, m)
	if st := &sum.Stats; !race.Enabled && (st.FixReports == 0 || st.FixCopies == 0 || st.FixResent == 0 || st.FixHeld == 0 || sum.Faults[faultGatewayLost] == 0 || sum.Faults[faultFixHalfOpen] == 0) {
		t.Errorf("nothing was done in %d worlds: %+v", sum.Seeds, sum.Stats)
	}
}
