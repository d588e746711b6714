// Command alerts causes the conditions of the alert rules for real and prints
// which alert fired and resolved after how long. Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/ordergrid/ordergrid/dashboards/boards"
	"github.com/ordergrid/ordergrid/dashboards/live"
	"github.com/ordergrid/ordergrid/e2e/alerts"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
)

func main() {
	if status, yes := live.IsNode(); yes {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	only := flag.String("only", "", "regular expression of the names of the alerts to try; empty tries all")
	flag.Parse()
	names, err := regexp.Compile(*only)
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "alerts:", err)
		os.Exit(2)
	}
	if err := run(ctx, names); err != nil {
		fmt.Fprintln(os.Stderr, "alerts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only *regexp.Regexp) (err error) {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	say := command.NewSteps(os.Stderr).Say
	programs, err := prometheus.Ensure(ctx, root, say)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ordergrid-alerts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var program string
	for _, name := range []string{"grid-node", "operator", "order-probe", "grid-sink", "order-gateway"} {
		if program, err = testgrid.Build(ctx, name); err != nil {
			return err
		}
	}
	return alerts.Check(ctx, alerts.Options{
		Bin: filepath.Dir(program), Prometheus: filepath.Join(programs, "prometheus"),
		Rules: filepath.Join(root, boards.Rules), Labels: filepath.Join(root, "charts/ordergrid/files/scrape/labels.yaml"),
		Dir: dir, Only: only, Say: say,
	}, os.Stdout)
}
