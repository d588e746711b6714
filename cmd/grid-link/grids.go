package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// gridFlags are those of one of the two grids.
type gridFlags struct {
	role      string // source or target
	endpoints []string
	grid      string
	tls       tlsflag.Flags
}

func (f *gridFlags) add(fl *pflag.FlagSet, role string) {
	f.role, f.tls = role, tlsflag.Of(role+"-")
	fl.StringSliceVar(&f.endpoints, role+"-endpoint", nil, "host:port of any node of the "+role+", or of its client service; several separated by commas; required")
	fl.StringVar(&f.grid, role+"-grid", "", "name of the grid; required")
	f.tls.Register(fl, "TLS is used for the "+role)
	f.tls.RegisterToken(fl)
}

func (f *gridFlags) check() error {
	if f.grid == "" {
		return command.BadUsage(fmt.Errorf(`--%s-grid: value "", allowed: a name; it is required`, f.role))
	}
	if len(f.endpoints) == 0 {
		return command.BadUsage(fmt.Errorf(`--%s-endpoint: value "", allowed: host:port; it is required`, f.role))
	}
	if _, err := f.tls.Given(); err != nil {
		return command.BadUsage(err)
	}
	return nil
}

// connect finds the grid, for as long as limit.
func (f *gridFlags) connect(ctx context.Context, limit time.Duration, log *slog.Logger) (*client.Client, error) {
	cfg := client.Config{Endpoints: f.endpoints, Grid: f.grid, Name: "grid-link", DialTimeout: limit, IO: client.IONet, Logger: log}
	if host, err := os.Hostname(); err == nil && len(cfg.Name)+len(host) < wire.MaxString {
		cfg.Name += "@" + host
	}
	var err error
	if cfg.TLS, err = f.tls.Client(); err != nil {
		return nil, command.BadUsage(err)
	}
	cfg.Token = f.tls.Token()
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("--%s-endpoint: %w", f.role, err)
	}
	return c, nil
}

// pairFlags are both grids and what every command has.
type pairFlags struct {
	source, target gridFlags
	partitions     []string
	dial           time.Duration
	logs           command.LogFlags
}

func (f *pairFlags) add(fl *pflag.FlagSet) {
	f.source.add(fl, "source")
	f.target.add(fl, "target")
	fl.StringSliceVar(&f.partitions, "partition", nil, "only these, for example p0,p1; default all")
	fl.DurationVar(&f.dial, "dial-timeout", 30*time.Second, "for finding the grids at the start, and for each connection")
	f.logs.Register(fl, "text")
}

// pair is two grids.
type pair struct {
	source, target *client.Client
	partitions     []wire.PartitionID // chosen; empty: all
	log            *slog.Logger
}

// check rejects flags that are wrong, before anything is dialled.
func (f *pairFlags) check() (parts []wire.PartitionID, log *slog.Logger, err error) {
	for _, g := range []*gridFlags{&f.source, &f.target} {
		if err := g.check(); err != nil {
			return nil, nil, err
		}
	}
	for _, v := range f.partitions {
		id, err := wire.ParsePartitionID(v)
		if err != nil {
			return nil, nil, command.BadUsage(fmt.Errorf("--partition: %w", err))
		}
		parts = append(parts, id)
	}
	log, err = f.logs.Logger(os.Stderr)
	return parts, log, err
}

// connect finds both grids.
func (f *pairFlags) connect(ctx context.Context) (*pair, error) {
	p := &pair{}
	var err error
	if p.partitions, p.log, err = f.check(); err != nil {
		return nil, err
	}
	if p.source, err = f.source.connect(ctx, f.dial, p.log); err != nil {
		return nil, err
	}
	if p.target, err = f.target.connect(ctx, f.dial, p.log); err != nil {
		p.source.Close() //nolint:errcheck // it never fails
		return nil, err
	}
	n := len(p.source.Table())
	if m := len(p.target.Table()); m != n {
		p.close()
		return nil, fmt.Errorf("grid %s has %d partitions, grid %s %d, allowed: the same number, an order belongs to the same partition at both", f.source.grid, n, f.target.grid, m)
	}
	for _, id := range p.partitions {
		if int(id) >= n {
			p.close()
			return nil, command.BadUsage(fmt.Errorf("--partition: value %s, allowed: p0..p%d", id, n-1))
		}
	}
	if len(p.partitions) == 0 {
		for i := range n {
			p.partitions = append(p.partitions, wire.PartitionID(i))
		}
	}
	return p, nil
}

func (p *pair) close() {
	p.source.Close() //nolint:errcheck // it never fails
	p.target.Close() //nolint:errcheck // it never fails
}
