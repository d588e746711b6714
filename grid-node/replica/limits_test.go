package replica_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fileOf is a file of limits: volume tells profiles apart.
func fileOf(volume int, source string) string {
	if source != "" {
		source = `,"source":` + source
	}
	p, err := limits.ParseProfile(fmt.Appendf(nil, `{"maxOrderVolume":"%d"%s}`, volume, source))
	if err != nil {
		panic(err) // a mistake in this file
	}
	return string(p.Canonical())
}

func sourceOf(grid, profile string, since, generation int) string {
	return fmt.Sprintf(`{"grid":"%s","object":"%s","sinceMs":%d,"generation":%d}`, grid, profile, since, generation)
}

// limited is a pair whose pods read files of limits.
type limited struct {
	*world
	t *testing.T
}

func newLimited(t *testing.T) *limited {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 8}, proved: true})
	w.quiet = true
	w.faults.cut = map[[2]string]bool{}
	w.deliver()
	w.tick(200 * ms)
	return &limited{w, t}
}

// give has a pod read a file.
func (l *limited) give(pod, text string) {
	n := l.node(pod)
	n.r.SetProfile([]byte(text))
	n.step(replica.Event{Kind: replica.EventTick})
	l.tick(200 * ms)
}

// want checks what the committed log of a pod has in force.
func (l *limited) want(when, pod, text string) {
	l.t.Helper()
	if got, at, _ := l.node(pod).r.Limits(); string(got) != text {
		l.t.Errorf("%s: the log of %s has %s, by entry %d, want %s", when, pod, got, at.Entry, text)
	}
}

// fail has the other pod take over.
func (l *limited) fail(pod string) {
	l.t.Helper()
	l.crash(l.node(pod), true)
	l.deliver()
	l.tick(2000 * ms)
	other := map[string]string{"a": "b", "b": "a"}[pod]
	if s := l.node(other).r.Status(); s.Role != replica.RolePrimary {
		l.t.Fatalf("%s did not take over: %v", other, s.Role)
	}
}

// back has a pod that failed join again.
func (l *limited) back(pod string) {
	l.t.Helper()
	l.node(pod).start()
	l.deliver()
	l.tick(2000 * ms)
	if s := l.node(pod).r.Status(); s.Role != replica.RoleBackup {
		l.t.Fatalf("%s did not join again: %v", pod, s.Role)
	}
}

// TestTakeOverKeepsLaterLimits: a primary that takes over with a file that is behind leaves in force what the log has, until
// its file has a later profile.
func TestTakeOverKeepsLaterLimits(t *testing.T) {
	l := newLimited(t)
	first, second, third := fileOf(10, sourceOf("g", "u", 1000, 1)), fileOf(20, sourceOf("g", "u", 1000, 2)), fileOf(30, sourceOf("g", "u", 1000, 3))
	l.give("a", first)
	l.give("b", first)
	l.want("at first", "b", first)
	l.give("a", second)
	l.want("changed", "b", second)
	l.fail("a")
	l.want("after the take-over", "b", second)
	if why := l.node("b").r.ProfileWaits(); !strings.Contains(why, "the file has generation 1 of u") || !strings.Contains(why, "the log generation 2") {
		t.Errorf("the new primary waits because of %q", why)
	}
	l.give("b", second)
	if why := l.node("b").r.ProfileWaits(); why != "" {
		t.Errorf("with the file of the log it waits because of %q", why)
	}
	l.give("b", third)
	l.want("changed by the new primary", "b", third)
	l.back("a")
	l.give("a", second)
	l.fail("b")
	l.want("after the next take-over", "a", third)
}

// TestLimitsOfAnotherProfile: a RiskProfile that takes the place of another one is later whatever its generation, also one
// that was made anew and one that was in force before; the files of pods that have not read of it are earlier.
func TestLimitsOfAnotherProfile(t *testing.T) {
	l := newLimited(t)
	l.give("a", fileOf(10, sourceOf("g", "desk-a", 1000, 7)))
	late := fileOf(10, sourceOf("g", "desk-a", 1000, 8))
	l.give("b", late)
	other := fileOf(20, sourceOf("g", "desk-b", 2000, 1))
	l.give("a", other)
	l.want("switched by name", "b", other)
	l.fail("a")
	l.want("a file of the RiskProfile before", "b", other)
	anew := fileOf(30, sourceOf("g", "desk-b-anew", 3000, 1))
	l.give("b", anew)
	l.want("made anew", "b", anew)
	again := fileOf(40, sourceOf("g", "desk-a", 4000, 8))
	l.give("b", again)
	l.want("switched back", "b", again)
	site := fileOf(50, sourceOf("other", "desk", 5, 1))
	l.give("b", site)
	l.want("of another grid, as after a promotion of a standby", "b", site)
	l.give("b", fileOf(60, ""))
	l.want("a file without a source", "b", site)
}

// TestLimitsWithoutSource: files that a person keeps are taken as they are.
func TestLimitsWithoutSource(t *testing.T) {
	l := newLimited(t)
	l.give("a", fileOf(10, ""))
	l.give("b", fileOf(20, ""))
	l.want("at first", "b", fileOf(10, ""))
	l.fail("a")
	l.want("after the take-over", "b", fileOf(20, ""))
	if why := l.node("b").r.ProfileWaits(); why != "" {
		t.Errorf("it waits because of %q", why)
	}
}

// TestLimitSourcesAreAgreedOn: a log has sources once all copies are there and know them; until then it has the limits as
// releases before write them.
func TestLimitSourcesAreAgreedOn(t *testing.T) {
	l := newLimited(t)
	l.older = "b"
	first, second := fileOf(10, sourceOf("g", "u", 1000, 1)), fileOf(20, sourceOf("g", "u", 1000, 2))
	l.give("a", first)
	l.want("while a copy is of a release before", "b", fileOf(10, ""))
	l.give("a", second)
	l.want("changed meanwhile", "b", fileOf(20, ""))
	l.crash(l.node("b"), true)
	l.deliver()
	l.tick(2000 * ms)
	l.want("while the copy is away", "a", fileOf(20, ""))
	l.older = ""
	l.back("b")
	l.tick(1000 * ms)
	l.want("when it is of this release", "b", second)
	if wire.Features&wire.FeatureLimitSource == 0 {
		t.Error("a node of this release does not say that it knows sources")
	}
}
