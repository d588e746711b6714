// Command check is `make dashboards-check`: it makes a real run with a failover in it, scrapes it with a real
// Prometheus, sends it every query of every dashboard, with its variables expanded, and fails on an error or an empty
// answer.
//
//	go run ./dashboards/cmd/check [--bin bin] [--out out/dashboards] [--keep]
//
// Exit status: 0 every panel shows something; 1 one does not, or the run failed; 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/dashboards/boards"
	"github.com/ordergrid/ordergrid/dashboards/live"
	"github.com/ordergrid/ordergrid/dashboards/preview"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/probe/clock"
)

func main() {
	if status, yes := live.IsNode(); yes {
		os.Exit(status)
	}
	bin := flag.String("bin", "bin", "directory with the programs operator and order-probe")
	out := flag.String("out", "out/dashboards", "directory for the list, the pictures, logs and data; it is emptied first")
	keep := flag.Bool("keep", false, "leave everything running until Ctrl-C, for inspection")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "check: unknown argument %q; see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := check(ctx, *bin, *out, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards-check:", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, bin, out string, keep bool) (err error) {
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%4ds  %s\n", int(time.Since(begin).Seconds()), fmt.Sprintf(format, args...))
	}
	root := envtest.Root()
	programs, err := prometheus.Ensure(ctx, root, say)
	if err != nil {
		return err
	}
	list, err := preview.Load(filepath.Join(root, boards.Dashboards))
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	o := live.Options{Bin: bin, Dir: filepath.Join(out, "run"), Prometheus: filepath.Join(programs, "prometheus"),
		Labels: filepath.Join(root, "charts/ordergrid/files/scrape/labels.yaml"), Rules: filepath.Join(root, boards.Rules), Say: say}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	run, err := live.Start(ctx, o)
	defer func() { err = errors.Join(err, run.Close()) }()
	if err != nil {
		return err
	}
	if err := story(ctx, run, say); err != nil {
		return err
	}
	// The window ends while the load still runs, so that panels of present values have one.
	w := preview.Window{From: begin, To: time.Now(), Step: 2 * live.Scrape, Scrape: live.Scrape}
	r, err := askAll(&preview.Client{Context: ctx, URL: live.PrometheusURL}, list, w)
	if err != nil {
		return err
	}
	if err := r.write(out); err != nil {
		return err
	}
	if err := r.draw(out); err != nil {
		return err
	}
	say("the list is %s, the pictures are beside it", filepath.Join(out, "panels.txt"))
	if keep {
		say("Prometheus is %s; Ctrl-C ends it", live.PrometheusURL)
		<-ctx.Done()
	}
	return r.verdict(say)
}

// attempts to get valid figures; other load on the machine invalidates them.
const attempts = 3

// story is the sequence of the run: a probe that is measured to its end, then load, and during it a primary that dies
// and comes back.
func story(ctx context.Context, run *live.Run, say func(string, ...any)) error {
	for n := 1; ; n++ {
		name := fmt.Sprintf("pair-%d", n)
		say("OrderProbe %s: 2 x 100 and 2 x 500 orders/s", name)
		if err := run.Probe(ctx, name, []int32{100, 500}, time.Second, 5*time.Second); err != nil {
			return err
		}
		verdict, err := run.Ended(ctx, name)
		if err != nil {
			return err
		}
		say("its verdict: %s", verdict)
		if verdict != "Invalid" {
			break
		}
		if n == attempts {
			say("%d probe runs, all invalid: the machine is too busy for valid figures, so the panels that show them will be empty", n)
			break
		}
	}
	say("OrderProbe drill: 2 x 500 orders/s, a primary is killed meanwhile")
	if err := run.Probe(ctx, "drill", []int32{500}, time.Second, 60*time.Second); err != nil {
		return err
	}
	if err := clock.Wait(ctx, 12*time.Second); err != nil {
		return err
	}
	say("FailoverDrill nightly: its fault follows")
	if err := run.InstallMesh(ctx); err != nil {
		return err
	}
	_, fault, err := run.StartFault(ctx, "nightly")
	if err != nil {
		return err
	}
	say("kill -9 the primary of one partition, start it again after 2 s")
	if err := run.Kill(ctx, 0, 2*time.Second); err != nil {
		return err
	}
	if err := run.Injected(ctx, fault, 0); err != nil {
		return err
	}
	if err := run.Redundant(ctx); err != nil {
		return err
	}
	say("redundant again")
	if err := clock.Wait(ctx, 12*time.Second); err != nil { // its partition is handed back to it, and lines show the steady state
		return err
	}
	say("a second shard is added: a partition moves to it")
	if err := run.EmptyShard(ctx); err != nil {
		return err
	}
	return clock.Wait(ctx, 4*time.Second)
}
