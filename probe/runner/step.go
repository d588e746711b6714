package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/live"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// heapLimit makes the garbage collector run again if something allocates during a step after all,
// instead of using up the machine's memory.
const heapLimit = 512 << 20

// share is one probe's part in a step.
type share struct {
	p        *probe
	schedule load.Schedule
	messages *flow.Messages      // nil: all orders are alike
	content  ledger.ContentCheck // of messages, or of the record
	first    int64
	orders   []load.Order
	progress *load.Progress
	outcome  load.Outcome
	err      error
}

// step holds one rate, then counts and checks.
func (r *Run) step(ctx context.Context, s scenario.Step, start int64) ([]report.ProbeStep, error) {
	shares := r.prepared // of step 0
	if r.prepared = nil; shares == nil {
		var err error
		if shares, err = r.shares(s); err != nil {
			return nil, err
		}
	}
	cond, err := r.load(ctx, s, start, shares)
	if err != nil {
		return nil, err
	}
	for _, outage := range r.grid.Outages(clock.Wall(start)) {
		r.cfg.Progress.Say(outage)
	}
	if r.door != nil {
		r.rediscover(context.WithoutCancel(ctx))
	}
	pauses := r.pauses(context.WithoutCancel(ctx), start, cond)
	var steps []report.ProbeStep
	for i := range shares {
		sh := &shares[i]
		ps := tally(r.cfg.Plan, s, start, sh)
		overlay(ps.Spikes, pauses)
		sh.orders = sh.orders[:sh.outcome.Created]
		if sh.p.ledger != nil {
			if err := sh.p.ledger.Append(sh.first, sh.orders); err != nil {
				return nil, fmt.Errorf("write the ledger of probe %s: %w", sh.p.load.Name, err)
			}
		}
		// Also after an interruption: acknowledged orders must be there.
		r.verify(context.WithoutCancel(ctx), sh, &ps)
		sh.p.next = sh.first + sh.outcome.Created
		sh.p.out.Steps = append(sh.p.out.Steps, ps)
		steps = append(steps, ps)
	}
	if cond != nil {
		r.result.Conditions = append(r.result.Conditions, *cond)
	}
	return steps, ctx.Err()
}

// shares returns the schedule of every participating probe of this process.
func (r *Run) shares(s scenario.Step) (shares []share, err error) {
	for _, p := range r.probes {
		if p.index >= s.Probes {
			continue
		}
		sh := share{p: p, first: p.next, progress: &load.Progress{}}
		if err := r.plan(&sh, s); err != nil {
			return nil, fmt.Errorf("probe %s: %w", p.load.Name, err)
		}
		shares = append(shares, sh)
	}
	return shares, nil
}

// plan makes a share's schedule. Probes have no common phase in reality; where orders are evenly
// spaced they are spread here over the interval between two orders, so that repeats are alike.
func (r *Run) plan(sh *share, s scenario.Step) error {
	plan, p := r.cfg.Plan, sh.p
	length := int64(plan.WarmupTime() + plan.MeasureTime())
	if plan.Arrival == nil {
		phase := time.Second / time.Duration(s.Rate) * time.Duration(p.index) / time.Duration(s.Probes)
		schedule, err := load.NewSteady(s.Rate, phase)
		if err != nil {
			return err
		}
		sh.schedule = schedule
	} else {
		schedule, err := flow.New(plan.FlowParams(s, p.index, r.cfg.Recording))
		if err != nil {
			return err
		}
		if sh.schedule, sh.messages = schedule, schedule.Messages(); sh.messages != nil {
			checker, err := fixorder.NewVaried(r.cfg.FIX, p.load.ID)
			if err != nil {
				return err
			}
			checker.Use(sh.first, sh.messages)
			sh.content = checker.Check
		}
	}
	if s.Record != "" {
		checker, err := fixorder.NewRecordMaker(r.cfg.FIX, s.Record, p.load.ID)
		if err != nil {
			return err
		}
		sh.content = checker.Check
	}
	if r.door != nil {
		sh.content = r.throughSessions(sh, s)
	}
	n := sh.schedule.Orders(length)
	if n > p.orders.Len() {
		return fmt.Errorf("step %d has %d orders, there is room for %d", s.ID, n, p.orders.Len())
	}
	sh.orders = p.orders.First(n)
	return nil
}

// rest disables garbage collection until the returned function is called: a collection of the probe
// would be counted as the grid's latency.
func rest() func() {
	runtime.GC()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(heapLimit)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// load runs all probes of the step at once.
func (r *Run) load(ctx context.Context, s scenario.Step, start int64, shares []share) (*report.Conditions, error) {
	defer rest()()
	sampled := make(chan *report.Conditions, 1)
	go func() { sampled <- r.conditions(ctx, s, start) }()
	followed := r.follow(s, start, shares)
	var wg sync.WaitGroup
	for i := range shares {
		sh := &shares[i]
		wg.Go(func() {
			sh.outcome, sh.err = sh.p.load.Run(ctx, load.Step{Schedule: sh.schedule, Start: start, First: sh.first, Messages: sh.messages, Record: s.Record, DrainLimit: drainLimit, Progress: sh.progress}, sh.orders)
		})
	}
	wg.Wait()
	followed()
	var errs []error
	for _, sh := range shares {
		errs = append(errs, sh.err)
	}
	cond := <-sampled
	if cond != nil {
		for _, sh := range shares {
			cond.Probes += sh.p.load.Name
		}
	}
	return cond, errors.Join(errs...)
}

// follow exports the step's metrics; the returned function ends that.
func (r *Run) follow(s scenario.Step, start int64, shares []share) func() {
	var followed []live.Share
	for _, sh := range shares {
		followed = append(followed, live.Share{Probe: sh.p.load.Name, Orders: sh.orders, Schedule: sh.schedule, Progress: sh.progress,
			Start: start, Begin: start + int64(r.cfg.Plan.WarmupTime())})
	}
	return r.live.Follow(s.ID+1, followed)
}

// tally makes counts and histograms of a step's records.
func tally(plan scenario.Plan, s scenario.Step, start int64, sh *share) report.ProbeStep {
	ps := report.ProbeStep{Step: s.ID, StartedNs: clock.Wall(start).UnixNano(), Created: sh.outcome.Created, MinCopies: math.MaxInt}
	begin, end := start+int64(plan.WarmupTime()), start+int64(plan.WarmupTime()+plan.MeasureTime())
	var createdIn, ackedIn int64
	var exact [latencyCount]moment
	warm := 0 // orders intended before the measured part
	for i := range sh.orders[:sh.outcome.Created] {
		o := &sh.orders[i]
		intended := start + sh.schedule.Offset(int64(i))
		count(&ps, o)
		if o.T1 >= begin && o.T1 < end {
			createdIn++
		}
		if o.Fate == load.Acked && o.T3 >= begin && o.T3 < end {
			ackedIn++
		}
		if intended < begin {
			warm = i + 1
			continue
		}
		ps.Intended++
		ps.Lag.Record(o.T1 - intended)
		exact[lag].add(o.T1 - intended)
		if o.T1-intended > int64(time.Millisecond) {
			ps.LateCreated++
		}
		if o.Fate != load.Acked {
			continue
		}
		ps.Samples++
		ps.IntendedToEnd.Record(o.T3 - intended)
		exact[intendedToEnd].add(o.T3 - intended)
		ps.CreateToEnd.Record(o.T3 - o.T1)
		exact[createToEnd].add(o.T3 - o.T1)
		ps.SendToEnd.Record(o.T3 - o.T2)
		exact[sendToEnd].add(o.T3 - o.T2)
		if o.T3-o.T1 > int64(time.Millisecond) {
			ps.Over1ms++
		}
	}
	if ps.MinCopies == math.MaxInt {
		ps.MinCopies = 0
	}
	seconds := plan.MeasureTime().Seconds()
	ps.CreatedRate, ps.AckedRate = float64(createdIn)/seconds, float64(ackedIn)/seconds
	for _, err := range sh.outcome.Errors {
		ps.Notes = append(ps.Notes, err.Error())
	}
	if plan.Arrival != nil {
		ps.Offered = offered(plan, s, start, sh)
	}
	detail(&ps, &exact, &measured{
		orders: sh.orders[warm:sh.outcome.Created], first: sh.first + int64(warm), begin: begin, length: plan.MeasureTime(),
		intended: func(i int) int64 { return start + sh.schedule.Offset(int64(warm+i)) },
	})
	return ps
}

// detail adds what cannot be merged: exact statistics, time series, spikes.
func detail(ps *report.ProbeStep, exact *[latencyCount]moment, m *measured) {
	if ps.Samples == 0 {
		return
	}
	ps.Stats = &report.StepStats{
		Lag: exact[lag].stats(ps.Lag), IntendedToEnd: exact[intendedToEnd].stats(ps.IntendedToEnd),
		CreateToEnd: exact[createToEnd].stats(ps.CreateToEnd), SendToEnd: exact[sendToEnd].stats(ps.SendToEnd),
	}
	ps.Series = m.series()
	ps.Spikes = m.spikes(ps.CreateToEnd.Percentile(50))
}

func count(ps *report.ProbeStep, o *load.Order) {
	switch o.Fate {
	case load.Acked:
		ps.Acked++
		ps.MinCopies = min(ps.MinCopies, int(o.Copies))
	case load.Rejected:
		ps.Rejected++
	case load.Unknown:
		ps.Unknown++
	case load.Unsent:
		ps.Unsent++
		return
	}
	// Send-to-end is contained in create-to-end, order by order. The published
	// figures contradict themselves here, so it is checked.
	if o.T1 > o.T2 || o.T2 > o.T3 {
		ps.Disorder++
	}
}
