package sim

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// How many seeds the gate runs; `make sim` runs many more.
const (
	fixedSeeds = 70 // every shape five times
	freshSeeds = 42 // every shape three times
)

// freshFrom is the first seed of the part of the gate that is new each time, to replay
// that part.
const freshFrom = "ORDERGRID_SIM_FROM"

// notUnderRace skips a test under the race detector, which makes a world ten times slower. A world has one goroutine: that
// worlds share nothing is shown by those that TestSeeds and the tests of other kinds of worlds run there. hack/test.sh runs
// all of them without the detector too.
func notUnderRace(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("the gate runs these worlds without the race detector")
	}
}

// TestSeeds runs the part of the gate that is the same each time, so that a change that
// breaks it is noticed by its author.
func TestSeeds(t *testing.T) {
	m := Many{Seeds: fixedSeeds, StopAfter: 3}
	if testing.Short() || race.Enabled {
		m.Seeds = 2 * uint64(len(shapes))
	}
	sum := runSeeds(t, m)
	if sum.Stats.Acked == 0 || sum.Stats.Failovers == 0 || sum.Stats.HandOvers == 0 || sum.Stats.Answers == 0 {
		t.Errorf("no work was done in %d seeds: %+v", sum.Seeds, sum.Stats)
	}
}

// TestFreshSeeds runs the part of the gate that is new each time: seeds that passed once
// pass again.
func TestFreshSeeds(t *testing.T) {
	notUnderRace(t)
	m := Many{From: NewFrom(), Seeds: freshSeeds, StopAfter: 3}
	if s := os.Getenv(freshFrom); s != "" {
		from, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q, allowed: a whole number from 0", freshFrom, s)
		}
		m.From = from
	}
	if testing.Short() {
		m.Seeds = uint64(len(shapes))
	}
	t.Logf("again with: %s", ReplayRange(m.From, m.Seeds))
	runSeeds(t, m)
}

func runSeeds(t *testing.T, m Many) Summary {
	sum := m.Run()
	for _, r := range sum.Failed {
		t.Errorf("seed %d (%s): %v\nreplay: %s", r.Seed, r.Profile, r.Violation, Replay(r.Seed))
	}
	t.Logf("\n%s", sum.String())
	return sum
}

// TestRanges: a seed of the second range is not mistaken for one of the first.
func TestRanges(t *testing.T) {
	m := Many{From: 5, Seeds: 2, FreshFrom: 1000, Fresh: 2}
	for n, want := range []uint64{5, 6, 1000, 1001} {
		if got := m.seed(uint64(n)); got != want {
			t.Errorf("seed %d of the ranges is %d, want %d", n, got, want)
		}
	}
}

// TestPermanentSeeds runs the seeds that once found something.
func TestPermanentSeeds(t *testing.T) {
	notUnderRace(t)
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		number, why, ok := strings.Cut(line, " ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !ok {
			t.Fatalf("testdata/seeds.txt: %q, allowed: a seed, a space, and why it is kept", line)
		}
		n++
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			if r := Run(seed, nil); r.Violation != nil {
				t.Errorf("seed %d (%s; kept for: %s): %v\nreplay: %s", seed, r.Profile, strings.TrimSpace(why), r.Violation, Replay(seed))
			}
		})
	}
	if n == 0 {
		t.Error("testdata/seeds.txt names no seed")
	}
}

// TestSameSeedSameTrace: otherwise findings could not be reproduced.
func TestSameSeedSameTrace(t *testing.T) {
	notUnderRace(t)
	for seed := range uint64(len(shapes)) {
		first, second := traceHash(seed), traceHash(seed)
		if first != second {
			t.Errorf("seed %d has two traces", seed)
		}
		if seed > 0 && first == traceHash(seed-1) {
			t.Errorf("seeds %d and %d have the same trace", seed-1, seed)
		}
	}
}

func traceHash(seed uint64) string {
	h := sha256.New()
	r := Run(seed, h)
	fmt.Fprintf(h, "%+v %v", r.Stats, r.Faults)
	return fmt.Sprintf("%x", h.Sum(nil))
}
