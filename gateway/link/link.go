// Package link carries the committed log of a grid's partitions to a standby in another cluster, entry for entry.
//
// It keeps nothing: where it goes on is the end of the standby's log. The source holds what the standby has not
// committed, because the link follows under the name of a sink. So entries are there once and in order over any number
// of failures of either grid, of the way between them, and of the link. A slow standby makes the link wait, and then the
// source hold its log: nothing is skipped.
package link

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
	Source, Target         *client.Client
	SourceName, TargetName string // of the grids
	// Reader is the name of a sink of type External in the configuration of both grids.
	Reader string
	// Partitions to link, each over a connection of its own; all when empty.
	Partitions []wire.PartitionID
	// Batch and Delay: entries are sent when there are Batch of them, or when the first one has waited for Delay. Without
	// a Delay each is sent at once. 1,024 when 0.
	Batch int
	Delay time.Duration
	// MaxBandwidth is how many bytes of entries a second all partitions together send. 0: no limit.
	MaxBandwidth int64
	// Buffer is how many bytes of a partition's entries wait here to be sent. 4 MiB when 0.
	Buffer int
	Logger *slog.Logger // nothing is logged when nil
}

// Limits of a Config.
const (
	DefaultBatch  = 1024
	MaxBatch      = 1 << 20
	MaxDelay      = time.Minute
	MinBandwidth  = 64 << 10
	defaultBuffer = 4 << 20
	minBuffer     = 64 << 10
	maxBuffer     = 1 << 30
)

// Check fills in what is usual, and rejects what is wrong. The grids are not looked at.
func (c *Config) Check() error {
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !order.IsReaderName(c.Reader):
		return fmt.Errorf("name of the reader is %.40q, allowed: 1 to %d lowercase letters, digits and hyphens, as in spec.sinks[].name", c.Reader, order.MaxReaderName)
	case c.SourceName == "" || len(c.SourceName) > wire.MaxString:
		return fmt.Errorf("name of the source is %.40q, allowed: 1 to %d bytes", c.SourceName, wire.MaxString)
	case c.Batch < 1 || c.Batch > MaxBatch:
		return fmt.Errorf("batch is %d, allowed: 1..%d entries", c.Batch, MaxBatch)
	case c.Delay < 0 || c.Delay > MaxDelay:
		return fmt.Errorf("delay is %s, allowed: 0 to %s", c.Delay, MaxDelay)
	case c.MaxBandwidth != 0 && c.MaxBandwidth < MinBandwidth:
		return fmt.Errorf("maxBandwidth is %d, allowed: %d bytes a second or more, or 0 for no limit", c.MaxBandwidth, MinBandwidth)
	case c.Buffer < minBuffer || c.Buffer > maxBuffer:
		return fmt.Errorf("buffer is %d, allowed: %d..%d bytes", c.Buffer, minBuffer, maxBuffer)
	}
	return nil
}

// Runner links the partitions of two grids.
type Runner struct {
	cfg     Config
	parts   []*partition
	pace    pace
	metrics *metrics
}

// New returns a Runner for Run. Both grids have the same number of partitions.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	n, m := len(cfg.Source.Table()), len(cfg.Target.Table())
	if n != m {
		return nil, fmt.Errorf("the source has %d partitions, the target %d, allowed: the same number; an order belongs to the same partition at both", n, m)
	}
	if len(cfg.Partitions) == 0 {
		for p := range n {
			cfg.Partitions = append(cfg.Partitions, wire.PartitionID(p))
		}
	}
	r := &Runner{cfg: cfg, pace: pace{rate: cfg.MaxBandwidth}}
	for _, id := range cfg.Partitions {
		if int(id) >= n {
			return nil, fmt.Errorf("partition is %s, allowed: p0..p%d", id, n-1)
		}
		r.parts = append(r.parts, &partition{r: r, id: id, log: cfg.Logger.With("partition", id.String())})
	}
	r.metrics = newMetrics(r)
	return r, nil
}

// Collector exports the metrics of the Runner.
func (r *Runner) Collector() prometheus.Collector { return r.metrics }

// Run links until ctx ends. A partition that fails does not hold up the others.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range r.parts {
		all.Go(func() { p.run(ctx) })
		all.Go(func() { p.survey(ctx) })
	}
	all.Wait()
}
