// Command demo is `make demo`: from a clone to the published tables beside those measured here, in five steps that each end in
// something to look at.
//
//	go run ./hack/demo --mode full    everything
//	go run ./hack/demo --mode quick   build, and the tables from processes on this machine
//
// Exit status: 0 all shown; 1 something failed or an order was lost; 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// demo is what the steps share.
type demo struct {
	out     *printer
	dir     string // where tables and logs are kept, below the checkout
	cluster clusterInfo
}

// step is one of the demo. What it takes with nothing compiled yet and with everything compiled was measured on two quiet cores
// (docs/local-cluster.md).
type step struct {
	title      string
	cold, warm time.Duration
	run        func(context.Context, *demo) error
}

// errStopHere ends the demo early without failing it: what is left cannot be had on this machine, and has been reported.
var errStopHere = errors.New("stop here")

func main() {
	mode := flag.String("mode", "full", "full; quick: stop after the tables from this machine's processes")
	flag.Parse()
	if (*mode != "full" && *mode != "quick") || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "DEMO=%s: allowed are full and quick\n", *mode)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{out: newPrinter(os.Stdout), dir: "out/demo"}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := run(ctx, d, steps(*mode)); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func steps(mode string) []step {
	quick := []step{
		{"Build the product", 45 * time.Second, time.Second, buildProduct},
		{"Two servers and one, as processes on this machine", 40 * time.Second, 40 * time.Second, tablesFromProcesses},
	}
	if mode == "quick" {
		return append(quick, step{"What to look at next", 0, 0, nextAfterQuick})
	}
	return append(quick,
		step{"A real Kubernetes", 280 * time.Second, 20 * time.Second, bringUpCluster},
		step{"helm install, an OrderGrid, an OrderProbe: the tables from inside the cluster", 60 * time.Second, 60 * time.Second, tablesFromCluster},
		step{"What to look at next", 0, 0, nextAfterFull},
	)
}

// expected is how long the step takes, for its headline.
func (s step) expected() string {
	switch {
	case s.cold == 0:
		return ""
	case s.cold == s.warm:
		return fmt.Sprintf(" (about %v)", s.cold)
	}
	return fmt.Sprintf(" (about %v the first time, %v again)", s.cold, s.warm)
}

// run executes the steps, each under a headline with its number and wall time.
func run(ctx context.Context, d *demo, list []step) error {
	begin := time.Now()
	for i, s := range list {
		d.out.headline(i+1, len(list), s.title+s.expected())
		t := time.Now()
		err := s.run(ctx, d)
		if errors.Is(err, errStopHere) {
			break
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.title, err)
		}
		d.out.line("step %d took %s", i+1, time.Since(t).Round(time.Second))
	}
	d.out.line("")
	d.out.line("make demo: done in %s", time.Since(begin).Round(time.Second))
	return nil
}
