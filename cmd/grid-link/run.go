package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

type runFlags struct {
	pairFlags
	reader    string
	batch     int
	delay     time.Duration
	bandwidth int64
	buffer    int
	http      string
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Carry the log until interrupted",
		Long: `Carries the log of the source to the target until it is interrupted. It may be killed at any
time, and started anywhere else: the next one goes on where the standby's log ends.

Its lag is in /status and /metrics: what a forced promotion would lose. A target that is slow
or away makes it wait; the source holds its log meanwhile, as for any sink.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	f.add(fl)
	fl.StringVar(&f.reader, "reader", "link", "name of the sink of type External in both grids: spec.sinks[].name, --external-sink of grid-node")
	fl.IntVar(&f.batch, "batch", link.DefaultBatch, "entries that are sent at once, at most; a frame has 64 KiB of them at most")
	fl.DurationVar(&f.delay, "delay", 0, "how long an entry may wait for a batch; 0: each is sent at once")
	fl.Int64Var(&f.bandwidth, "max-bandwidth", 0, "bytes of entries a second, all partitions together, 65536 or more; 0: no limit")
	fl.IntVar(&f.buffer, "buffer", 4<<20, "bytes of each partition that wait here to be sent, 65536 to 1073741824")
	fl.StringVar(&f.http, "http", "127.0.0.1:9403", "address for /metrics, /healthz, /readyz and /status; empty for none")
	return cmd
}

func (f *runFlags) run(ctx context.Context) error {
	if _, _, err := f.check(); err != nil {
		return err
	}
	cfg := link.Config{
		SourceName: f.source.grid, TargetName: f.target.grid, Reader: f.reader,
		Batch: f.batch, Delay: f.delay, MaxBandwidth: f.bandwidth, Buffer: f.buffer,
	}
	if err := cfg.Check(); err != nil {
		return command.BadUsage(err)
	}
	p, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	cfg.Source, cfg.Target, cfg.Partitions, cfg.Logger = p.source, p.target, p.partitions, p.log
	r, err := link.New(cfg)
	if err != nil {
		return command.BadUsage(err)
	}
	return webguard.RunWithPages(ctx, f.http, r, p.log)
}
