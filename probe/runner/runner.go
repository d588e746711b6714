// Package runner executes a plan: it connects the probes, runs every step, reads the logs back, and
// collects the measurements in a report.Result.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/live"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Config of a run.
type Config struct {
	Plan      scenario.Plan
	Endpoints []string
	TLS       client.TLS // nil: plain TCP
	Token     client.TokenSource
	Grid      string // name of the grid; "" takes the one that answers
	FIX       fixorder.Version
	// Run is part of every ClOrdID; processes of one run may share it.
	Run uint64
	// Probes are the indexes of the plan's probes of this process.
	Probes []int
	// Recording is what a replay plays.
	Recording *flow.Recording
	// OutDir gets a ledger file for every probe; "" writes none.
	OutDir string
	// NodePIDs are the grid's processes, if they are on this machine. With them, the use of the
	// cores by others is known.
	NodePIDs []int
	// Metrics are base URLs of grid nodes, for their CPU time and collections.
	Metrics []string
	// Through are FIX sessions of order-gateways, one for each publishing thread; nil: threads submit to the grid.
	Through *fixdoor.Config
	// Shared says that the grid runs on this machine's cores.
	Shared bool
	Flags  []string
	// RequestTimeout bounds one order. 0 is 10 s.
	RequestTimeout time.Duration
	// QuietWait is how long to wait, over all steps together, for a busy machine
	// to calm down before a step. The step begins in any case.
	QuietWait time.Duration
	Progress  Progress
	// Live, if not nil, exports the run's metrics while it goes on.
	Live   *live.Metrics
	Logger *slog.Logger
}

// Progress is notified of the progress of a run. Methods are called from one goroutine.
type Progress interface {
	// Begin is called before a step; left is the time the run still needs.
	Begin(step scenario.Step, left time.Duration)
	// End is called after a step with its result.
	End(step scenario.Step, probes []report.ProbeStep)
	// Say reports a message.
	Say(text string)
}

// readyLimit bounds the wait for a grid whose copies are still joining.
const readyLimit = 15 * time.Second

// drainLimit is how long created orders may still wait to be sent.
const drainLimit = 10 * time.Second

// Run is a run under way: connected and ready to start.
type Run struct {
	cfg    Config
	grid   *grid.Grid
	door   *fixdoor.Door // nil without Config.Through
	probes []*probe
	result *report.Result
	http   []string
	live   *live.Run
	// prepared are the shares of step 0, generated in advance: generating a long bursty step takes
	// seconds.
	prepared []share
}

// probe is one probe with its state for the whole run.
type probe struct {
	index      int
	partition  wire.PartitionID
	load       *load.Probe
	threads    []thread
	reconnects int // of FIX sessions, as last said
	orders     *load.Orders
	next       int64 // index of the next order
	ledger     *ledgerFile
	base       grid.LogEnd // of the primary's log when the run began
	verifiers  map[string]*ledger.Verifier
	out        report.Probe
}

// thread is one publishing thread's connection.
type thread interface {
	load.Submitter
	Close() error
}

// Prepare connects everything, so that Run can start at a given time. The
// caller must Close the run.
func Prepare(ctx context.Context, cfg Config) (_ *Run, err error) {
	if len(cfg.Probes) == 0 {
		return nil, errors.New("run: no probes")
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 10 * time.Second
	}
	// Every creator and publishing thread keeps a scheduler processor while it waits; the rest of
	// the program uses the remaining ones.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), len(cfg.Probes)*(1+cfg.Plan.Threads)+4))
	r := &Run{cfg: cfg, result: &report.Result{Schema: report.ResultSchema, RunID: fixorder.RunText(cfg.Run), Plan: cfg.Plan}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.grid, err = grid.Dial(ctx, grid.Config{Endpoints: cfg.Endpoints, TLS: cfg.TLS, Token: cfg.Token, Name: cfg.Grid, RequestTimeout: cfg.RequestTimeout, Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err = r.grid.Ready(ready, cfg.Plan); err != nil {
		return nil, err
	}
	if err = r.openDoor(); err != nil {
		return nil, err
	}
	for _, index := range cfg.Probes {
		p, err := r.newProbe(ctx, index)
		if p != nil {
			r.probes = append(r.probes, p)
		}
		if err != nil {
			return nil, err
		}
	}
	if err = r.roundTrips(ctx); err != nil {
		return nil, err
	}
	if r.prepared, err = r.shares(cfg.Plan.Steps[0]); err != nil {
		return nil, err
	}
	r.live = cfg.Live.Begin(cfg.Plan.Scenario, len(cfg.Plan.Steps), names(cfg.Probes), r.grid.Counts)
	r.http = metricsURLs(cfg.Metrics, r.grid.Addresses())
	r.result.Manifests = []report.Manifest{r.manifest()}
	return r, nil
}

// Name is the letter of a probe, as in the published tests.
func Name(index int) string { return string(rune('A' + index)) }

func names(probes []int) (letters []string) {
	for _, index := range probes {
		letters = append(letters, Name(index))
	}
	return letters
}

func (r *Run) newProbe(ctx context.Context, index int) (*probe, error) {
	plan := r.cfg.Plan
	id := fixorder.ID{Run: r.cfg.Run, Probe: index}
	partition, err := grid.Partition(plan, index)
	if err != nil {
		return nil, err
	}
	p := &probe{
		index: index, partition: partition, verifiers: map[string]*ledger.Verifier{},
		load: &load.Probe{Name: Name(index), ID: id, Version: r.cfg.FIX},
		out:  report.Probe{Name: Name(index), Index: index, Partition: partition.String()},
	}
	most := plan.MostOrders() + 1
	if p.orders, err = load.NewOrders(most); err != nil {
		return p, err
	}
	for range plan.Threads {
		t, err := r.open(ctx, partition)
		if err != nil {
			return p, err
		}
		p.threads = append(p.threads, t)
		p.load.Threads = append(p.load.Threads, t)
	}
	copies := r.grid.Copies(partition)
	if len(copies) == 0 || !copies[0].Primary {
		return p, fmt.Errorf("partition %s has lost its primary", partition)
	}
	if p.base, err = r.grid.End(ctx, partition, copies[0].Address); err != nil {
		return p, err
	}
	if r.cfg.OutDir != "" {
		p.ledger, err = createLedger(r.cfg.OutDir, p.load.Name, ledger.Header{ID: id, Partition: uint16(partition)})
	}
	return p, err
}

// Close ends all connections and files.
func (r *Run) Close() error {
	r.live.End()
	var errs []error
	for _, p := range r.probes {
		for _, t := range p.threads {
			errs = append(errs, t.Close())
		}
		if p.orders != nil {
			errs = append(errs, p.orders.Close())
		}
		if p.ledger != nil {
			errs = append(errs, p.ledger.Close())
		}
	}
	if r.grid != nil {
		errs = append(errs, r.grid.Close())
	}
	r.probes, r.grid = nil, nil
	return errors.Join(errs...)
}

func (r *Run) manifest() report.Manifest {
	m := host.Manifest()
	for _, p := range r.probes {
		m.Probes += p.load.Name
	}
	m.FIX, m.Flags, m.Shared = string(r.cfg.FIX), r.cfg.Flags, r.cfg.Shared
	m.Grid = strings.Join(r.grid.Addresses(), ",")
	if r.cfg.Through != nil {
		m.Through = "fix"
		m.Gateways = r.cfg.Through.Addresses
	}
	return m
}

// Run executes all steps, the first at startAt or, if that is zero, at once. On an error the result
// has the completed steps.
func (r *Run) Run(ctx context.Context, startAt time.Time) (*report.Result, error) {
	begun := time.Now()
	if !startAt.IsZero() {
		begun = startAt
	}
	r.result.StartedAt = begun.UTC().Format(time.RFC3339Nano)
	var err error
	for i := 0; i < len(r.cfg.Plan.Steps); i++ {
		s := r.cfg.Plan.Steps[i]
		if startAt.IsZero() {
			r.awaitQuiet(ctx)
		}
		start := clock.Now() + int64(leadTime)
		if !startAt.IsZero() && (i == 0 || r.cfg.Plan.Search == nil) {
			// Other processes have the same timetable: a step that begins late keeps its intended
			// times, which is visible in its schedule lag.
			start = clock.At(startAt.Add(time.Duration(s.OffsetMs) * time.Millisecond))
		}
		r.cfg.Progress.Begin(s, r.left(i, startAt))
		var steps []report.ProbeStep
		if steps, err = r.step(ctx, s, start); err != nil {
			break
		}
		r.cfg.Progress.End(s, steps)
		r.searchOn()
	}
	for _, p := range r.probes {
		r.result.Probes = append(r.result.Probes, p.out)
	}
	return r.result, err
}

// searchOn lets a search decide what its next step is.
func (r *Run) searchOn() {
	plan := &r.cfg.Plan
	if plan.Search == nil {
		return
	}
	so := *r.result
	so.Plan, so.Probes = *plan, nil
	for _, p := range r.probes {
		so.Probes = append(so.Probes, p.out)
	}
	r.cfg.Progress.Say(report.LastTry(&so))
	if plan.Extend(report.Tried(&so)) {
		r.result.Plan = *plan
	}
}

// leadTime lets the threads of a step start before it begins.
const leadTime = 30 * time.Millisecond

// left estimates how long the steps from i on will take.
func (r *Run) left(i int, startAt time.Time) time.Duration {
	p := r.cfg.Plan
	if p.Search != nil {
		return time.Duration(p.Search.MaxSteps-i) * (p.WarmupTime() + p.MeasureTime()) // at most
	}
	if !startAt.IsZero() {
		last := p.Steps[len(p.Steps)-1]
		return time.Until(startAt.Add(time.Duration(last.OffsetMs+p.Warmup+p.Measure) * time.Millisecond))
	}
	const between = 300 * time.Millisecond // reading logs back, roughly
	return time.Duration(len(p.Steps)-i) * (p.WarmupTime() + p.MeasureTime() + between)
}

// quietPct is the use of the cores by others below which a machine is quiet.
const quietPct = 10

// quietSample is the length of that measurement.
const quietSample = 300 * time.Millisecond

// awaitQuiet waits until others leave the cores idle, as long as there is time left for that. Other
// use is only known when the grid runs here.
func (r *Run) awaitQuiet(ctx context.Context) {
	for reported := false; r.cfg.QuietWait > 0 && len(r.cfg.NodePIDs) > 0; {
		begun := time.Now()
		foreign, ok := r.foreign(ctx)
		if !ok || foreign < quietPct {
			return
		}
		if !reported {
			reported = true
			r.cfg.Progress.Say(fmt.Sprintf("other processes use %.0f %% of the cores; wait up to %v for them", foreign, r.cfg.QuietWait.Round(time.Second)))
		}
		r.cfg.QuietWait -= time.Since(begun)
	}
}

// foreign measures the use by others.
func (r *Run) foreign(ctx context.Context) (pct float64, ok bool) {
	a, err := host.Take(r.cfg.NodePIDs)
	if err != nil {
		return 0, false
	}
	select {
	case <-ctx.Done():
		return 0, false
	case <-time.After(quietSample):
	}
	b, err := host.Take(r.cfg.NodePIDs)
	if err != nil {
		return 0, false
	}
	return host.Between(a, b, true).Foreign, true
}
