package webguard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// A Runner works until its context ends, and has pages about it.
type Runner interface {
	Run(ctx context.Context)
	Collector() prometheus.Collector
	Handler(g prometheus.Gatherer) http.Handler
}

// RunWithPages runs r, with its pages at an address (--http of a program; empty for none), until ctx ends or the pages cannot be
// served.
func RunWithPages(ctx context.Context, address string, r Runner, log *slog.Logger) error {
	if address == "" {
		r.Run(ctx)
		return nil
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	l, err := Listen(ctx, address, Limits{})
	if err != nil {
		return fmt.Errorf("--http %s: %w", address, err)
	}
	log.Info("metrics and status are served", "address", l.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var pages sync.WaitGroup
	pages.Go(func() {
		if err := Serve(ctx, l, r.Handler(reg)); err != nil {
			failed = fmt.Errorf("--http %s: %w", address, err)
			cancel()
		}
	})
	r.Run(ctx)
	cancel()
	pages.Wait()
	return failed
}
