package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Recorder records one drill. Handler serves it while Run goes on.
type Recorder struct {
	cfg       Config
	maxOrders int64

	sender, watch *client.Client
	traffic       *traffic.Traffic
	parts         []wire.PartitionID
	before        host.Sample
	nodeHTTP      *nodes
	told          told     // executions
	auctions      auctions // that are held
	functions     asked    // in the beginning

	finish chan struct{} // closed when the end was requested

	mu       sync.Mutex // guards all that follows
	phase    api.Phase
	failure  string
	progress string
	started  int64
	h        *history.History
	asked    *api.Finish
	steps    []*step // in the order in which they began
	open     []*step // of these, those under way
	unclosed []*step // whose outage may still change
	view     view
	gaps     gaps
	recent   recent
	out      output
}

// New prepares a recorder; it makes no connection.
func New(cfg Config) (*Recorder, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Say == nil {
		cfg.Say = func(string, ...any) {}
	}
	// A session with one order per second is not without service in between.
	cfg.GapLimit = max(cfg.GapLimit, 4*time.Duration(cfg.Sessions)*time.Second/time.Duration(cfg.Rate))
	r := &Recorder{cfg: cfg, maxOrders: cfg.MaxOrders, finish: make(chan struct{}), phase: api.Preparing, nodeHTTP: newNodes(cfg)}
	limit, of := memoryLimit()
	limitMemory(limit)
	if r.maxOrders == 0 {
		r.maxOrders = api.OrdersIn(limit, cfg.Replicas)
	}
	if need := int64(cfg.Probes * cfg.Rate); r.maxOrders < need {
		return nil, fmt.Errorf("--max-orders %d: not one second of %d orders/s; the memory limit is %d MiB (%s): give the recorder more memory", r.maxOrders, need, limit>>20, of)
	}
	cfg.Say("the ledger has room for %d orders, %s at %d/s (memory limit %d MiB, %s)", r.maxOrders,
		(time.Duration(r.maxOrders) * time.Second / time.Duration(cfg.Probes*cfg.Rate)).Round(time.Second), cfg.Probes*cfg.Rate, limit>>20, of)
	return r, nil
}

// Run records until the end is requested or ctx ends, then judges. It returns nil when there is a
// certificate, whatever its verdict. A run interrupted by ctx is still judged, as a drill that was
// ended early.
func (r *Recorder) Run(ctx context.Context) error {
	defer r.close()
	defer r.announcing(ctx)()
	if err := r.prepare(ctx); err != nil {
		return r.fail(err)
	}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){r.watchTable, r.watchGaps, r.watchChanges} {
		wg.Go(func() { f(watching) })
	}
	select {
	case <-ctx.Done():
	case <-r.finish:
	}
	err := r.end(ctx, func() { stop(); wg.Wait() })
	stop()
	wg.Wait()
	if err != nil {
		return r.fail(err)
	}
	return nil
}

func (r *Recorder) close() {
	r.auctions.stop()
	for _, c := range []*client.Client{r.sender, r.watch} {
		if c != nil {
			_ = c.Close()
		}
	}
}

func (r *Recorder) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.failure = api.Failed, err.Error()
	return err
}

// prepare connects, notes where the logs end, and opens the traffic.
func (r *Recorder) prepare(ctx context.Context) (err error) {
	connect, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	dial := func(name string, told func([]client.Execution)) (*client.Client, error) {
		for {
			c, err := client.Dial(connect, client.Config{OnExecutions: told, Endpoints: r.cfg.Endpoints, Grid: r.cfg.Grid, Name: name, RequestTimeout: r.cfg.Timeout, TLS: r.cfg.TLS, Token: r.cfg.GridToken, Dial: r.cfg.Dial})
			if err == nil {
				return c, nil
			}
			if clock.Wait(connect, 250*time.Millisecond) != nil {
				return nil, fmt.Errorf("connect to %v: not within %s: %w", r.cfg.Endpoints, r.cfg.Patience, err)
			}
		}
	}
	if r.watch, err = dial("drill-watch", nil); err != nil {
		return err
	}
	var tell func([]client.Execution)
	if r.watch.BySymbol() {
		tell = r.told.add
	}
	if r.sender, err = dial("drill-traffic", tell); err != nil {
		return err
	}
	var parts []wire.PartitionID // r's own fields are already used concurrently
	for _, p := range r.sender.Table() {
		parts = append(parts, p.ID)
	}
	if len(parts) == 0 {
		return errors.New("the grid names no partition")
	}
	trading, err := r.trading(connect, &parts)
	if err != nil {
		return err
	}
	h := &history.History{FIX: r.cfg.FIX, Trading: trading, Scenario: "drill", Target: "drill", Seed: r.cfg.Seed, Rate: r.cfg.Probes * r.cfg.Rate, Replicas: r.cfg.Replicas, Partitions: parts}
	h.Functions, r.functions = r.nodeHTTP.askFunctions(connect, r.watch.Table(), nil)
	r.roomForRecords(h.Functions)
	if h.Bases, err = r.bases(connect, parts); err != nil {
		return err
	}
	if r.before, err = host.Take(nil); err != nil {
		return err
	}
	var probes []wire.PartitionID
	for i := range r.cfg.Probes {
		probes = append(probes, parts[i%len(parts)])
	}
	h.Started, h.StartedAt = time.Now(), clock.Now()
	orders, err := traffic.Start(connect, traffic.Config{Client: r.sender, Grid: r.cfg.Grid, Partitions: parts, Probes: probes, Rate: r.cfg.Probes * r.cfg.Rate,
		Sessions: r.cfg.Sessions, Reads: r.cfg.Reads, Orders: r.cfg.Orders, Seed: r.cfg.Seed, FIX: r.cfg.FIX, Books: trading,
		MaxOrders: r.maxOrders, MaxReads: maxReadsOf(r.maxOrders), Giving: r.cfg.Timeout + 5*time.Second})
	if err != nil {
		return fmt.Errorf("open the traffic: %w", err)
	}
	if err := r.startAuctions(connect, trading); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h, r.parts, r.traffic, r.started, r.phase = h, parts, orders, h.StartedAt, api.Running
	r.cfg.Say("%d probes at %d orders/s each on partitions %v", r.cfg.Probes, r.cfg.Rate, r.parts)
	return nil
}

var errStop = errors.New("stop")

// bases finds where each log ends before the first order.
func (r *Recorder) bases(ctx context.Context, parts []wire.PartitionID) (out []history.Base, err error) {
	for _, p := range parts {
		// The first chunk has the end of the log; its entries are ignored, and its beginning may be
		// freed.
		reader := r.watch.NewLogReader(p, "")
		if _, err := reader.Next(ctx, func(client.LogEntry) error { return errStop }); err != nil && !errors.Is(err, errStop) {
			return nil, fmt.Errorf("where the log of %s ends: %w", p, err)
		}
		at := reader.End()
		b := history.Base{Partition: p, Seq: at.CommitSeq}
		if at.CommitSeq > 0 && at.LastSeq == at.CommitSeq {
			b.Hash, b.Known = at.LastHash, true
		}
		out = append(out, b)
	}
	return out, nil
}

// all partitions of the grid, or those named.
func (r *Recorder) named(names []string) ([]wire.PartitionID, error) {
	if len(names) == 0 {
		return slices.Clone(r.parts), nil
	}
	var out []wire.PartitionID
	for _, n := range names {
		p, err := wire.ParsePartitionID(n)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(r.parts, p) {
			return nil, fmt.Errorf("partition %s: the grid has %v", n, r.parts)
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}
