// Package traffic puts load on a grid and records every order and every read
// with the time it was asked and the time it was answered.
//
// Orders are created on a fixed schedule, independent of the grid (an open loop), and go to all
// partitions in turn, each over several sessions of the Go client, which finds a new primary by
// itself. In addition, a direct prober at every node sends confirmed reads and a few orders to that
// node alone, and follows no hint: a node that wrongly believes to be primary would answer one.
package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Config of the traffic. Client stays owned by the caller.
type Config struct {
	Client     *client.Client
	Grid       string
	Partitions []wire.PartitionID
	Rate       int // orders per second, all partitions together
	Sessions   int // of each partition
	Reads      int // confirmed reads per second at every node
	Orders     int // orders per second at every node, beside Rate
	Seed       uint64
	// Probes are the partitions of the streams of orders, one a stream; empty: one
	// stream for each of Partitions. Rate is that of all of them.
	Probes []wire.PartitionID
	FIX    fixorder.Version // "": 4.2
	// Books are what each partition trades, in a grid that matches: orders meet there. nil: orders
	// are the one of the published tests. Partitions, and Probes, are those that trade.
	Books map[wire.PartitionID][]fixorder.Book
	// MaxOrders and MaxReads bound the record; 0: not. The traffic ends with the last order there
	// is room for.
	MaxOrders, MaxReads int64
	// Giving is how long Stop waits, first for orders that were never sent for lack of room in
	// their session's window, then for answers; 0: as long as its context.
	Giving time.Duration
}

func (c *Config) probes() []wire.PartitionID {
	if len(c.Probes) > 0 {
		return c.Probes
	}
	return c.Partitions
}

func (c *Config) fix() fixorder.Version { return cmp.Or(c.FIX, fixorder.FIX42) }

// maker makes the orders of a stream.
type maker interface {
	Make(index, seqNum int64, created, sent time.Time) []byte
}

func (c *Config) maker(id fixorder.ID, p wire.PartitionID) (maker, error) {
	if c.Books == nil {
		return fixorder.NewMaker(c.fix(), id)
	}
	return fixorder.NewTrading(c.fix(), id, c.Books[p])
}

// Traffic that is under way.
type Traffic struct {
	cfg     Config
	run     uint64
	streams []*records
	writers []*writer // partition by partition
	tally   tally
	ticker  *ticker

	reads   atomic.Int64 // sent by direct probers
	stopped atomic.Bool
	created chan struct{} // closed when the creator has ended
	err     error         // of the creator
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	nodes   []history.Node
	probers map[string]*prober // by address
	extra   []*records         // streams of direct probers
}

// Start opens the sessions and begins to create orders.
func Start(ctx context.Context, cfg Config) (*Traffic, error) {
	t := &Traffic{cfg: cfg, run: fixorder.NewRun(), created: make(chan struct{}), probers: map[string]*prober{}}
	for i, p := range cfg.probes() {
		r := &records{id: fixorder.ID{Run: t.run, Probe: i}, partition: p, node: -1, sessions: cfg.Sessions}
		t.streams = append(t.streams, r)
		for n := range cfg.Sessions {
			w := &writer{rec: r, thread: uint8(n), tally: &t.tally, wake: make(chan struct{}, 1)}
			var err error
			if w.maker, err = cfg.maker(r.id, p); err != nil {
				return nil, err
			}
			if w.s, err = cfg.Client.OpenSession(ctx, p); err != nil {
				return nil, err
			}
			t.writers = append(t.writers, w)
		}
	}
	// The creator and the ticker sleep in system calls that keep their scheduler slot; everything
	// else needs slots of its own.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+2))
	steady, err := load.NewSteady(cfg.Rate, 0)
	if err != nil {
		return nil, err
	}
	var background context.Context
	background, t.cancel = context.WithCancel(context.Background())
	for _, w := range t.writers {
		t.wg.Go(func() { w.drain(background) })
	}
	t.ticker = startTicker()
	go t.create(steady)
	return t, nil
}

func (t *Traffic) create(steady load.Schedule) {
	defer close(t.created)
	if t.err = clock.Thread(); t.err != nil {
		return
	}
	forever := cmp.Or(t.cfg.MaxOrders, 1<<60)
	parts := int64(len(t.streams))
	load.Pace(steady, clock.Now(), forever, &t.stopped, func(i, t1 int64) {
		p := i % parts
		index, o := t.streams[p].add()
		o.T1 = t1
		t.tally.newest.Store(t1)
		t.tally.created.Add(1)
		t.writers[p*int64(t.cfg.Sessions)+(i/parts)%int64(t.cfg.Sessions)].put(index)
	})
}

// maxProberStreams bounds the work of the judges: each stream needs one more pass over its
// partition's log.
const maxProberStreams = 256

// Watch ensures that there is a direct prober at each of the nodes. Those at nodes that are no
// longer named stay.
func (t *Traffic) Watch(nodes ...history.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range nodes {
		if t.probers[n.Address] != nil || n.Address == "" || len(t.extra) >= maxProberStreams {
			continue
		}
		number := len(t.nodes)
		t.nodes = append(t.nodes, n)
		in := newProber(t, number, n)
		t.probers[n.Address] = in
		t.extra = append(t.extra, in.streams...)
		in.start()
	}
}

// streamOf is the first stream of a partition, by its index; -1: it has none.
func (t *Traffic) streamOf(p wire.PartitionID) int {
	return slices.IndexFunc(t.streams, func(r *records) bool { return r.partition == p })
}

// Served is the creation time of the youngest acknowledged order of the slowest session of the
// partitions: all its older orders have been acknowledged.
func (t *Traffic) Served(partitions []wire.PartitionID) int64 {
	oldest := clock.Now()
	t.each(partitions, func(w *writer) { oldest = min(oldest, w.served.Load()) })
	return oldest
}

// Gap is the longest time that a session of the partitions was without an
// acknowledgement since ResetGap, the present one included.
func (t *Traffic) Gap(partitions []wire.PartitionID) time.Duration {
	longest, now := int64(0), clock.Now()
	t.each(partitions, func(w *writer) { longest = max(longest, w.gap.Load(), now-w.lastAck.Load()) })
	return time.Duration(longest)
}

// ResetGap restarts Gap.
func (t *Traffic) ResetGap() {
	for _, w := range t.writers {
		w.gap.Store(0)
	}
}

// Acks are the times of the acknowledgements of every session of a partition since Forget, and the
// last one before that; and when the youngest order was created. They are the same as in the
// record, and may be read while orders flow.
func (t *Traffic) Acks() (sessions map[wire.PartitionID][][]int64, newest int64) {
	sessions, newest = map[wire.PartitionID][][]int64{}, t.tally.newest.Load()
	for _, w := range t.writers {
		w.acksMu.Lock()
		sessions[w.rec.partition] = append(sessions[w.rec.partition], w.acks[:len(w.acks):len(w.acks)])
		w.acksMu.Unlock()
	}
	return sessions, newest
}

// Forget drops the acknowledgements before a time, except the last one of each session.
func (t *Traffic) Forget(before int64) {
	for _, w := range t.writers {
		w.forget(before)
	}
}

func (t *Traffic) each(partitions []wire.PartitionID, f func(*writer)) {
	for _, w := range t.writers {
		for _, p := range partitions {
			if w.rec.partition == p {
				f(w)
			}
		}
	}
}

// Counts are outcomes so far. OneCopy are those acknowledged whose receipt named
// one copy.
type Counts struct{ Created, Acked, Rejected, Unknown, OneCopy int64 }

// Counts of the sessions; direct probers not included.
func (t *Traffic) Counts() Counts {
	return Counts{t.tally.created.Load(), t.tally.acked.Load(), t.tally.rejected.Load(), t.tally.unknown.Load(), t.tally.oneCopy.Load()}
}

// Refusal is the error of the last refused order, and its time; nil: none was refused.
func (t *Traffic) Refusal() (at int64, err error) {
	t.tally.mu.Lock()
	defer t.tally.mu.Unlock()
	return t.tally.refusedAt, t.tally.refusal
}

// Ended reports that no more orders are created, for lack of room.
func (t *Traffic) Ended() bool {
	select {
	case <-t.created:
		return !t.stopped.Load()
	default:
		return false
	}
}

// Latencies of the orders acknowledged so far, from their creation on.
func (t *Traffic) Latencies() Latencies { return t.tally.latency.read() }

// Stop ends creation, waits for the answers and puts the record into h.
func (t *Traffic) Stop(ctx context.Context, h *history.History) error {
	t.stopped.Store(true)
	<-t.created
	err := t.err
	// The backlog is sent as answers make room; an order has the client's RequestTimeout from
	// there.
	give := time.Now().Add(cmp.Or(t.cfg.Giving, 24*time.Hour))
	for _, w := range t.writers {
		for w.waiting.Load() > 0 && ctx.Err() == nil && time.Now().Before(give) {
			time.Sleep(time.Millisecond)
		}
		w.giveUp()
	}
	// A session of a partition without processes waits for ever; its orders have had their time.
	draining, cancel := ctx, context.CancelFunc(func() {})
	if t.cfg.Giving > 0 {
		draining, cancel = context.WithTimeout(ctx, t.cfg.Giving)
	}
	defer cancel()
	for _, w := range t.writers {
		if e := w.s.Drain(draining); e != nil {
			err = errors.Join(err, fmt.Errorf("drain %s: %w", w.rec.partition, e))
		}
	}
	t.cancel()
	t.wg.Wait()
	for _, w := range t.writers {
		err = errors.Join(err, w.s.Close())
	}
	h.Stalls, h.Host.Ticks = t.ticker.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, in := range t.probers {
		in.stop()
		h.Reads = append(h.Reads, in.reads...)
		h.Refused += in.refused
	}
	h.Nodes = t.nodes
	for _, r := range append(t.streams, t.extra...) {
		h.Streams = append(h.Streams, r.stream())
	}
	if e := t.tally.example; e != nil {
		h.Notes = append(h.Notes, "first order that was not acknowledged: "+e.Error())
	}
	return err
}
