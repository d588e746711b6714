package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Options of a run.
type Options struct {
	Repeat         int
	Rate           int // orders per second
	Sessions       int // of each partition
	Reads, Orders  int // per second, of the direct prober at each node
	Seed           uint64
	Calm           time.Duration // without a fault before each repetition
	Stop           time.Duration // how long a process hangs, or the arbiter stays away after a kill
	Away           time.Duration // how long the arbiter stays away
	Patience       time.Duration // how long to wait for service and redundancy
	RequestTimeout time.Duration // of an order, all retries included
	Fill           int64         // bytes of log that rejoin puts into a partition first
	Progress       func(format string, args ...any)
}

// Defaults of Options.
func Defaults() Options {
	return Options{Rate: 3000, Sessions: 4, Reads: 100, Orders: 20, Calm: time.Second, Stop: 5 * time.Second, Away: 2 * time.Minute,
		Patience: time.Minute, RequestTimeout: 30 * time.Second, Fill: 2 << 30, Progress: func(string, ...any) {}}
}

// Run plays a scenario against the target and returns what was recorded, whole
// or as far as it came. The target is healed when it returns, not closed.
func Run(ctx context.Context, s Scenario, target faults.Target, o Options) (*history.History, error) {
	h := &history.History{Scenario: s.Name, Target: target.Name(), Started: time.Now(), StartedAt: clock.Now(), Seed: o.Seed, Rate: o.Rate, Replicas: target.Replicas()}
	dial := func(name string) (*client.Client, error) {
		return client.Dial(ctx, client.Config{Endpoints: target.Endpoints(), Grid: target.Grid(), Name: name, RequestTimeout: o.RequestTimeout})
	}
	sender, err := dial("robustness-traffic")
	if err != nil {
		return h, err
	}
	defer func() { _ = sender.Close() }()
	watch, err := dial("robustness-watch")
	if err != nil {
		return h, err
	}
	defer func() { _ = watch.Close() }()
	for _, p := range sender.Table() {
		h.Partitions = append(h.Partitions, p.ID)
	}
	e := &Env{Options: o, target: target, watch: watch, h: h, rng: rand.New(rand.NewPCG(o.Seed, 1))}
	if err := target.Quiet(ctx); err != nil {
		return h, err
	}
	before, err := host.Take(target.CPU(ctx))
	if err != nil {
		return h, err
	}
	e.traffic, err = traffic.Start(ctx, traffic.Config{Client: sender, Grid: target.Grid(), Partitions: h.Partitions,
		Rate: o.Rate, Sessions: o.Sessions, Reads: o.Reads, Orders: o.Orders, Seed: o.Seed})
	if err != nil {
		return h, err
	}
	err = e.repeat(ctx, s)
	return h, errors.Join(err, e.finish(ctx, before))
}

func (e *Env) repeat(ctx context.Context, s Scenario) error {
	if err := clock.Wait(ctx, 500*time.Millisecond); err != nil { // connections, caches, collectors
		return err
	}
	for n := range e.Repeat {
		began := len(e.h.Reps)
		err := s.run(ctx, e, n+1)
		if len(e.h.Reps) > began {
			rep := &e.h.Reps[began]
			if err != nil {
				rep.Failed = err.Error()
			}
			e.tell(rep)
		}
		if err != nil {
			return fmt.Errorf("%s, repetition %d of %d: %w", s.Name, n+1, e.Repeat, err)
		}
	}
	return clock.Wait(ctx, time.Second) // what comes after the last fault
}

// tell prints the progress line of a repetition.
func (e *Env) tell(rep *history.Rep) {
	c := e.traffic.Counts()
	if rep.Failed != "" {
		e.Progress("%3d/%d  %s: %s", rep.Number, e.Repeat, rep.What, rep.Failed)
		return
	}
	e.Progress("%3d/%d  %s: longest gap %s, redundant after %s; %d orders, %d refused, %d unknown", rep.Number, e.Repeat, rep.What,
		validate.LiveTimeline(e.traffic.Acks()).Outage(rep).Worst.Round(100*time.Microsecond), time.Duration(rep.Redundant-rep.From).Round(time.Millisecond), c.Created, c.Rejected, c.Unknown)
}

// finish heals, ends the traffic and reads what the grid holds. It works also
// when ctx has ended: everything broken is healed in any case.
func (e *Env) finish(ctx context.Context, before host.Sample) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.RequestTimeout+2*time.Minute)
	defer cancel()
	err := e.target.Heal(ctx)
	use, took := e.use(ctx, before)
	if took == nil {
		e.h.Host = use
	}
	if interrupted {
		return errors.Join(err, took)
	}
	if e2 := e.redundant(ctx, nil); e2 != nil {
		e.h.Notes = append(e.h.Notes, "at the end: "+e2.Error())
		err = errors.Join(err, e2)
	}
	ticks := e.h.Host
	err = errors.Join(err, took, e.traffic.Stop(ctx, e.h))
	ticks.Ticks = e.h.Host.Ticks
	e.h.Host = ticks
	return errors.Join(err, collect.All(ctx, e.watch, collect.Files(e.target.SinkFiles), e.h))
}

func (e *Env) use(ctx context.Context, before host.Sample) (history.Host, error) {
	after, err := host.Take(e.target.CPU(ctx))
	if err != nil {
		return history.Host{}, err
	}
	// Processes that a fault ended took their processor time with them, so what is
	// foreign is known only where nothing was killed.
	u := host.Between(before, after, false)
	return history.Host{Cores: u.Cores, Own: u.Own, Busy: u.Busy, Foreign: u.Foreign, Pressure: u.Pressure, Steal: u.Steal, Load1: u.LoadAfter}, nil
}
