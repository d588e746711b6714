package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// source is what a target is told of the grid that it is for.
type source struct {
	Grid       string
	Sink       string
	Partitions int // of the grid, whichever of them are written
	Client     *client.Client
	Log        *slog.Logger
}

// usual are a target's defaults of the flags of batches.
type usual struct {
	entries, bytes int
	linger         time.Duration
}

var usualBatches = usual{entries: sink.DefaultMaxEntries, bytes: sink.DefaultMaxBytes, linger: 5 * time.Millisecond}

// targetCommand is the subcommand of a kind of target. flags adds its own flags; open returns the target, or an
// error of the command line for flags that are wrong, and is called when the grid is known. executions, if there is one,
// reports whether the target takes them.
func targetCommand(name, short, long string, u usual, flags func(*pflag.FlagSet), open func(context.Context, source) (sink.Target, error), executions ...func() bool) *cobra.Command {
	f := runFlags{}
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, on := range executions {
				f.executions = on()
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr(), open)
		},
	}
	f.add(cmd.Flags(), u)
	flags(cmd.Flags())
	return cmd
}

// runFlags are common to all targets.
type runFlags struct {
	endpoints  []string
	grid, sink string
	partitions []string
	tls        tlsflag.Flags
	dial       time.Duration

	entries, bytes int
	executions     bool // of the target's flags
	linger, write  time.Duration
	http           string
	log            command.LogFlags
}

func (f *runFlags) add(fl *pflag.FlagSet, u usual) {
	fl.StringSliceVar(&f.endpoints, "endpoint", []string{"127.0.0.1:7400"}, "host:port of any node, or of the grid's client service; several separated by commas")
	fl.StringVar(&f.grid, "grid", "", "name of the grid; required, what is written carries it")
	fl.StringVar(&f.sink, "sink", "", "name of the sink in the grid: spec.sinks[].name, --external-sink of grid-node; required")
	fl.StringSliceVar(&f.partitions, "partition", nil, "only these, for example p0,p1; default all. Two processes of one sink must not share one: they would fence each other")
	f.tls.Register(fl, "TLS is used for the grid")
	f.tls.RegisterToken(fl)
	fl.DurationVar(&f.dial, "dial-timeout", 30*time.Second, "for finding the grid at the start")
	fl.IntVar(&f.entries, "batch-entries", u.entries, "entries of a batch, at most. A batch is what came while the one before was written")
	fl.IntVar(&f.bytes, "batch-bytes", u.bytes, "bytes of entries of a batch, at most; two batches of each partition are in memory")
	fl.DurationVar(&f.linger, "linger", u.linger, "how long a batch waits for more entries while nothing is being written")
	fl.DurationVar(&f.write, "write-timeout", time.Minute, "for writing a batch, and for opening the target")
	fl.StringVar(&f.http, "http", "127.0.0.1:9402", "address for /metrics, /healthz, /readyz and /status; empty for none")
	f.log.Register(fl, "text")
}

func (f *runFlags) run(ctx context.Context, errOut io.Writer, open func(context.Context, source) (sink.Target, error)) error {
	log, err := f.log.Logger(errOut)
	if err != nil {
		return err
	}
	for _, r := range []struct{ flag, value string }{{"grid", f.grid}, {"sink", f.sink}} {
		if r.value == "" {
			return command.BadUsage(fmt.Errorf(`--%s: value "", allowed: a name; it is required`, r.flag))
		}
	}
	if !order.IsReaderName(f.sink) {
		return command.BadUsage(fmt.Errorf("--sink: value %.40q, allowed: 1 to %d lowercase letters, digits and hyphens", f.sink, order.MaxReaderName))
	}
	var parts []wire.PartitionID
	for _, v := range f.partitions {
		id, err := wire.ParsePartitionID(v)
		if err != nil {
			return command.BadUsage(fmt.Errorf("--partition: %w", err))
		}
		parts = append(parts, id)
	}
	c, err := f.connect(ctx, log)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	target, err := open(ctx, source{Grid: f.grid, Sink: f.sink, Partitions: len(c.Table()), Client: c, Log: log})
	if err != nil {
		return err
	}
	defer target.Close() //nolint:errcheck // what was written is durable
	r, err := sink.New(sink.Config{
		Client: c, Target: target, Grid: f.grid, Sink: f.sink, Executions: f.executions, Partitions: parts,
		MaxEntries: f.entries, MaxBytes: f.bytes, Linger: f.linger, WriteTimeout: f.write, Logger: log,
	})
	if err != nil {
		return command.BadUsage(err)
	}
	return webguard.RunWithPages(ctx, f.http, r, log)
}

func (f *runFlags) connect(ctx context.Context, log *slog.Logger) (*client.Client, error) {
	cfg := client.Config{Endpoints: f.endpoints, Grid: f.grid, Name: "grid-sink/" + f.sink, DialTimeout: f.dial, IO: client.IONet, Logger: log}
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

// serve runs until ctx ends.
