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

// shortSeeds is how many seeds the gate runs; `make sim` runs many more.
const shortSeeds = 196 // every shape fourteen times

func TestSeeds(t *testing.T) {
	m := Many{Seeds: shortSeeds, StopAfter: 3}
	if testing.Short() || race.Enabled { // the detector makes a run ten times slower; a world has one goroutine, so a few seeds show that worlds share nothing
		m.Seeds = 42
	}
	sum := m.Run()
	for _, r := range sum.Failed {
		t.Errorf("seed %d (%s): %v\nreplay: %s", r.Seed, r.Profile, r.Violation, Replay(r.Seed))
	}
	if sum.Stats.Acked == 0 || sum.Stats.Failovers == 0 || sum.Stats.HandOvers == 0 {
		t.Errorf("nothing happened in %d seeds: %+v", sum.Seeds, sum.Stats)
	}
	t.Logf("\n%s", sum.String())
}

// TestPermanentSeeds runs the seeds that once found something.
func TestPermanentSeeds(t *testing.T) {
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
		if r := Run(seed, nil); r.Violation != nil {
			t.Errorf("seed %d (%s; kept for: %s): %v\nreplay: %s", seed, r.Profile, strings.TrimSpace(why), r.Violation, Replay(seed))
		}
	}
	if n == 0 {
		t.Error("testdata/seeds.txt names no seed")
	}
}

// TestSameSeedSameTrace: without this nothing a seed finds could be looked at.
func TestSameSeedSameTrace(t *testing.T) {
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
