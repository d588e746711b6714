package rounds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Move is what a partition that moves from one pair of nodes to another does to the orders.
type Move struct {
	Orders int64         // the partition had when it began to move
	Bytes  int64         // their size in memory, per copy
	Copies int           // new ones
	Took   time.Duration // until exactly the new nodes had it
	Unsent int64         // orders that were due and not sent: the machine was too busy
	// Disturbed seconds are in no part: the hypervisor took more of them than a round may lose, or of the one before.
	Disturbed int
	// Before, During and After are the parts of one load.
	Before, During, After Part
}

// Part of a load.
type Part struct {
	For         time.Duration
	Orders      int64
	CreateToEnd report.Histogram
	Gap         time.Duration // the longest in which no order was answered
}

// ErrMoveLong means that a move was not over when the load was.
var ErrMoveLong = errors.New("the partition was still moving when the load ended: give it more time with --duration, or fewer orders with --cases")

// Move fills a grid of two shards by the case, and moves its partition from one to the other in the middle of the load.
func (r *Runner) Move(ctx context.Context, at system.Place, c *cases.Case, s system.System) (m Move, err error) {
	run, err := s.Start(ctx, at, system.Topology{Copies: c.Copies, Partitions: c.Partitions, Shards: 2, MemoryMiB: min(c.MemoryMiB, affordable(2*c.Copies))})
	if err != nil {
		return m, fmt.Errorf("start %s: %w", s.Name(), err)
	}
	defer func() { err = errors.Join(err, run.Stop()) }()
	spec := r.spec(c)
	spec.Driver, spec.Addresses, spec.PIDs, spec.TLS = run.Driver, run.Addresses, run.PIDs, run.TLS
	fill := spec
	fill.Warmup, fill.Duration = 0, time.Second
	if _, err := r.generate(ctx, at, &fill); err != nil {
		return m, fmt.Errorf("submit %d orders ahead: %w", c.Held, err)
	}
	client := nodestatus.NewClient(10*time.Second, at.Dial)
	if m.Orders, m.Bytes, err = sizeOf(ctx, client, run.HTTP[0]); err != nil {
		return m, err
	}
	r.Say("%d orders, %d MiB of each copy, on the first pair; %v of load now", m.Orders, m.Bytes>>20, spec.Duration)
	m.Copies = c.Copies
	spec.Held, spec.Series = 0, true
	var res generator.Result
	loaded := make(chan error, 1)
	stolen := watchSteal(ctx)
	go func() {
		var err error
		res, err = r.generate(ctx, at, &spec)
		loaded <- err
	}()
	from, to, err := moveDuring(ctx, run, spec.Warmup+spec.Duration/4, loaded)
	if err != nil {
		return m, err
	}
	if err := <-loaded; err != nil {
		return m, err
	}
	if res.Failed > res.Unsent {
		return m, fmt.Errorf("%d orders failed while the partition moved: %s", res.Failed-res.Unsent, res.Error)
	}
	m.Took, m.Unsent = to.Sub(from), res.Unsent
	samples, err := stolen()
	if err != nil {
		return m, err
	}
	m.split(res.Series, from.Sub(res.Began), to.Sub(res.Began), samples.disturbs(res.Began, r.Limits.MaxSteal))
	return m, nil
}

// moveDuring moves partition 0 once the load has run for so long, and returns when that began and ended.
func moveDuring(ctx context.Context, run *system.Running, after time.Duration, loaded chan error) (from, to time.Time, err error) {
	select {
	case <-time.After(after):
	case err := <-loaded:
		return from, to, errors.Join(errors.New("the load ended before the partition moved"), err)
	case <-ctx.Done():
		return from, to, ctx.Err()
	}
	from = time.Now()
	if err := run.Move(0, 1); err != nil {
		return from, to, err
	}
	for !run.On(0, 1) {
		select {
		case err := <-loaded:
			return from, to, errors.Join(ErrMoveLong, err)
		case <-ctx.Done():
			return from, to, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return from, time.Now(), nil
}

// split gives whole seconds to the parts: one in which the partition moves, however shortly, is of the move, and one that
// was disturbed of none.
func (m *Move) split(series []generator.Second, from, to time.Duration, disturbed func(second time.Duration) bool) {
	for i := range series {
		second := time.Duration(i) * time.Second
		if disturbed(second) {
			m.Disturbed++
			continue
		}
		part := &m.During
		switch {
		case second+time.Second <= from:
			part = &m.Before
		case second >= to:
			part = &m.After
		}
		part.For += time.Second
		part.Orders += series[i].Orders
		part.CreateToEnd.Merge(series[i].CreateToEnd)
		part.Gap = max(part.Gap, series[i].Gap)
	}
}

// sizeOf is how many orders a node has in its first partition, and in how many bytes.
func sizeOf(ctx context.Context, c *http.Client, url string) (orders, bytes int64, err error) {
	n, err := nodestatus.Get(ctx, c, strings.TrimPrefix(url, "http://"))
	if err != nil {
		return 0, 0, err
	}
	if len(n.Partitions) == 0 {
		return 0, 0, fmt.Errorf("%s has no partition", n.Pod)
	}
	p := &n.Partitions[0]
	return int64(p.LastSeq - p.FreedSeq), p.Bytes, nil
}
