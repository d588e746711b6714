package model

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// gate is the search every change must pass; `make model` goes further.
var gate = []Bounds{
	{Members: 2, Orders: 1, Faults: 2, HandOvers: 1},
	{Members: 2, Orders: 3, Faults: 1, HandOvers: 1},
	{Members: 2, Orders: 1, Faults: 1, HandOvers: 1, Retires: 1, Replace: true},
	{Members: 3, Orders: 1, Faults: 0, HandOvers: 1},
	{Members: 2, Orders: 1, Faults: 1, Moves: 1},
	{Members: 3, Orders: 0, Faults: 0, Moves: 2},
}

// TestProtocolHolds also asserts that every action happens: a guard that is never
// true would make everything hold.
func TestProtocolHolds(t *testing.T) {
	var seen [kinds]uint64
	for _, b := range gate {
		res, err := Search(&Spec{Bounds: b}, Options{Healthy: true})
		if err != nil {
			t.Fatal(err)
		}
		if res.Broken != Holds {
			t.Fatalf("%s: %s is broken (%s):\n%s", b, res.Broken, res.Broken.Text(), lines(res.Trace))
		}
		t.Logf("%s: %d states, %d transitions, depth %d, %d with no in-sync member", b, res.States, res.Transitions, res.Depth, res.AllGone)
		for k, n := range res.Actions {
			seen[k] += n
		}
	}
	// Forget, Lost and Answer belong to mutants; Echo, to a read that would be wrong, needs three members and a fault.
	never := map[kind]bool{actAnswer: true, actForget: true, actLost: true, actEcho: true}
	for k, n := range seen {
		if (n == 0) != never[kind(k)] {
			t.Errorf("%s is possible in %d states", kind(k), n)
		}
	}
}

func TestEveryMutantIsCaught(t *testing.T) {
	for _, m := range Mutants() {
		t.Run(m.String(), func(t *testing.T) {
			b := m.Bounds()
			if m == NeverRepeats { // found at the end of a search only
				b = Bounds{Members: 2, Orders: 1, Faults: 1}
			}
			res, err := Search(&Spec{Bounds: b, Mutant: m}, Options{Healthy: m == NeverRepeats})
			if err != nil {
				t.Fatal(err)
			}
			if res.Broken == Holds {
				t.Fatalf("%s: not caught in %d states", m.Text(), res.States)
			}
			if len(res.Trace) == 0 {
				t.Fatal("caught without a trace")
			}
			t.Logf("%s broken after %d steps:\n%s", res.Broken, len(res.Trace), lines(res.Trace))
		})
	}
}

// A harmless variant shows that the checker does not flag every change.
func TestHarmlessVariantsHold(t *testing.T) {
	for _, m := range Variants() {
		res, err := Search(&Spec{Bounds: Bounds{Members: 2, Orders: 2, Faults: 1, HandOvers: 1}, Mutant: m}, Options{Except: m.Except(), Healthy: true})
		if err != nil || res.Broken != Holds {
			t.Errorf("%s: %v, %v\n%s", m, res.Broken, err, lines(res.Trace))
		}
	}
}

// The node's behaviour when a hand-over takes too long: a member may find its log diverged
// and exit. TestHarmlessVariantsHold shows that there is no other effect.
func TestUnheldHandOver(t *testing.T) {
	spec := &Spec{Bounds: Bounds{Members: 2, Orders: 2, Faults: 1, HandOvers: 1}, Mutant: HandOverUnheld}
	res, err := Search(spec, Options{})
	if err != nil || res.Broken != I6 {
		t.Errorf("%v, %v: I6 ought to break", res.Broken, err)
	}
	t.Logf("I6 broken after %d steps:\n%s", len(res.Trace), lines(res.Trace))
}

// Each invariant, checked alone, is broken by some mutant: none is vacuous.
func TestEveryInvariantCanBreak(t *testing.T) {
	by := map[Invariant]Mutant{
		I1: BlindPut, I2: CommitWhileShrinking, I3: RetireDropsFirst, I4: OldEcho, I5: LengthsNotHashes, I6: HandOverUndrained,
		I10: LearnerTakesOver, I13: NeverRepeats, I19: OldCopyFirst,
	}
	for _, v := range Invariants {
		t.Run(v.String(), func(t *testing.T) {
			b := by[v].Bounds()
			if v == I13 {
				b = Bounds{Members: 2, Orders: 1, Faults: 1}
			}
			res, err := Search(&Spec{Bounds: b, Mutant: by[v]}, Options{Only: v, Healthy: v == I13})
			if err != nil || res.Broken != v {
				t.Errorf("%s does not break %s alone: %v, %v", by[v], v, res.Broken, err)
			}
		})
	}
}

// A random walk meets only states that the search has reached: the visited set loses none,
// and packing is exact.
func TestRandomWalksStayInside(t *testing.T) {
	spec := &Spec{Bounds: Bounds{Members: 2, Orders: 1, Faults: 1, HandOvers: 1, Replace: true}}
	r := &search{spec: spec, t: newTable()}
	first := spec.initial()
	spec.settle(&first)
	k := first.pack()
	r.t.add(&k, 0)
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	size := r.t.n
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := first
		for range 60 {
			var next []State
			spec.next(&s, func(_ Action, n *State) { next = append(next, *n) })
			if len(next) == 0 {
				break
			}
			s = next[rng.IntN(len(next))]
			s.renamed = renamed{}
			k := s.pack()
			if _, isNew := r.t.add(&k, 0); isNew {
				t.Fatalf("a walk left the %d states of the search: %+v", size, s)
			}
			if again := k.unpack(); again != s {
				t.Fatalf("packing changes\n%+v into\n%+v", s, again)
			}
			settled := s
			spec.settle(&settled)
			settled.renamed = renamed{}
			if settled != s {
				t.Fatalf("settling twice changes\n%+v into\n%+v", s, settled)
			}
		}
	}
}

func TestTraceTellsTrueNames(t *testing.T) {
	res, err := Search(&Spec{Bounds: MutantBounds, Mutant: AdmitBelowFloor}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := lines(res.Trace)
	for _, want := range []string{"A1 crashes; A2 starts empty", "B1 proposes an admission, epoch 4: primary B1, inSync [B1 A2]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the trace lacks %q:\n%s", want, text)
		}
	}
	if !res.Trace[10].Fault && !strings.Contains(text, "crashes") {
		t.Error("no step is marked as a fault")
	}
}

func TestUnfinishedSearchSaysSo(t *testing.T) {
	_, err := Search(&Plan[0], Options{MaxBytes: 1})
	if !errors.Is(err, ErrMemory) {
		t.Errorf("got %v, want %v", err, ErrMemory)
	}
}

func TestBoundsAreChecked(t *testing.T) {
	for _, b := range []Bounds{{}, {Members: 1}, {Members: 4}, {Members: 2, Orders: 4}, {Members: 2, Faults: 4}, {Members: 2, HandOvers: 4}, {Members: 2, Retires: 4}, {Members: 2, Moves: 4}, {Members: 2, Moves: 1, HandOvers: 1}} {
		if _, err := Search(&Spec{Bounds: b}, Options{}); err == nil {
			t.Errorf("%+v is taken", b)
		}
	}
	if _, err := ParseMutant("missing"); err == nil {
		t.Error("an unknown mutant is accepted")
	}
}

func lines(trace []Step) string {
	var b strings.Builder
	for _, s := range trace {
		b.WriteString("  " + s.Text + "\n")
	}
	return b.String()
}
