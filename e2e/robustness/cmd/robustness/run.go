package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/robustness"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/linear"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

type runFlags struct {
	robustness.Options
	target, out, gridNode string
	scenarios, nodeArgs   []string
	keep                  bool
	replicas              int
	memory, fill          int64
}

func runCommand() *cobra.Command {
	f := runFlags{Options: robustness.Defaults()}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Play scenarios and judge them",
		Long: `Play scenarios and judge them, one after the other, each on a grid of its own.

Targets:
  dev      processes on this machine (grid-node dev). silent-cut and same-name need root and
           iptables: they drop packets between addresses of 127/8.
  cluster  pods on the Kubernetes of this checkout; bring it up first with
           go run ./e2e/cluster/cmd/cluster up, and load the images (hack/e2e.sh does both).

What is broken is made whole at the end, after Ctrl-C and after a failure too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.scenarios, "scenario", []string{"kill-primary"}, "names as in `robustness list`, separated by commas, or all")
	fl.StringVar(&f.target, "target", "dev", "dev or cluster")
	fl.IntVar(&f.Repeat, "repeat", 0, "repetitions; 0: what the scenario has by itself")
	fl.IntVar(&f.Rate, "rate", f.Rate, "orders per second, all partitions together")
	fl.IntVar(&f.Sessions, "sessions", f.Sessions, "sessions that send them, for each partition: 1..64")
	fl.IntVar(&f.Reads, "reads", f.Reads, "confirmed reads per second sent to every node, primary or not")
	fl.IntVar(&f.Orders, "direct-orders", f.Orders, "orders per second sent to every node, primary or not")
	fl.Uint64Var(&f.Seed, "seed", 0, "of every choice; 0: draw one and print it")
	fl.DurationVar(&f.Calm, "calm", f.Calm, "time without a fault before each repetition, to compare with")
	fl.DurationVar(&f.Stop, "stop", f.Stop, "how long sigstop stops a process, and the arbiter stays away after the kill of api-outage-then-kill")
	fl.DurationVar(&f.Away, "away", f.Away, "how long the arbiter is unavailable in api-outage")
	fl.DurationVar(&f.Patience, "patience", f.Patience, "how long to wait for service and for redundancy")
	fl.DurationVar(&f.RequestTimeout, "request-timeout", f.RequestTimeout, "after which an order without an answer has failed")
	fl.Int64Var(&f.fill, "fill-mib", f.Fill>>20, "log that rejoin puts into one partition before its first repetition")
	fl.IntVar(&f.replicas, "replicas", 2, "copies of each order: 2 or 3")
	fl.Int64Var(&f.memory, "memory-mib", 2048, "memory of each node")
	fl.StringArrayVar(&f.nodeArgs, "node-arg", nil, "one more argument of grid-node serve on dev, such as --learner-rate=64Mi; repeat for more")
	fl.StringVar(&f.gridNode, "grid-node", "", "program to run on dev; default: built from this checkout")
	fl.StringVar(&f.out, "out", "out/robustness", "directory for reports and histories")
	fl.BoolVar(&f.keep, "keep", false, "leave the grid as it is until Ctrl-C, to look at it")
	return cmd
}

func (f *runFlags) run(ctx context.Context) error {
	list, err := f.check()
	if err != nil {
		return usage(err)
	}
	if f.Seed == 0 {
		f.Seed = rand.Uint64() >> 1
	}
	f.Progress = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	worst := 0
	for _, s := range list {
		code, err := f.one(ctx, s)
		if err != nil {
			return err
		}
		if worst == 0 || code == robustness.ExitViolated {
			worst = code
		}
	}
	if worst != 0 {
		return &exitError{worst, errVerdict}
	}
	return nil
}

func (f *runFlags) check() (list []robustness.Scenario, err error) {
	switch {
	case f.target != "dev" && f.target != "cluster":
		return nil, fmt.Errorf("--target: value %q, allowed: dev, cluster", f.target)
	case f.Repeat < 0 || f.Repeat > 10000:
		return nil, fmt.Errorf("--repeat: value %d, allowed: 1..10000, or 0 for the scenario's own", f.Repeat)
	case f.Rate < 1 || f.Rate > 100_000:
		return nil, fmt.Errorf("--rate: value %d, allowed: 1..100000", f.Rate)
	case f.Sessions < 1 || f.Sessions > 64:
		return nil, fmt.Errorf("--sessions: value %d, allowed: 1..64", f.Sessions)
	case f.Reads < 0 || f.Reads > 10_000 || f.Orders < 0 || f.Orders > 10_000:
		return nil, fmt.Errorf("--reads and --direct-orders: values %d and %d, allowed: 0..10000", f.Reads, f.Orders)
	case f.replicas < 2 || f.replicas > 3:
		return nil, fmt.Errorf("--replicas: value %d, allowed: 2, 3", f.replicas)
	case f.fill < 1 || f.fill > 1<<20:
		return nil, fmt.Errorf("--fill-mib: value %d, allowed: 1..1048576", f.fill)
	case f.memory < 128:
		return nil, fmt.Errorf("--memory-mib: value %d, allowed: 128 or more", f.memory)
	}
	f.Fill = f.fill << 20
	for name, d := range map[string]time.Duration{"calm": f.Calm, "stop": f.Stop, "away": f.Away, "patience": f.Patience, "request-timeout": f.RequestTimeout} {
		if d < 100*time.Millisecond || d > time.Hour {
			return nil, fmt.Errorf("--%s: value %s, allowed: 100ms..1h", name, d)
		}
	}
	return f.chosen()
}

// chosen are the scenarios asked for.
func (f *runFlags) chosen() (list []robustness.Scenario, err error) {
	if len(f.scenarios) == 1 && f.scenarios[0] == "all" {
		for _, s := range robustness.Scenarios() {
			if s.On(f.target) == nil {
				list = append(list, s)
			}
		}
		return list, nil
	}
	for _, name := range f.scenarios {
		s, err := robustness.FindScenario(name)
		if err == nil {
			err = s.On(f.target)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// one plays a scenario on a grid of its own.
func (f *runFlags) one(ctx context.Context, s robustness.Scenario) (code int, err error) {
	o := f.Options
	if o.Repeat == 0 {
		o.Repeat = s.Repeat
	}
	fmt.Printf("\n%s on %s, %d times, seed %d: %s\n", s.Name, f.target, o.Repeat, o.Seed, s.Short)
	dir := filepath.Join(f.out, f.target+"-"+s.Name+"-"+time.Now().Format("20060102-150405"))
	target, err := f.open(ctx, s, dir)
	if err != nil {
		return 0, environment(err)
	}
	defer func() {
		// The grid goes, whatever the state of ctx.
		bg, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if e := target.Close(bg); e != nil && err == nil {
			err = environment(e)
		}
		// What they hold is in the history; a look at the files themselves is worth
		// their size only where something is wrong with them.
		if err == nil && code == robustness.ExitPass {
			_ = os.RemoveAll(filepath.Join(dir, "sinks"))
		}
	}()
	h, runErr := robustness.Run(ctx, s, target, o)
	if f.keep {
		fmt.Printf("the grid stays until Ctrl-C: endpoints %v\n", target.Endpoints())
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return 0, environment(errors.New("interrupted; what was broken is whole again"))
	}
	if runErr != nil {
		h.Notes = append(h.Notes, "the run ended early: "+runErr.Error())
	}
	if len(h.Streams) == 0 {
		return 0, environment(runErr)
	}
	return f.judge(h, dir)
}

// logsFolder is in the folder of a run.
const logsFolder = "logs"

// judge prints the report and keeps it with the history.
func (f *runFlags) judge(h *history.History, dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, logsFolder, "*.log"))
	if err != nil {
		return 0, environment(err)
	}
	for _, l := range logs {
		h.NodeLogs = append(h.NodeLogs, filepath.Join(logsFolder, filepath.Base(l)))
	}
	path := filepath.Join(dir, "history.gz")
	if err := h.Save(path); err != nil {
		return 0, environment(err)
	}
	r, result, err := robustness.NewReport(h)
	if err != nil {
		return 0, environment(err)
	}
	if err := errors.Join(write(filepath.Join(dir, "report.txt"), r.WriteText), write(filepath.Join(dir, "report.json"), r.WriteJSON)); err != nil {
		return 0, environment(err)
	}
	if len(result.Example) > 0 {
		err := write(filepath.Join(dir, "violation.html"), func(w *os.File) error { return linear.WriteHTML(w, result.Example) })
		if err != nil {
			return 0, environment(err)
		}
	}
	if err := r.WriteText(os.Stdout); err != nil {
		return 0, environment(err)
	}
	fmt.Printf("\nkept in %s; judge it again: go run ./e2e/robustness/cmd/robustness validate %s\n", dir, path)
	return r.ExitCode(), nil
}

func (f *runFlags) open(ctx context.Context, s robustness.Scenario, dir string) (faults.Target, error) {
	if f.target == "cluster" {
		program, err := testgrid.Build(ctx, "e2e/cluster/cmd/cluster")
		if err != nil {
			return nil, err
		}
		return faults.StartCluster(ctx, faults.ClusterOptions{Program: program, Replicas: f.replicas, MemoryMiB: max(f.memory, s.MemoryMiB), HandOverDelay: s.HandOverDelay(), Logs: filepath.Join(dir, logsFolder), Progress: f.Progress})
	}
	if left, err := faults.RemoveLeftovers(ctx); err == nil && len(left) > 0 {
		fmt.Printf("removed packet filter rules that an earlier run left: %v\n", left)
	}
	program, err := exec.LookPath(f.gridNode)
	if f.gridNode == "" {
		program, err = testgrid.Build(ctx, "grid-node")
	}
	if err != nil {
		return nil, err
	}
	sinks, err := filepath.Abs(filepath.Join(dir, "sinks"))
	if err != nil {
		return nil, err
	}
	return faults.StartDev(ctx, faults.DevOptions{Program: program, Replicas: f.replicas, MemoryMiB: max(f.memory, s.MemoryMiB), Dir: sinks, Logs: filepath.Join(dir, logsFolder), Args: slices.Concat(s.NodeArgs, f.nodeArgs)})
}
