package replica

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestHeirWaitsForALease: an heir takes over at once if all others are heirs of its epoch.
// One that is not heard, or was an heir of an earlier epoch, may be a primary that lives and
// has a lease of the heir's predecessor, however short the wait for heirs is set.
func TestHeirWaitsForALease(t *testing.T) {
	const epoch, since = 7, int64(5 * time.Second)
	for name, c := range map[string]struct {
		offers  []offer
		heardAt int64
		waited  time.Duration // since its first tick
		want    bool
	}{
		"the primary is not heard":                      {nil, 0, 299 * time.Millisecond, false},
		"the primary is not heard for the grace":        {nil, 0, 300 * time.Millisecond, true},
		"the primary was heard, and is not any more":    {nil, since + int64(time.Second), 1299 * time.Millisecond, false},
		"the same, for the grace":                       {nil, since + int64(time.Second), 1300 * time.Millisecond, true},
		"the primary is an heir, whose log is the same": {[]offer{{1, epoch, 0}}, 0, 599 * time.Millisecond, false},
		"the same, for twice the grace":                 {[]offer{{1, epoch, 0}}, 0, 600 * time.Millisecond, true},
		"the other backup is an heir, of a shorter log": {[]offer{{3, epoch, 0}}, 0, 0, true},
		"it was one in an earlier epoch":                {[]offer{{3, epoch - 1, 0}}, 0, 299 * time.Millisecond, false},
		"the same, for the grace, in silence":           {[]offer{{3, epoch - 1, 0}}, 0, 300 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHeir(t, epoch)
			if len(c.offers) > 0 { // the other one of two members
				boot := c.offers[0].boot
				r.cfg.InSync = []Member{memberOf(t, "b", 2), memberOf(t, "x", boot)}
			}
			r.heir = heir{active: true, since: since, heardAt: c.heardAt, offers: c.offers}
			r.now.Mono = since + int64(c.waited)
			if got := r.goesFirst(); got != c.want {
				t.Errorf("goes first: %v, want %v", got, c.want)
			}
		})
	}
}

// newHeir returns member b of an epoch whose primary is a, with the shortest wait for heirs.
func newHeir(t *testing.T, epoch uint64) *Replica {
	t.Helper()
	st, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	a, b := memberOf(t, "a", 1), memberOf(t, "b", 2)
	r, err := New(Options{Self: b, Store: st, Replicas: 2, MinInSync: 1, Timing: Timing{Grace: 300 * time.Millisecond}, Journal: &Journal{HeirWait: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	r.epoch, r.cfg = epoch, &Config{Epoch: epoch, Primary: a, InSync: []Member{a, b}}
	return r
}

func memberOf(t *testing.T, pod string, boot uint64) Member {
	t.Helper()
	m, err := NewMember(wire.FormatMemberID(pod, boot), "10.0.0.1:7400")
	if err != nil {
		t.Fatal(err)
	}
	return m
}
