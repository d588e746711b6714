package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// takeOver lets the primary of an idle pair fall silent at each of many moments, and
// returns how long its backup took to notice, and how many of all ticks were due before.
func takeOver(t *testing.T, rest bool, after int64) (noticed int64, due, ticks int) {
	t.Helper()
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, rest: rest})
	w.quiet = true
	w.tick(1000 * ms)
	for end := w.clock + 500*ms + after; w.clock < end; w.tick(10 * ms) {
		for _, n := range w.nodes {
			if ticks++; n.r.TickDue(w.clock + 10*ms) {
				due++
			}
		}
	}
	a, b := w.node("a"), w.node("b")
	if a.r.Status().Role != replica.RolePrimary || b.r.Status().Role != replica.RoleBackup || len(a.r.Status().Config.InSync) != 2 {
		t.Fatal("no pair at rest: the test is inconclusive")
	}
	a.up = false // its connections stay
	silent := w.clock
	for b.r.Status().Role != replica.RolePrimary {
		if w.tick(10 * ms); w.clock > silent+5000*ms {
			t.Fatal("silence not noticed")
		}
	}
	return w.clock - silent, due, ticks
}

func TestRestSkipsTicksAndNoticesSilenceAsSoon(t *testing.T) {
	for after := int64(0); after < 100*ms; after += 10 * ms {
		restless, due, ticks := takeOver(t, false, after)
		if due != ticks {
			t.Fatalf("%d of %d ticks were due without rest", due, ticks)
		}
		rested, due, ticks := takeOver(t, true, after)
		if due*6 > ticks {
			t.Errorf("%d of %d ticks were due at rest, want at most a sixth", due, ticks)
		}
		if rested > restless {
			t.Errorf("the silence of a primary was noticed after %d ms, without rest after %d ms", rested/ms, restless/ms)
		}
	}
}
