package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/live"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/runner"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

type runFlags struct {
	plan      planFlags
	grid      gridFlags
	print     printFlags
	through   throughFlags
	scenarios []string
	dev       bool
	gridNode  string
	plugin    string
	link      string
	gateway   string
	memory    int64
	out       string
	quiet     time.Duration
	shared    bool
	http      string
	live      *live.Metrics // nil without --http
}

// Defaults of flags.
const (
	requestTimeout = 10 * time.Second
	quietWait      = 10 * time.Second
)

// onOwn sets what no flag does: the scenario is run on grids that are started for it.
func (f *runFlags) onOwn() {
	f.dev, f.grid.fix, f.grid.timeout = true, string(fixorder.FIX42), requestTimeout
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run --scenario NAME (--dev | --endpoint HOST:PORT)",
		Short: "Run a scenario and print the published table beside the one measured here",
		Example: `  order-probe run --scenario stac-pair --dev --quick        a grid of real processes, started and stopped for the run
  order-probe run --scenario stac-single,stac-pair --dev    both, and what replication costs
  order-probe run --scenario flow-hawkes --dev --quick      bursts against a steady rate; cancels and replaces
  order-probe run --scenario flow-replay --dev --replay AMZN_2012-06-21_34200000_57600000_message_10.csv --speeds 1,8
  order-probe run --scenario stac-pair --dev --arrival hawkes
  order-probe run --scenario gs-write --dev --quick         one write at a time: eight fields or none, replicated or not
  order-probe run --scenario stac-timeplot --dev --out DIR  the first three seconds of three rates, plotted, and the worst moments
  order-probe run --scenario stac-durability --dev --quick  a primary is killed under load: an independent ledger, and a control that loses
  order-probe run --scenario bar-load --dev --quick         files of rising length, loaded into empty grids
  order-probe run --scenario bar-wan --dev --quick          a log to another site over a road of 35 ms, by batch and delay
  order-probe run --scenario stac-pair --dev --through fix  the same orders by FIX sessions of an order-gateway
  order-probe run --scenario sol-fanout --dev --quick       streams to many WebSocket clients by a gateway
  order-probe run --scenario stac-pair --endpoint 10.0.0.1:7400 --exact --out results`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringSliceVar(&f.scenarios, "scenario", nil, "scenario, or several one after the other; order-probe list shows them")
	f.plan.register(set)
	f.grid.register(set)
	f.print.register(set)
	f.through.register(set)
	set.BoolVar(&f.dev, "dev", false, "start the grid the scenario needs on this machine (grid-node dev) and stop it afterwards")
	set.StringVar(&f.gridNode, "grid-node", "", "with --dev: the grid-node program (default: next to this one, then PATH)")
	set.StringVar(&f.plugin, "kubectl-ordergrid", "", "with --dev, bar-load and bar-wan: that program (default: next to this one, then PATH)")
	set.StringVar(&f.link, "grid-link", "", "with --dev and bar-wan: that program (default: next to this one, then PATH)")
	set.StringVar(&f.gateway, "order-gateway", "", "with --dev and --through fix, and scenarios that stream, ask by SQL or have FIX sessions: that program (default: next to this one, then PATH)")
	set.Int64Var(&f.memory, "memory-mib", 0, "with --dev: memory limit of each node in MiB (default: what the plan needs, at least 512)")
	set.StringVar(&f.out, "out", "", "directory for report.html, table.txt, results.json, results.csv and the ledgers; with several scenarios each has its own below, and report.html here has all")
	set.DurationVar(&f.quiet, "quiet-wait", quietWait, "with --dev: how long to wait, in all, for a busy machine to calm down before a rate")
	set.StringVar(&f.http, "http", "", "address to serve /metrics at while the run goes on, such as :9401 (default: none)")
	set.BoolVar(&f.shared, "shared-cores", false, "with --endpoint: declare that the grid runs on this machine's cores")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	d, err := published.Load()
	if err != nil {
		return err
	}
	switch is, err := f.isSystem(); {
	case err != nil:
		return usage(err)
	case is:
		return f.system(cmd, d)
	}
	plans, err := f.check(d)
	if err != nil {
		return usage(err)
	}
	metrics, stop, err := serveMetrics(f.http, cmd.ErrOrStderr())
	if err != nil {
		return usage(err)
	}
	defer stop()
	f.live = metrics
	var end error
	var all []*report.Report
	reports := map[string]*report.Report{}
	for _, plan := range plans {
		rep, err := f.one(cmd, d, plan)
		if rep != nil {
			reports[plan.Scenario] = rep
			all = append(all, rep)
			if err := f.print.print(cmd.OutOrStdout(), rep); err != nil {
				return err
			}
			end = worse(end, outcome(rep))
		}
		if err != nil {
			// A lost order is more important than the reason the run ended.
			fmt.Fprintln(cmd.ErrOrStderr(), "order-probe:", err)
			return worse(end, &codeError{code: ExitFailed})
		}
	}
	cost := costOf(reports)
	if err := f.print.cost(cmd.OutOrStdout(), cost); err != nil {
		return err
	}
	if f.out != "" && len(all) > 1 { // each has its own below; this one has all
		page := exportFlags{html: filepath.Join(f.out, "report.html")}
		if err := page.write(all, cost); err != nil {
			return err
		}
	}
	return end
}

// serveMetrics serves metrics of runs at an address, "" for not at all.
func serveMetrics(address string, say io.Writer) (*live.Metrics, func(), error) {
	if address == "" {
		return nil, func() {}, nil
	}
	m := &live.Metrics{}
	at, stop, err := m.Serve(address)
	if err != nil {
		return nil, nil, fmt.Errorf("--http %s: %w; allowed: a free ip:port, or empty", address, err)
	}
	fmt.Fprintf(say, "metrics at http://%s/metrics\n", at)
	return m, stop, nil
}

func (f *runFlags) check(d *published.Data) (plans []scenario.Plan, err error) {
	if len(f.scenarios) == 0 {
		return nil, fmt.Errorf("--scenario: name one of %s", strings.Join(append(scenario.Names(d), published.SystemScenarios()...), ", "))
	}
	if err := errors.Join(f.grid.check(), f.print.check(), f.through.check(f.dev)); err != nil {
		return nil, err
	}
	switch {
	case f.dev && len(f.grid.endpoint) > 0:
		return nil, errors.New("--dev and --endpoint: choose one; --dev starts a grid of its own")
	case !f.dev && len(f.grid.endpoint) == 0:
		return nil, errors.New("--endpoint: name a grid, or use --dev to start one on this machine")
	case !f.dev && len(f.scenarios) > 1 && !sameGrid(f.scenarios):
		return nil, fmt.Errorf("--scenario %s: the scenarios need different grids; with --endpoint run them one by one", strings.Join(f.scenarios, ","))
	case f.memory < 0 || f.memory > 0 && f.memory < 64:
		return nil, fmt.Errorf("--memory-mib %d: must be 64 or more, or 0", f.memory)
	}
	for _, name := range f.scenarios {
		plan, err := f.plan.plan(d, name)
		if f.dev && name == published.WriteScenario {
			plan.Indexed = scenario.WriteIndexed
		}
		if err != nil {
			return nil, err
		}
		if !f.dev && name == published.TimeplotScenario {
			return nil, fmt.Errorf("--endpoint: scenario %s is of a grid with one server and of one with two; use --dev, which starts them", name)
		}
		if n := len(plan.Grids()); !f.dev && n > 1 {
			return nil, fmt.Errorf("--replicas: scenario %s compares %d grids, and --endpoint is one: set which, 1 (without replication) or 2; or use --dev", name, n)
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// sameGrid: one server and a pair of servers cannot be the same grid.
func sameGrid(names []string) bool {
	for _, n := range names {
		if (n == "stac-single") != (names[0] == "stac-single") {
			return false
		}
	}
	return true
}

// one runs one scenario. A report may come together with an error, when the run
// was cut short.
func (f *runFlags) one(cmd *cobra.Command, d *published.Data, plan scenario.Plan) (*report.Report, error) {
	ctx := cmd.Context()
	dir, err := f.outDir(plan.Scenario)
	if err != nil {
		return nil, err
	}
	run := fixorder.NewRun()
	var parts []*report.Result
	for _, part := range plan.Grids() {
		var res *report.Result
		if res, err = f.onGrid(cmd, part, plan, run, dir); res != nil && len(res.Probes) > 0 && len(res.Probes[0].Steps) > 0 {
			parts = append(parts, res)
		}
		if err != nil {
			break
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errors.New("interrupted: the report covers what was done until then")
	}
	if len(parts) == 0 {
		return nil, err
	}
	res := parts[0]
	if len(plan.Grids()) > 1 {
		var joinErr error
		if res, joinErr = report.Concat(plan, parts...); joinErr != nil {
			return nil, errors.Join(err, joinErr)
		}
	}
	rep, reportErr := report.New(d, res)
	if reportErr != nil {
		return nil, errors.Join(err, reportErr)
	}
	return rep, errors.Join(err, save(dir, rep))
}

// onGrid runs the part of a plan for one grid; with --dev it starts that grid and stops it. Files
// go into dir, or where the plan has several grids into a directory below for each; none if dir is
// "".
func (f *runFlags) onGrid(cmd *cobra.Command, part, plan scenario.Plan, run uint64, dir string) (res *report.Result, err error) {
	ctx := cmd.Context()
	show := newProgress(cmd.ErrOrStderr(), part)
	defer show.close()
	if dir != "" && len(part.Steps) < len(plan.Steps) {
		if dir, err = makeDir(filepath.Join(dir, fmt.Sprintf("replicas-%d", part.Replicas))); err != nil {
			return nil, err
		}
	}
	secure, err := f.grid.tls.Client()
	if err != nil {
		return nil, err
	}
	cfg := runner.Config{
		Plan: part, Endpoints: f.grid.endpoint, TLS: secure, Token: f.grid.tls.Token(), Grid: f.grid.grid, FIX: fixorder.Version(f.grid.fix), Run: run, Recording: f.plan.arrival.recording,
		OutDir: dir, Metrics: f.grid.metrics, Shared: f.dev || f.shared, Flags: flagWords(cmd.Flags()),
		RequestTimeout: f.grid.timeout, QuietWait: f.quiet, Progress: show, Live: f.live,
	}
	if cfg.Through, err = f.through.config(); err != nil {
		return nil, err
	}
	for i := range part.Probes {
		cfg.Probes = append(cfg.Probes, i)
	}
	if text := f.plan.arrival.about(); text != "" {
		show.Say(text)
	}
	if f.dev {
		if err := f.fits(plan); err != nil {
			return nil, err
		}
		show.Say(fmt.Sprintf("start %d grid-node processes on this machine", part.Shards*part.Replicas))
		g, err := devgrid.Start(ctx, devgrid.Options{Program: f.gridNode, Shards: part.Shards, Replicas: part.Replicas, MemoryMiB: f.nodeMemory(part), Args: indexArgs(part)})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, g.Stop()) }()
		cfg.Endpoints, cfg.TLS, cfg.Metrics, cfg.NodePIDs = g.Endpoints, nil, g.HTTP, g.PIDs
		if f.through.door == throughFIX {
			w := doorway{program: f.gateway, grid: grid.Config{Endpoints: g.Endpoints, RequestTimeout: 10 * time.Second}, fix: f.grid.fix}
			through, pid, end, err := w.open(ctx, part, cfg.Probes)
			if err != nil {
				return nil, err
			}
			defer end()
			cfg.Through = through
			cfg.NodePIDs = append(cfg.NodePIDs, pid) // it is a part of what is measured, and no other process
		}
	}
	return execute(ctx, cfg, time.Time{})
}

func execute(ctx context.Context, cfg runner.Config, startAt time.Time) (_ *report.Result, err error) {
	r, err := runner.Prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Run(ctx, startAt)
}

// bytesPerOrder is the memory of an order in a node: the message, its entry header and its share of
// the indexes, with room for growth.
const bytesPerOrder = (fixorder.Size + store.PerOrder) * 3 / 2

// viewsMiB is the memory of a node's views, which may have half of what orders have.
const viewsMiB = 256

// indexArgs are the flags of nodes whose views index fields of orders.
func indexArgs(p scenario.Plan) []string {
	if p.Indexed == nil {
		return nil
	}
	return []string{"--views", fmt.Sprintf("%dMi", viewsMiB), "--order-index", strings.Join(p.Indexed, ",")}
}

func (f *runFlags) nodeMemory(p scenario.Plan) int64 {
	if f.memory > 0 {
		return f.memory
	}
	// Every node holds every partition of its shard.
	need := p.OrdersPerPartition() * int64(p.Replicas) * bytesPerOrder >> 20
	if p.Indexed != nil {
		need += 2 * viewsMiB
	}
	return max(512, need+256)
}

func (f *runFlags) outDir(name string) (string, error) {
	if f.out == "" {
		return "", nil
	}
	dir := f.out
	if len(f.scenarios) > 1 {
		dir = filepath.Join(dir, name)
	}
	return makeDir(dir)
}

func makeDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are public
		return "", fmt.Errorf("--out: %w", err)
	}
	return dir, nil
}

// save writes the report's four forms; nothing if dir is "".
func save(dir string, rep *report.Report) error {
	if dir == "" {
		return nil
	}
	for name, write := range map[string]func(io.Writer) error{
		"table.txt":    func(w io.Writer) error { return rep.Text(w, report.TextOptions{PerRun: true}) },
		"results.json": rep.JSON,
		"results.csv":  rep.CSV,
		"report.html":  func(w io.Writer) error { return htmlreport.Write(w, []*report.Report{rep}, nil) },
	} {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}
