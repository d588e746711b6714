// Package rounds measures cases: the systems in turn, round by round, each
// started afresh, so that a machine whose speed drifts affects all equally.
package rounds

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Options of a run.
type Options struct {
	Rounds           int // that must count, per case and system
	Repeats          int // of a round that does not, before the case is given up
	Warmup, Duration time.Duration
	// Gate waits for a quiet machine before each round and repeats rounds in
	// which it was not; without it such rounds are used and marked.
	Gate     bool
	Patience time.Duration // longest wait before one round
	Limits   host.Limits
	ClientIO string // of the grid's client; "" is its default
	Procs    int    // GOMAXPROCS of the generator; 0 as the shape needs
	// PeersWarmup is load ahead of Warmup on systems that have a generator of their own.
	PeersWarmup time.Duration
}

// Runner measures cases.
type Runner struct {
	Options
	Self    string // this program, for the generator's process
	Systems []system.System
	Say     func(format string, args ...any) // progress

	unquiet int // rounds in a row for which the machine was never quiet
}

// hopeless is how many consecutive rounds wait for quiet without success before the rest
// only checks: a run on a busy machine ends, and continues when it gets quiet.
const hopeless = 3

// Outcome of a case.
type Outcome struct {
	Rows   []results.Row
	Rounds map[string][]results.Round // by system
	// Err is the first failure of a system: not a matter of the environment.
	Err error
}

// Case measures one case at a place.
func (r *Runner) Case(ctx context.Context, at system.Place, c *cases.Case) (Outcome, error) {
	out := Outcome{Rounds: map[string][]results.Round{}}
	systems := r.usable(c)
	for n := range r.Rounds {
		// Each round begins with another system: none always follows the same one.
		order := append(slices.Clone(systems[n%len(systems):]), systems[:n%len(systems)]...)
		if err := r.turn(ctx, at, c, n, order, &out); err != nil {
			return out, err
		}
	}
	alone := map[bool]float64{} // of one generator and the other, which is the same for all that need it
	for _, s := range systems {
		row := results.NewRow(c, s.Name(), out.Rounds[s.Name()], r.Rounds, !r.Gate)
		own := ownGenerator(s)
		if _, known := alone[own != nil]; !known {
			cost, err := r.generatorAlone(ctx, c, own)
			if err != nil {
				return out, err
			}
			alone[own != nil] = cost
		}
		row.GeneratorCPU = alone[own != nil]
		out.Rows = append(out.Rows, row)
	}
	results.Judge(c, out.Rows, func(name string) bool {
		return slices.ContainsFunc(systems, func(s system.System) bool { return s.Name() == name && s.Floor() })
	})
	return out, nil
}

// turn measures each system once. One whose round does not count is repeated after
// the others: what disturbed it was short, most likely.
func (r *Runner) turn(ctx context.Context, at system.Place, c *cases.Case, n int, order []system.System, out *Outcome) error {
	attempts := map[string]int{}
	for queue := order; len(queue) > 0; {
		s := queue[0]
		queue = queue[1:]
		round := r.round(ctx, at, c, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out.Rounds[s.Name()] = append(out.Rounds[s.Name()], round.Round)
		r.tell(c, s, n, &round)
		if round.err != nil && out.Err == nil {
			out.Err = fmt.Errorf("%s, %s: %w", c.Name, s.Name(), round.err)
		}
		attempts[s.Name()]++
		switch {
		case round.Bad == "":
		case r.Gate && !round.neverQuiet && attempts[s.Name()] <= r.Repeats:
			queue = append(queue, s)
		case r.Gate: // waiting as long again would not help
			r.Say("%s %s: round %d is given up", c.Name, s.Name(), n+1)
		}
	}
	return nil
}

// usable systems of a case. A case that only the grid can show has no floors.
func (r *Runner) usable(c *cases.Case) []system.System {
	var out []system.System
	for _, s := range r.Systems {
		if s.Missing() == "" && c.Uses(s.Name()) {
			out = append(out, s)
		}
	}
	return out
}

// Usable reports whether a case has a system to run with.
func (r *Runner) Usable(c *cases.Case) bool { return len(r.usable(c)) > 0 }

type round struct {
	results.Round
	before     host.State
	neverQuiet bool
	err        error // of the system or the generator
}

// round waits for a quiet machine, starts a system, loads it and stops it.
func (r *Runner) round(ctx context.Context, at system.Place, c *cases.Case, s system.System) (out round) {
	quiet := true
	var err error
	if r.Gate {
		patience := r.Patience
		if r.unquiet >= hopeless {
			patience = 0
		}
		out.before, quiet, err = r.Limits.AwaitQuiet(ctx, patience, func(st host.State) { r.Say("waiting for a quiet machine: %s", st) })
	}
	if err == nil && !quiet {
		r.unquiet++
		out.Bad, out.neverQuiet = fmt.Sprintf("the machine was not quiet within %v: %s", r.Patience, out.before), true
		return out
	}
	r.unquiet = 0
	if err == nil {
		out.Result, err = r.Measure(ctx, at, c, s, "")
	}
	switch {
	case err != nil:
		out.err, out.Bad = err, err.Error()
	case out.Failed > 0:
		out.err = fmt.Errorf("%d orders failed: %s", out.Failed, out.Error)
		out.Bad = out.err.Error()
	case out.Orders == 0:
		out.err = fmt.Errorf("no order was answered in %v", r.Duration)
		out.Bad = out.err.Error()
	default:
		out.Bad = r.Limits.Judge(out.Use)
	}
	return out
}

// Measure starts a system, loads it by the case, and stops it. With a
// directory it also writes profiles.
func (r *Runner) Measure(ctx context.Context, at system.Place, c *cases.Case, s system.System, profileDir string) (res generator.Result, err error) {
	run, err := s.Start(ctx, at, system.Topology{Copies: c.Copies, Reads: c.Shape.Op == generator.Get,
		Leased: c.Leased(), Partitions: c.Partitions, Request: c.Request(), Reply: c.Reply(),
		MemoryMiB: min(c.MemoryMiB, affordable(c.Copies)), Prefault: min(c.PrefaultMiB(), affordable(c.Copies)/4), Profile: profileDir != ""})
	if err != nil {
		return res, fmt.Errorf("start %s: %w", s.Name(), err)
	}
	defer func() {
		if stop := run.Stop(); stop != nil && err == nil {
			err = fmt.Errorf("stop %s: %w", s.Name(), stop)
		}
	}()
	var recording *recording
	spec := r.spec(c)
	spec.Driver, spec.Addresses, spec.PIDs, spec.ProfileDir, spec.TLS, spec.FIX = run.Driver, run.Addresses, run.PIDs, profileDir, run.TLS, run.FIX
	spec.Program, spec.Told = ownGenerator(s), run.Told
	if profileDir != "" {
		recording = record(ctx, at, run.HTTP, profileDir, spec.Warmup, spec.Duration)
	}
	res, err = r.generate(ctx, at, &spec)
	if err != nil {
		return res, err
	}
	if len(run.HTTP) > 0 {
		if res.GoHeap, err = goHeap(ctx, at, run.HTTP[0]); err != nil {
			return res, err
		}
	}
	return res, recording.finish(ctx)
}

func (r *Runner) spec(c *cases.Case) generator.Spec {
	return generator.Spec{Shape: c.Shape, Size: c.Size, Request: c.Request(), Reply: c.Reply(), Copies: c.Copies, Warmup: r.Warmup, Duration: r.Duration,
		Held: c.Held, ClientIO: r.ClientIO, Procs: r.Procs, ReadMode: c.ReadMode, ProgramWarmup: r.PeersWarmup}
}

// ownGenerator is the command line of a system's own generator; nil: it has none.
func ownGenerator(s system.System) []string {
	if own, ok := s.(system.WithGenerator); ok {
		return own.Generator()
	}
	return nil
}

// generatorAlone is the generator's CPU time per order in microseconds against
// nothing.
func (r *Runner) generatorAlone(ctx context.Context, c *cases.Case, program []string) (float64, error) {
	spec := r.spec(c)
	spec.Program, spec.ProgramWarmup = program, min(r.PeersWarmup, 2*time.Second)
	spec.Driver, spec.Warmup, spec.Duration = generator.Null, 0, min(r.Duration, 500*time.Millisecond)
	if program != nil {
		spec.Warmup = 200 * time.Millisecond // its threads run by then
	}
	res, err := r.generate(ctx, system.Loopback{}, &spec)
	if err != nil || res.Orders == 0 {
		return 0, err
	}
	return float64(res.OwnCPU.Nanoseconds()) / 1e3 / float64(res.Orders), nil
}

func (r *Runner) tell(c *cases.Case, s system.System, n int, x *round) {
	if x.Bad != "" {
		r.Say("%s round %d/%d %s: does not count: %s", c.Name, n+1, r.Rounds, s.Name(), x.Bad)
		return
	}
	h := x.SendToEnd
	r.Say("%s round %d/%d %s: p50 %.1f us, p99 %.1f us, %.0f orders/s", c.Name, n+1, r.Rounds, s.Name(),
		float64(h.Percentile(50))/1e3, float64(h.Percentile(99))/1e3, float64(x.Orders)/x.Elapsed.Seconds())
}
