// Command sim runs the simulator of grid-node/sim: many seeds, or one with its
// trace. Built with the tag mutants it also proves that deliberately broken
// variants of the protocol are caught.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/sim"
	"github.com/ordergrid/ordergrid/internal/linear"
)

type options struct {
	seeds, fresh uint64
	from         string
	seed         uint64
	quiet, pairs bool
	world        string
	workers      int
	stopAfter    int
	html         string
	mutant       string
}

var worlds = append(sim.Worlds(), sim.WorldMoves, sim.WorldRestore, sim.WorldFix, sim.WorldMatch, sim.WorldJournal)

func main() {
	debug.SetGCPercent(400) // worlds are small and last for milliseconds
	var o options
	cmd := &cobra.Command{
		Use:   "sim [--seeds n [--from s|new] [--fresh n] | --seed s]",
		Short: "Run partitions under simulated faults and check every invariant after every step",
		Long: `Runs whole partitions (the protocol core of the node) in simulated worlds: a network,
clocks, processes, an API server, a sink and clients that fail in every way. Every
invariant of docs/replication.md is checked after every step, and the clients' history
by Porcupine. What happens depends on the seed alone.

Ends with status 1 if an invariant did not hold, or if a long run did not see every
kind of fault. docs/simulation.md tells how to read a trace.`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") {
				return one(&o)
			}
			return many(&o)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seeds, "seeds", 200, "run this many seeds")
	f.StringVar(&o.from, "from", "0", "the first of them; new: a different one each time, which is printed")
	f.Uint64Var(&o.fresh, "fresh", 0, "and this many more, from a different first one each time, which is printed")
	f.Uint64Var(&o.seed, "seed", 0, "run this seed and print its trace")
	f.BoolVar(&o.quiet, "no-trace", false, "with --seed: print the outcome only")
	f.StringVar(&o.world, "world", "", "only seeds of this kind of world: "+strings.Join(worlds, ", "))
	f.BoolVar(&o.pairs, "pairs", false, "run pairs of a partition and its standby in another cluster")
	f.IntVar(&o.workers, "workers", 0, "worlds at a time (0: one per processor)")
	f.IntVar(&o.stopAfter, "stop-after", 5, "stop after this many failed seeds (0: run all)")
	f.StringVar(&o.html, "html", "out", "directory for Porcupine's picture of a history that is not linearizable")
	mutantFlags(cmd, &o)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// one replays a seed. Those of a world that all seeds have describe themselves in the trace.
func one(o *options) error {
	if err := o.checkWorld(); err != nil {
		return err
	}
	if err := selectMutant(o.mutant); err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	var trace *bufio.Writer
	if !o.quiet {
		trace = out
	}
	if !o.pairs && o.world != sim.WorldMatch && o.world != sim.WorldJournal {
		fmt.Fprintln(out, sim.Describe(o.seed))
	}
	r := run(o, trace)
	if err := out.Flush(); err != nil {
		return err
	}
	if r.Violation == nil {
		fmt.Printf("seed %d: every invariant held; %d orders acknowledged, %d steps\n", r.Seed, r.Stats.Acked, r.Stats.Steps)
		return nil
	}
	report(&r, o)
	return fmt.Errorf("seed %d failed", r.Seed)
}

// run avoids a non-nil interface around a nil writer.
func run(o *options, trace *bufio.Writer) sim.Result {
	do := sim.Run
	switch {
	case o.pairs:
		do = sim.RunPair
	case o.world == sim.WorldMatch:
		do = sim.RunMatch
	case o.world == sim.WorldJournal:
		do = sim.RunJournal
	}
	if trace == nil {
		return do(o.seed, nil)
	}
	return do(o.seed, trace)
}

func (o *options) checkWorld() error {
	if o.world != "" && !slices.Contains(worlds, o.world) {
		return fmt.Errorf("--world is %q, allowed: %s", o.world, strings.Join(worlds, ", "))
	}
	return nil
}

// many runs a range of seeds.
func many(o *options) error {
	if err := selectMutant(o.mutant); err != nil {
		return err
	}
	if err := o.checkWorld(); err != nil {
		return err
	}
	m := sim.Many{Seeds: o.seeds, Fresh: o.fresh, World: o.world, Pairs: o.pairs, Workers: o.workers, StopAfter: o.stopAfter, Progress: os.Stderr}
	if err := ranges(o, &m); err != nil {
		return err
	}
	sum := m.Run()
	fmt.Print(sum.String())
	for i := range sum.Failed {
		report(&sum.Failed[i], o)
	}
	var errs []error
	if n := len(sum.Failed); n > 0 {
		errs = append(errs, fmt.Errorf("%d of %d seeds failed", n, sum.Seeds))
	}
	if missing := sum.Missing(); len(missing) > 0 && !o.pairs { // the usual worlds cover them
		errs = append(errs, fmt.Errorf("faults that never happened in %d seeds, so they are not covered: %q", sum.Seeds, missing))
	}
	return errors.Join(errs...)
}

// ranges sets the first seeds, and prints them where they differ each time.
func ranges(o *options, m *sim.Many) error {
	ofWorld := ""
	if o.world != "" {
		ofWorld = " WORLD=" + o.world
	}
	if o.from == "new" {
		m.From = sim.NewFrom()
		fmt.Printf("new seeds, replay with: %s\n", sim.ReplayRange(m.From, m.Seeds)+ofWorld)
	} else {
		from, err := strconv.ParseUint(o.from, 10, 64)
		if err != nil {
			return fmt.Errorf("--from is %q, allowed: a whole number from 0, or new", o.from)
		}
		m.From = from
	}
	if m.Fresh > 0 {
		m.FreshFrom = sim.NewFrom()
		fmt.Printf("of these %d new seeds, replay with: %s\n", m.Fresh, sim.ReplayRange(m.FreshFrom, m.Fresh)+ofWorld)
	}
	return nil
}

// report prints a failed seed.
func report(r *sim.Result, o *options) {
	replay := sim.Replay(r.Seed)
	if o.pairs {
		replay = sim.ReplayPair(r.Seed)
	} else if o.world == sim.WorldMatch {
		replay = sim.ReplayMatch(r.Seed)
	} else if o.world == sim.WorldJournal {
		replay = sim.ReplayJournal(r.Seed)
	}
	fmt.Printf("\nFAILED seed %d (%s): %v\nreplay: %s\n", r.Seed, r.Profile, r.Violation, replay)
	if len(r.History) == 0 || o.html == "" {
		return
	}
	path, err := writeHistory(o.html, r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim: history:", err)
		return
	}
	fmt.Printf("history: %s\n", path)
}

func writeHistory(dir string, r *sim.Result) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, fmt.Sprintf("sim-seed-%d.html", r.Seed))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return path, linear.WriteHTML(f, r.History)
}
