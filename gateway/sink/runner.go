package sink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Config of a Runner.
type Config struct {
	Client *client.Client
	Target Target
	Grid   string // its name, for status
	// Sink is the name of a sink of type External in the grid's configuration.
	Sink string
	// Executions adds what entries did to the batches. The grid has to match.
	Executions bool
	// Partitions to write; all of the grid when empty. The number of partitions of a grid never changes.
	Partitions []wire.PartitionID
	// MaxEntries and MaxBytes bound a batch; 16,384 entries, or as many executions, and 8 MiB when 0. A partition has two
	// batches in memory. What one entry did is in one batch.
	MaxEntries, MaxBytes int
	// Linger is how long a batch waits for more entries while nothing is being written. 0: not at all.
	Linger time.Duration
	// WriteTimeout bounds an Open and a Write; 1 min when 0.
	WriteTimeout time.Duration
	Logger       *slog.Logger // nothing is logged when nil
}

const (
	// DefaultMaxEntries is the most entries of a batch.
	DefaultMaxEntries = 16384
	// DefaultMaxBytes is the most bytes of entries of a batch; the last entry may exceed it.
	DefaultMaxBytes = 8 << 20

	defaultWriteTimeout = time.Minute
	// usualPatience is how long a follower may get nothing before its trouble counts as an error.
	usualPatience = 5 * time.Second
	// quietTime is how long entries that are only bookkeeping wait for others: the position of a sink is such an entry,
	// and must not cause the next one.
	quietTime = 10 * time.Second
	// stopGrace is how long a write may go on when the Runner is stopped.
	stopGrace = 10 * time.Second
)

// Runner writes the partitions of a grid to a Target, each on two goroutines of its own: one follows the log, the other
// one writes. A partition that fails does not hold up the others.
type Runner struct {
	cfg      Config
	parts    []*partition
	metrics  *metrics
	limits   limits
	pauses   pauses
	patience time.Duration
}

// New returns a Runner for Run.
func New(cfg Config) (*Runner, error) {
	if !order.IsReaderName(cfg.Sink) {
		return nil, fmt.Errorf("name of the sink is %.40q, allowed: 1 to %d lowercase letters, digits and hyphens, as in spec.sinks[].name", cfg.Sink, order.MaxReaderName)
	}
	for _, f := range []struct {
		name     string
		v        *int
		def, max int
	}{{"MaxEntries", &cfg.MaxEntries, DefaultMaxEntries, 1 << 20}, {"MaxBytes", &cfg.MaxBytes, DefaultMaxBytes, 1 << 30}} {
		if *f.v < 0 || *f.v > f.max {
			return nil, fmt.Errorf("%s of a batch is %d, allowed: 1..%d, or 0 for %d", f.name, *f.v, f.max, f.def)
		}
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	if cfg.Linger < 0 || cfg.Linger > time.Minute {
		return nil, fmt.Errorf("linger of a batch is %s, allowed: 0 to 1m", cfg.Linger)
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = defaultWriteTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	table := cfg.Client.Table()
	if len(cfg.Partitions) == 0 {
		for _, p := range table {
			cfg.Partitions = append(cfg.Partitions, p.ID)
		}
	}
	r := &Runner{cfg: cfg, limits: limits{cfg.MaxEntries, cfg.MaxBytes, cfg.Linger, quietTime}, pauses: usualPauses, patience: usualPatience}
	for _, id := range cfg.Partitions {
		if int(id) >= len(table) {
			return nil, fmt.Errorf("partition is %s, allowed: p0..p%d, the grid's %d partitions", id, len(table)-1, len(table))
		}
		r.parts = append(r.parts, &partition{r: r, id: id, log: cfg.Logger.With("sink", cfg.Sink, "partition", id.String())})
	}
	r.metrics = newMetrics(r)
	return r, nil
}

// Collector exports the metrics of the Runner.
func (r *Runner) Collector() prometheus.Collector { return r.metrics }

// Run writes until ctx ends. Then it finishes the batches that are being written, for at most 10 s, and tells the grid
// what the target holds.
func (r *Runner) Run(ctx context.Context) {
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	defer stop()
	var all sync.WaitGroup
	for _, p := range r.parts {
		all.Go(func() { p.run(ctx, writing) })
	}
	all.Go(func() { r.survey(ctx) })
	all.Wait()
}
