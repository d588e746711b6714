package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/runner"
)

type podFlags struct {
	plan            planFlags
	grid            gridFlags
	scenario        string
	probe, uid, ns  string
	index           int
	runID           string
	server, account string
	startWait       time.Duration
	shared          bool
	http            string
	budget          time.Duration
	through         string
}

func podCommand() *cobra.Command {
	f := podFlags{}
	cmd := &cobra.Command{
		Use:   "pod --probe NAME --index I --scenario NAME --endpoint HOST:PORT",
		Short: "Run one probe of an OrderProbe's Job (started by the operator)",
		Long: `Run one probe of an OrderProbe's Job. Connects, writes key "ready" of ConfigMap
<probe>-<index>, waits for key "startAt" of ConfigMap <probe>-run, runs its share of
every step of the scenario's timetable and writes key "result.json". Scenarios about a system
of processes, and "suite", are run as a whole, on grids that are started in this pod.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringVar(&f.scenario, "scenario", "", "scenario")
	f.plan.register(set)
	f.grid.register(set)
	set.StringVar(&f.probe, "probe", "", "name of the OrderProbe")
	set.StringVar(&f.uid, "probe-uid", os.Getenv("PROBE_UID"), "UID of the OrderProbe, which then owns the ConfigMap (default $PROBE_UID)")
	set.IntVar(&f.index, "index", indexFromEnv(), "index of this probe, 0 is A (default $JOB_COMPLETION_INDEX)")
	set.StringVar(&f.ns, "namespace", os.Getenv("POD_NAMESPACE"), "namespace (default $POD_NAMESPACE, then the service account's)")
	set.StringVar(&f.runID, "run-id", "", "8 characters common to all probes of the run (default: random)")
	set.DurationVar(&f.startWait, "start-wait", 10*time.Minute, "how long to wait for startAt")
	set.BoolVar(&f.shared, "shared-cores", false, "declare that grid pods run on the same cores as probes")
	set.StringVar(&f.http, "http", fmt.Sprintf(":%d", pod.HTTPPort), "address to serve /metrics at while the run goes on; empty switches it off")
	set.StringVar(&f.through, "through", throughNative, "how orders get to the grid: native, its own protocol, or fix, FIX sessions of an order-gateway that is started in this pod")
	set.DurationVar(&f.budget, "budget", 0, "with scenario suite: how long all may take")
	set.StringVar(&f.server, "api-server", "", "URL of the API server")
	set.StringVar(&f.account, "account-dir", "", "directory of the service account's token, namespace and ca.crt")
	_, _ = set.MarkHidden("api-server"), set.MarkHidden("account-dir") // for tests; both flags exist
	return cmd
}

// indexFromEnv is -1, which is refused, outside of an indexed Job.
func indexFromEnv() int {
	n, err := strconv.Atoi(os.Getenv("JOB_COMPLETION_INDEX"))
	if err != nil {
		return -1
	}
	return n
}

func (f *podFlags) run(cmd *cobra.Command) error {
	d, err := published.Load()
	if err != nil {
		return err
	}
	if f.own() {
		return f.runOwn(cmd, d)
	}
	plan, err := f.plan.plan(d, f.scenario)
	if err != nil {
		return usage(err)
	}
	run := fixorder.NewRun()
	if f.runID != "" {
		if run, err = fixorder.ParseRun(f.runID); err != nil {
			return usage(fmt.Errorf("--run-id: %w", err))
		}
	}
	if err := f.grid.check(); err != nil {
		return usage(err)
	}
	if len(f.grid.endpoint) == 0 {
		return usage(errors.New("--endpoint: name the grid's client service, such as trades-client:7400"))
	}
	if f.through != throughNative && f.through != throughFIX {
		return usage(fmt.Errorf("--through %q: allowed: %s, %s", f.through, throughNative, throughFIX))
	}
	if f.index < 0 || f.index >= plan.Processes() {
		return usage(fmt.Errorf("--index %d: the plan has pods 0 to %d", f.index, plan.Processes()-1))
	}
	secure, err := f.grid.tls.Client()
	if err != nil {
		return usage(err)
	}
	channel, err := pod.New(pod.Config{Probe: f.probe, ProbeUID: f.uid, Index: f.index, Namespace: f.ns, Server: f.server, AccountDir: f.account})
	if err != nil {
		return usage(err)
	}
	metrics, stop, err := serveMetrics(f.http, cmd.ErrOrStderr())
	if err != nil {
		return usage(err)
	}
	defer stop()
	ctx := cmd.Context()
	cfg := runner.Config{
		Plan: plan, Endpoints: f.grid.endpoint, TLS: secure, Token: f.grid.tls.Token(), Grid: f.grid.grid, FIX: fixorder.Version(f.grid.fix), Run: run, Probes: plan.ProbesOf(f.index), Recording: f.plan.arrival.recording,
		Metrics: f.grid.metrics, Shared: f.shared, Flags: flagWords(cmd.Flags()), RequestTimeout: f.grid.timeout, Progress: newProgress(cmd.OutOrStdout(), plan),
		Live: metrics,
	}
	res, err := f.execute(ctx, channel, cfg)
	if err != nil {
		// Report to the operator even if this pod is being stopped.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		return errors.Join(err, channel.Failed(ctx, err))
	}
	rep, err := report.New(d, res)
	if err != nil {
		return err
	}
	// The guards see the other probes' results only after merging; this pod reports whether its own
	// orders are all there.
	if rep.Verdict == report.ReportIncorrect {
		return &codeError{code: ExitIncorrect}
	}
	return nil
}

func (f *podFlags) execute(ctx context.Context, channel *pod.Channel, cfg runner.Config) (_ *report.Result, err error) {
	if f.through == throughFIX {
		w := doorway{
			grid: grid.Config{Endpoints: cfg.Endpoints, TLS: cfg.TLS, Token: cfg.Token, Name: cfg.Grid, RequestTimeout: cfg.RequestTimeout},
			args: f.grid.tls.Args(), fix: f.grid.fix, first: f.index * fixdoor.NamesApart,
		}
		through, _, end, err := w.open(ctx, cfg.Plan, cfg.Probes)
		if err != nil {
			return nil, err
		}
		defer end()
		cfg.Through = through
	}
	r, err := runner.Prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := channel.Ready(ctx); err != nil {
		return nil, err
	}
	cfg.Progress.Say(fmt.Sprintf("probe %s is ready; wait for startAt", runner.Name(f.index)))
	waiting, cancel := context.WithTimeout(ctx, f.startWait)
	defer cancel()
	at, err := channel.StartAt(waiting)
	if err != nil {
		return nil, err
	}
	cfg.Progress.Say("start at " + at.Format(time.RFC3339Nano))
	res, err := r.Run(ctx, at)
	if err != nil {
		return nil, err
	}
	b, err := res.Fit(pod.MaxResult)
	if err != nil {
		return nil, err
	}
	return res, channel.Result(ctx, b)
}
