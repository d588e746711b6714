package sim

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Many is one or two ranges of seeds and how to run them.
type Many struct {
	From, Seeds uint64        // From, From+1, ... From+Seeds-1
	FreshFrom   uint64        // and then FreshFrom, FreshFrom+1, ... FreshFrom+Fresh-1: see NewFrom
	Fresh       uint64        // 0: no second range
	World       string        // only seeds of this kind of world; "": all
	Workers     int           // 0: one per processor
	Pairs       bool          // pairs of a partition and its standby; World does not matter then
	StopAfter   int           // failed seeds; 0: none, all are run
	Progress    io.Writer     // a line now and then; nil: none
	Every       time.Duration // between two of them; 0: 10 s
}

// Summary of many runs.
type Summary struct {
	World    string // the only kind that was run; "": all
	Seeds    uint64 // that were run
	Stats    Stats
	Faults   faultCounts
	Profiles map[string]uint64
	Failed   []Result // by seed
	Took     time.Duration
}

func (m Many) run(seed uint64) Result {
	switch {
	case m.Pairs:
		return RunPair(seed, nil)
	case m.World == WorldMatch:
		return RunMatch(seed, nil)
	case m.World == WorldJournal:
		return RunJournal(seed, nil)
	}
	return Run(seed, nil)
}

// of reports whether a seed's world is the one that is wanted.
func (m Many) of(seed uint64) bool {
	switch m.World {
	case "", WorldMatch, WorldJournal, worldOf(seed):
		return true
	case WorldMoves:
		return movesRand(seed) != nil
	case WorldRestore:
		return isRestored(seed)
	case WorldFix:
		return fixRand(seed) != nil
	}
	return false
}

// Run runs all seeds, several at once; each world has one goroutine.
func (m Many) Run() Summary {
	workers := m.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var (
		next  atomic.Uint64
		stop  atomic.Bool
		mu    sync.Mutex
		wg    sync.WaitGroup
		start = time.Now()
		told  = start
		sum   = Summary{World: m.World, Profiles: map[string]uint64{}}
	)
	every := orDefault(m.Every, 10*time.Second)
	for range workers {
		wg.Go(func() {
			for !stop.Load() {
				n := next.Add(1) - 1
				if n >= m.Seeds+m.Fresh {
					return
				}
				seed := m.seed(n)
				if !m.Pairs && !m.of(seed) {
					continue
				}
				r := m.run(seed)
				mu.Lock()
				sum.take(&r)
				if m.Progress != nil && r.Violation != nil {
					fmt.Fprintf(m.Progress, "FAILED seed %d (%s): %.200v\n", r.Seed, r.Profile, r.Violation)
				}
				if m.StopAfter > 0 && len(sum.Failed) >= m.StopAfter {
					stop.Store(true)
				}
				if m.Progress != nil && time.Since(told) > every {
					told = time.Now()
					fmt.Fprintf(m.Progress, "%d of %d seeds, %d failed, %d orders acknowledged, %d fail-overs, %.0f s\n",
						sum.Seeds, m.Seeds+m.Fresh, len(sum.Failed), sum.Stats.Acked, sum.Stats.Failovers, time.Since(start).Seconds())
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(sum.Failed, func(a, b Result) int { return cmp.Compare(a.Seed, b.Seed) })
	sum.Took = time.Since(start)
	return sum
}

// seed is the n-th of both ranges.
func (m *Many) seed(n uint64) uint64 {
	if n < m.Seeds {
		return m.From + n
	}
	return m.FreshFrom + n - m.Seeds
}

// NewFrom returns a random first seed: it is different each time, so its user prints it.
func NewFrom() uint64 { return 10_000_000 + rand.Uint64N(1_000_000_000) }

// WorldMoves are the worlds, of every kind, in which the partition moves between pods.
const WorldMoves = "moves"

// WorldRestore are the worlds, of every kind, in which the site is lost and restored from an
// archive.
const WorldRestore = "restore"

// WorldFix are the worlds, of every kind, with FIX sessions.
const WorldFix = "fix"

// isRestored reports whether a seed is such a world.
func isRestored(seed uint64) bool {
	return restoresRand(seed) != nil && newProfile(seed, rand.New(rand.NewPCG(seed, 0x6f72646572))).restores != nil
}

// Worlds are the kinds of worlds.
func Worlds() []string {
	var names []string
	for _, s := range shapes {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

func worldOf(seed uint64) string { return shapes[seed%uint64(len(shapes))].name }

func (s *Summary) take(r *Result) {
	s.Seeds++
	s.Stats.add(&r.Stats)
	for k := range r.Faults {
		s.Faults[k] += r.Faults[k]
	}
	s.Profiles[r.Profile]++
	if r.Violation != nil {
		s.Failed = append(s.Failed, *r)
	}
}

// enoughSeeds is how many seeds must cover every kind of fault: a run without one of them
// proves less.
const enoughSeeds = 400

// ofJournals are the faults that happen in the world journal only.
var ofJournals = []faultKind{faultPowerCut, faultSpoiled, faultHeirUnheard}

// Missing are the kinds of faults that never happened, though they should have: in a run of
// all worlds every kind but those of journals, in one of the world journal those.
func (s *Summary) Missing() []string {
	journals := s.World == WorldJournal
	if s.Seeds < enoughSeeds || !journals && (s.World != "" || len(s.Profiles) < len(Worlds())) {
		return nil
	}
	var names []string
	for k, n := range s.Faults {
		if kind := faultKind(k); n == 0 && slices.Contains(ofJournals, kind) == journals {
			names = append(names, kind.String())
		}
	}
	return names
}

// String formats the summary.
func (s *Summary) String() string {
	var b strings.Builder
	st := &s.Stats
	fmt.Fprintf(&b, "%d seeds in %.1f s (%.0f per second), %.0f s of simulated time, %d steps\n",
		s.Seeds, s.Took.Seconds(), float64(s.Seeds)/s.Took.Seconds(), float64(st.Simulated)/1e9, st.Steps)
	fmt.Fprintf(&b, "orders acknowledged %d, rejected and abandoned %d, of these by a function %d, rejected as duplicate %d, resent after their answer %d; operations checked by Porcupine %d\n",
		st.Acked, st.Refused, st.Decided, st.Duplicates, st.Repeated, st.Ops)
	fmt.Fprintf(&b, "changes of the configuration %d, to another primary %d, of these planned %d, with loss accepted %d; replicas discarded %d\n",
		st.Changes, st.Failovers, st.HandOvers, st.Losses, st.Discards)
	if st.Fills > 0 {
		fmt.Fprintf(&b, "trades %d, in auctions %d; phases of calendars %d; executions to sessions %d, to followers %d; books shown %d\n", st.Fills, st.Auctioned, st.Phases, st.Executions, st.Taped, st.Books)
	}
	fmt.Fprintf(&b, "entries freed %d; learners that began with a snapshot %d\n", st.Freed, st.Snapshots)
	if st.Records > 0 {
		fmt.Fprintf(&b, "records of functions on all replicas %d; changes of the functions in force %d\n", st.Records, st.FunctionChanges)
	}
	fmt.Fprintf(&b, "profiles of limits that came into force in the order they were given %d, definitions of regions %d\n", st.Profiles, st.Definitions)
	fmt.Fprintf(&b, "answers of views %d; askers that were told that they hold another history %d\n", st.Answers, st.AskedOther)
	fmt.Fprintf(&b, "entries to subscribers %d, to followers %d, of which %d were told that they hold another history; sink writes refused as of an older epoch %d\n", st.Delivered, st.Followed, st.Diverged, st.SinkFenced)
	fmt.Fprintf(&b, "FIX sessions opened %d, reports %d, executions %d, drop copies %d, states %d, mass cancels %d of %d orders, lapses %d and %d in the end, fetched from the log again %d; requests refused for now %d\n", st.FixOpened, st.FixReports, st.FixExecuted, st.FixCopies, st.FixStates, st.FixMasses, st.FixSwept, st.Lapses, st.LapsesAwaited, st.FixResent, st.FixHeld)
	var names []string
	for name, n := range s.Profiles {
		names = append(names, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "worlds: %s\n", strings.Join(names, ", "))
	fmt.Fprintf(&b, "faults:\n")
	for k, n := range s.Faults {
		fmt.Fprintf(&b, "  %9d %s\n", n, faultKind(k))
	}
	return b.String()
}

// Replay is the command that shows a seed again.
func Replay(seed uint64) string { return fmt.Sprintf("make sim SEED=%d", seed) }

// ReplayPair is the command that runs the pair of a seed again, with its trace.
func ReplayPair(seed uint64) string {
	return fmt.Sprintf("go run ./grid-node/sim/cmd/sim --pairs --seed %d", seed)
}

// ReplayMatch is the command that runs the world match of a seed again, with its trace.
func ReplayMatch(seed uint64) string {
	return fmt.Sprintf("make sim SEED=%d WORLD=%s", seed, WorldMatch)
}

// ReplayJournal is the same of the world journal.
func ReplayJournal(seed uint64) string {
	return fmt.Sprintf("make sim SEED=%d WORLD=%s", seed, WorldJournal)
}

// ReplayRange is the command that runs a range again.
func ReplayRange(from, seeds uint64) string {
	return fmt.Sprintf("make sim SEEDS=%d FROM=%d", seeds, from)
}
