// Command alerts causes the conditions of the alert rules for real and prints
// which alert fired and resolved after how long. Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ordergrid/ordergrid/e2e/alerts"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/step"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	only := flag.String("only", "", "part of the name of the alerts to try; empty tries all")
	flag.Parse()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "alerts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) (err error) {
	root, err := cluster.Checkout()
	if err != nil {
		return err
	}
	say := step.New(os.Stderr).Say
	programs, err := prometheus.Ensure(ctx, root, say)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ordergrid-alerts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	node := filepath.Join(dir, "grid-node")
	build := exec.CommandContext(ctx, "go", "build", "-o", node, "./cmd/grid-node")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build grid-node: %w", err)
	}
	return alerts.Check(ctx, alerts.Options{
		GridNode: node, Prometheus: filepath.Join(programs, "prometheus"), Rules: filepath.Join(root, "dashboards/rules/ordergrid.rules.yaml"),
		Dir: dir, Only: only, Say: say,
	}, os.Stdout)
}
