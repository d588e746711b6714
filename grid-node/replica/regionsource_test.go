package replica_test

import (
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// declared is a file with one region; the bound tells definitions apart.
func declared(blocks int64, source *limits.Source) *replica.Regions {
	return &replica.Regions{Bytes: 1 << 20, Regions: []replica.RegionSpec{{Name: "positions", MaxBytes: blocks << 10, Source: source}}}
}

func regionOf(object string, since, generation int64) *limits.Source {
	return &limits.Source{Grid: "g", Object: object, SinceMs: since, Generation: generation}
}

// declare has a pod read a file of regions.
func (l *limited) declare(pod string, x *replica.Regions) {
	n := l.node(pod)
	n.r.SetRegions(x)
	n.step(replica.Event{Kind: replica.EventTick})
	l.tick(200 * ms)
}

// wantRegion checks what the log of a pod has of the region.
func (l *limited) wantRegion(when, pod string, blocks int64, source *limits.Source) {
	l.t.Helper()
	s := l.node(pod).r.Regions()
	if s == nil || len(s.Regions()) != 1 {
		l.t.Errorf("%s: the log of %s has not the region", when, pod)
		return
	}
	if r := s.Regions()[0]; r.MaxBytes != uint64(blocks<<10) || (r.Source == nil) != (source == nil) || source != nil && *r.Source != *source {
		l.t.Errorf("%s: the log of %s has %d blocks, %v, want %d, %v", when, pod, r.MaxBytes>>10, r.Source, blocks, source)
	}
}

func regionsLater(r *replica.Replica) (names []string) {
	r.RegionsLater(func(name string) { names = append(names, name) })
	return names
}

// TestTakeOverKeepsLaterRegions: a primary that takes over with a file that is behind leaves the bounds that the log has,
// until its file has a later definition.
func TestTakeOverKeepsLaterRegions(t *testing.T) {
	l := newLimited(t)
	first, second, third := regionOf("u", 1000, 1), regionOf("u", 1000, 2), regionOf("u", 1000, 3)
	l.declare("a", declared(10, first))
	l.declare("b", declared(10, first))
	l.wantRegion("at first", "b", 10, first)
	l.declare("a", declared(20, second))
	l.wantRegion("changed", "b", 20, second)
	l.fail("a")
	l.wantRegion("after the take-over", "b", 20, second)
	if got := regionsLater(l.node("b").r); !slices.Equal(got, []string{"positions"}) {
		t.Errorf("the log has later bounds of %q", got)
	}
	l.node("b").r.RegionsAwaited(func(name string) { t.Errorf("with a file that is behind it awaits %q", name) })
	l.declare("b", declared(20, second))
	if got := regionsLater(l.node("b").r); got != nil {
		t.Errorf("with the file of the log that has later bounds of %q", got)
	}
	l.declare("b", declared(30, third))
	l.wantRegion("changed by the new primary", "b", 30, third)
	l.back("a")
	l.declare("a", declared(20, second))
	l.fail("b")
	l.wantRegion("after the next take-over", "a", 30, third)
	anew := regionOf("anew", 2000, 1)
	l.declare("a", declared(10, anew))
	l.wantRegion("made anew", "a", 10, anew)
	l.declare("a", declared(20, nil))
	l.wantRegion("a file without a source", "a", 10, anew)
}

// TestRegionsWithoutSource: files that a person keeps are taken as they are.
func TestRegionsWithoutSource(t *testing.T) {
	l := newLimited(t)
	l.declare("a", declared(10, nil))
	l.declare("b", declared(20, nil))
	l.wantRegion("at first", "b", 10, nil)
	l.fail("a")
	l.wantRegion("after the take-over", "b", 20, nil)
}

// TestRegionSourcesAreAgreedOn: a log has sources once all copies are there and know them; until then it has regions as
// releases before write them.
func TestRegionSourcesAreAgreedOn(t *testing.T) {
	l := newLimited(t)
	l.older = "b"
	first, second := regionOf("u", 1000, 1), regionOf("u", 1000, 2)
	l.declare("a", declared(10, first))
	l.wantRegion("while a copy is of a release before", "b", 10, nil)
	l.declare("a", declared(20, second))
	l.wantRegion("changed meanwhile", "b", 20, nil)
	l.crash(l.node("b"), true)
	l.deliver()
	l.tick(2000 * ms)
	l.wantRegion("while the copy is away", "a", 20, nil)
	l.older = ""
	l.back("b")
	l.tick(1000 * ms)
	l.wantRegion("when it is of this release", "b", 20, second)
}
