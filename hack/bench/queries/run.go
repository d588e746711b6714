package queries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Options of a run.
type Options struct {
	Orders           int
	Changes          bool // patch and drop too
	Warmup, Duration time.Duration
	// Gate waits for a quiet machine before each system, for as long as Patience, and measures none without it.
	Gate     bool
	Patience time.Duration
	Limits   host.Limits
}

// Systems are all that there are, in the order of the table. heapMiB is of each server of those in Java, 0: as the orders
// need it; program is redis-server, "": the one in PATH.
func Systems(dir, program string, heapMiB int) (all []System, err error) {
	all = []System{&Grid{Dir: dir}, &Postgres{}, &Redis{Redis: peers.NewRedis(program, dir)}}
	for _, name := range []string{cases.Hazelcast, cases.Coherence} {
		j, err := newJava(name, heapMiB, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	return all, nil
}

// Memory returns, for each system, how much it needs, and an error if that is more than there is.
func Memory(systems []System, o *Options, availableMiB int64) (said []string, err error) {
	for _, s := range systems {
		need := s.MemoryMiB(o.Orders, o.Changes)
		said = append(said, fmt.Sprintf("%s: at most %d MiB for %d orders", s.Name(), need, o.Orders))
		if availableMiB > 0 && need > availableMiB {
			err = errors.Join(err, fmt.Errorf("%s needs %d MiB for %d orders, and this machine has %d MiB available: allowed: fewer --orders, other --systems, or no patch and drop (--changes=false)",
				s.Name(), need, o.Orders, availableMiB))
		}
	}
	return said, err
}

// Runner measures systems one after the other, each started afresh.
type Runner struct {
	Options
	Say func(format string, args ...any)

	orders    *Orders
	questions []Question
	table     results.Queries
}

// Run measures all systems. What one has failed with is in its rows; the error is about the run.
func (r *Runner) Run(ctx context.Context, systems []System) (*results.Queries, error) {
	r.orders = NewOrders(r.Orders)
	r.questions = r.orders.Questions()
	r.table.Orders = r.Orders
	for _, s := range r.prepare(ctx, systems) {
		if bad := r.await(ctx); bad != "" {
			r.Say("%s: not measured: %s", s.Name(), bad)
			r.table.Add(results.Query{Question: results.Load, System: s.Name(), Invalid: bad})
			continue
		}
		if err := r.system(ctx, s); err != nil {
			if ctx.Err() != nil {
				return &r.table, ctx.Err()
			}
			r.Say("%s failed: %v", s.Name(), err)
			r.table.Fail(s.Name(), err)
		}
	}
	return &r.table, ctx.Err()
}

// prepare has systems fetched and built, and returns those that are.
func (r *Runner) prepare(ctx context.Context, systems []System) (ready []System) {
	for _, s := range systems {
		r.Say("building what %s needs", s.Name())
		if err := s.Prepare(ctx); err != nil {
			r.Say("%s cannot be had: %v", s.Name(), err)
			r.table.Fail(s.Name(), err)
			continue
		}
		ready = append(ready, s)
	}
	return ready
}

// await returns why the machine is too busy for a system; "" if it is not.
func (r *Runner) await(ctx context.Context) string {
	if !r.Gate {
		return ""
	}
	state, quiet, err := r.Limits.AwaitQuiet(ctx, r.Patience, func(s host.State) { r.Say("waiting for a quiet machine: %s", s) })
	switch {
	case err != nil:
		return err.Error()
	case !quiet:
		return fmt.Sprintf("the machine was not quiet within %v: %s", r.Patience, state)
	}
	return ""
}

// system measures one.
func (r *Runner) system(ctx context.Context, s System) (err error) {
	r.Say("%s: starting, then %d orders", s.Name(), r.Orders)
	defer func() {
		if stop := s.Stop(); stop != nil && err == nil {
			err = fmt.Errorf("stop: %w", stop)
		}
	}()
	if err := s.Start(ctx, r.orders); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	err = r.watched(s.PIDs, s.Name(), func() error {
		took, err := r.orders.batches(func(batch []Order) (time.Duration, error) { return s.Load(ctx, batch) })
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		r.table.Add(results.Query{Question: results.Load, System: s.Name(), Ms: ms(took), Times: 1})
		askers, err := s.Askers(ctx)
		if err != nil {
			return err
		}
		r.Say("%s: %d orders loaded in %v; questions", s.Name(), r.Orders, took.Round(time.Millisecond))
		return r.ask(ctx, askers)
	})
	if err == nil && r.Changes {
		err = r.watched(func() []int { return nil }, s.Name(), func() error { return r.changes(ctx, s) })
	}
	for _, n := range s.Notes() {
		r.table.Note(n)
	}
	return err
}

// watched does something, and marks the rows that it added if the machine was not quiet meanwhile. pids are the processes of
// the system; none: it is not known whose the processor time was, and only what the hypervisor took is judged.
func (r *Runner) watched(pids func() []int, name string, do func() error) error {
	before, err := host.Take(pids())
	if err != nil {
		return err
	}
	from := len(r.table.Rows)
	if err := do(); err != nil {
		return err
	}
	known := pids()
	after, err := host.Take(known)
	if err != nil {
		return err
	}
	bad := r.Limits.Judge(host.Between(before, after, len(known) > 0))
	for i := range r.table.Rows[from:] {
		r.table.Rows[from+i].Invalid = bad
	}
	if bad != "" {
		r.Say("%s: does not count: %s", name, bad)
	}
	return nil
}

// ask asks all questions, each of all askers before the next one.
func (r *Runner) ask(ctx context.Context, askers []Asker) error {
	for i := range r.questions {
		for _, a := range askers {
			row, err := r.one(ctx, a, &r.questions[i])
			if err != nil {
				return fmt.Errorf("%s: %s: %w", a.Name(), r.questions[i].Op, err)
			}
			r.table.Add(row)
		}
	}
	return nil
}

// leastTimes is how often a question is asked at the least, and mostTimes at once: what a client in Java says of that is a line.
const leastTimes, mostTimes = 3, 500

// one asks one question, without timing it until it is warm. Every answer is compared.
func (r *Runner) one(ctx context.Context, a Asker, q *Question) (row results.Query, err error) {
	row = results.Query{Question: string(q.Op), System: a.Name()}
	asked, n := 0, 1
	ask := func(lasts time.Duration, least int) (all []time.Duration, err error) {
		for end := time.Now().Add(lasts); time.Now().Before(end) || len(all) < least; {
			took, err := a.Ask(ctx, q, asked, n)
			if err != nil {
				return nil, err
			}
			for i, t := range took {
				all = append(all, t.Duration)
				if want := q.Want(asked + i); t.Answer != want && row.Wrong == "" {
					row.Wrong = fmt.Sprintf("%s, must be %s", t.Answer, want)
				}
			}
			asked += len(took)
			n = atOnce(all)
		}
		return all, nil
	}
	if _, err := ask(r.Warmup, 1); err != nil {
		return row, err
	}
	timed, err := ask(r.Duration, leastTimes)
	if err != nil {
		return row, err
	}
	slices.Sort(timed)
	row.Ms, row.Times = ms(timed[(len(timed)-1)/2]), len(timed)
	if row.Wrong != "" {
		r.Say("%s: %s: WRONG: %s", a.Name(), q.Op, row.Wrong)
	}
	return row, nil
}

// atOnce is how many of these are about a twentieth of a second.
func atOnce(all []time.Duration) int {
	last := all[len(all)-1]
	return int(min(mostTimes, max(1, 50*time.Millisecond/max(1, last))))
}

// changes patches, and drops.
func (r *Runner) changes(ctx context.Context, s System) error {
	for _, c := range []struct {
		name string
		do   func(context.Context) (time.Duration, string, error)
	}{{results.Patch, s.Patch}, {results.Drop, s.Drop}} {
		r.Say("%s: %s", s.Name(), c.name)
		took, wrong, err := c.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if wrong != "" {
			r.Say("%s: %s: WRONG: %s", s.Name(), c.name, wrong)
		}
		r.table.Add(results.Query{Question: c.name, System: s.Name(), Ms: ms(took), Times: 1, Wrong: wrong})
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
