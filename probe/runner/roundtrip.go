package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// roundTrips measures the round trip to the server, before anything is written, for scenarios that
// compare it with a write. A ping is handled like an order: created on schedule, passed to a
// publishing thread, sent and answered; only that the server answers from its connection loop. A
// machine that is idle longer takes longer to wake up, so each rate is measured separately.
func (r *Run) roundTrips(ctx context.Context) error {
	plan := r.cfg.Plan
	if plan.Scenario != published.WriteScenario {
		return nil
	}
	r.awaitQuiet(ctx)
	for _, p := range r.probes {
		for _, rate := range plan.Rates {
			t, err := r.roundTrip(ctx, p, rate)
			if err != nil {
				return fmt.Errorf("probe %s: measure the round trip to the server: %w", p.load.Name, err)
			}
			r.result.RoundTrips = append(r.result.RoundTrips, *t)
			r.cfg.Progress.Say(fmt.Sprintf("%s at %d/s: round trip %.1f us, mean of %d", scenario.WriteLabel("ping", plan.Replicas), rate, t.Latency.Mean()/1e3, t.Latency.Count()))
		}
	}
	return nil
}

// warmPings of a measurement do not count: connections and caches are cold.
const warmPings = 20

func (r *Run) roundTrip(ctx context.Context, p *probe, rate int) (_ *report.RoundTrip, err error) {
	pinger, err := r.grid.Pinger(ctx, p.partition)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pinger.Close()) }()
	schedule, err := load.NewSteady(rate, 0)
	if err != nil {
		return nil, err
	}
	n := schedule.Orders(int64(scenario.PingTime)) + warmPings
	orders, err := load.NewOrders(n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, orders.Close()) }()
	defer rest()()
	by := load.Probe{Name: p.load.Name, ID: p.load.ID, Version: p.load.Version, Threads: []load.Submitter{pinger}}
	pings := orders.First(n)
	before, err := host.Take(r.cfg.NodePIDs)
	if err != nil {
		return nil, err
	}
	start := clock.Now() + int64(leadTime)
	outcome, err := by.Run(ctx, load.Step{Schedule: schedule, Start: start, DrainLimit: drainLimit}, pings)
	if err = errors.Join(append(outcome.Errors, err, ctx.Err())...); err != nil {
		return nil, err
	}
	after, err := host.Take(r.cfg.NodePIDs)
	if err != nil {
		return nil, err
	}
	t := &report.RoundTrip{Probe: p.load.Name, Replicas: r.cfg.Plan.Replicas, Rate: rate, Machine: r.machine(before, after)}
	for i := warmPings; i < int(outcome.Created); i++ {
		o := &pings[i]
		if o.Fate != load.Acked {
			return nil, fmt.Errorf("ping %d of %d was not answered within %v", i+1, n, drainLimit)
		}
		t.Latency.Record(o.T3 - o.T2)
		t.Lag.Record(o.T1 - start - schedule.Offset(int64(i)))
	}
	return t, nil
}
