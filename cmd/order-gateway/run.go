package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// drainTime is what clients have to go when the program ends.
const drainTime = 10 * time.Second

// flags that all protocols share.
type flags struct {
	protocols []protocol
	endpoints []string
	grid      string
	tls       tlsflag.Flags
	dial      time.Duration

	http string
	log  command.LogFlags
}

func (f *flags) add(fl *pflag.FlagSet) {
	for _, p := range f.protocols {
		p.add(fl)
	}
	fl.StringSliceVar(&f.endpoints, "endpoint", []string{"127.0.0.1:7400"}, "host:port of any node, or of the grid's client service; several separated by commas")
	fl.StringVar(&f.grid, "grid", "", "name of the grid; empty: the one that answers")
	f.tls.Register(fl, "TLS is used for the grid")
	f.tls.RegisterToken(fl)
	fl.DurationVar(&f.dial, "dial-timeout", 30*time.Second, "for finding the grid at the start")
	fl.StringVar(&f.http, "http", "127.0.0.1:9404", "address for /metrics, /healthz, /readyz and /status; empty for none")
	f.log.Register(fl, "text")
}

func (f *flags) run(ctx context.Context, errOut io.Writer) error {
	log, err := f.log.Logger(errOut)
	if err != nil {
		return err
	}
	asked, err := f.asked()
	if err != nil {
		return err
	}
	c, err := f.connect(ctx, log)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	g := &gateway{name: f.grid, log: log}
	for _, p := range asked {
		l, err := p.open(ctx, grid{c, log, f})
		if err != nil {
			return err
		}
		g.listeners = append(g.listeners, served{p.name(), l})
	}
	return g.serve(ctx, f.http)
}

// asked returns what the command line asks for, once it is right.
func (f *flags) asked() (list []protocol, err error) {
	var hints []string
	for _, p := range f.protocols {
		hints = append(hints, p.hint())
		if p.asked() {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, command.BadUsage(fmt.Errorf("nothing is to be served, allowed: %s", strings.Join(hints, ", ")))
	}
	for _, p := range list {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (f *flags) connect(ctx context.Context, log *slog.Logger) (*client.Client, error) {
	cfg := client.Config{Endpoints: f.endpoints, Grid: f.grid, Name: "order-gateway", DialTimeout: f.dial, IO: client.IONet, Logger: log}
	if host, err := os.Hostname(); err == nil && len(cfg.Name)+len(host) < wire.MaxString {
		cfg.Name += "@" + host
	}
	var err error
	if cfg.TLS, err = f.tls.Client(); err != nil {
		return nil, command.BadUsage(err)
	}
	cfg.Token = f.tls.Token()
	return client.Dial(ctx, cfg)
}

// gateway is what runs.
type gateway struct {
	name      string // of the grid, as in --grid
	log       *slog.Logger
	listeners []served
}

// served is a listener by the name of its protocol.
type served struct {
	protocol string
	listener
}

// serve runs all listeners and the pages until ctx ends, or one of them fails. The pages are
// there until the last listener has ended.
func (g *gateway) serve(ctx context.Context, http string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	paging, stopPages := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPages()
	var listeners, page sync.WaitGroup
	failures := make(chan error, len(g.listeners)+1)
	if http != "" {
		l, err := webguard.Listen(ctx, http, webguard.Limits{})
		if err != nil {
			return fmt.Errorf("--http %s: %w", http, err)
		}
		g.log.Info("metrics and status are served", "address", l.Addr().String())
		page.Go(func() {
			if err := webguard.Serve(paging, l, webguard.StatusPages(g.registry(), g.notReady, g.status)); err != nil {
				failures <- fmt.Errorf("--http %s: %w", http, err)
				stop()
			}
		})
	}
	for _, l := range g.listeners {
		listeners.Go(func() {
			defer stop() // one alone would hide that the other has ended
			if err := l.Run(ctx); err != nil {
				failures <- fmt.Errorf("%s: %w", l.protocol, err)
			}
		})
	}
	listeners.Wait()
	stopPages()
	page.Wait()
	close(failures)
	var failed error
	for err := range failures {
		failed = errors.Join(failed, err)
	}
	return failed
}

func (g *gateway) registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, l := range g.listeners {
		reg.MustRegister(l.listener)
	}
	return reg
}

func (g *gateway) notReady() (lines []string) {
	for _, l := range g.listeners {
		lines = append(lines, l.NotReady()...)
	}
	return lines
}

// status is the page of that name: the listeners by protocol.
func (g *gateway) status() any {
	s := struct {
		Grid      string         `json:"grid"`
		Listeners map[string]any `json:"listeners"`
	}{g.name, map[string]any{}}
	for _, l := range g.listeners {
		s.Listeners[l.protocol] = l.Status()
	}
	return s
}
