// Package node is the data plane of one pod: it feeds the replicas of a shard's
// partitions with what the transport, the arbiter and the write-behind queue have
// to say, and carries out what they decide.
//
// One loop thread owns everything in Node that is not said to be shared. Other
// goroutines (arbiter calls, HTTP, write-behind) reach it by Loop.Post.
package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/grid-node/writebehind"
)

// ErrRestart is returned by Run when a replica must not go on with the memory it
// has: the process has to end and start again, as a new member.
var ErrRestart = errors.New("this member has to start again with nothing")

const (
	helloTimeout         = 3 * time.Second
	transportDialTimeout = time.Second
)

// Node is one grid node.
type Node struct {
	cfg    Config
	log    *slog.Logger
	self   string // member id
	boot   uint64
	window int
	loop   transport.Loop
	budget *store.Budget
	parts  []*partition
	table  []byte // encoded Table answer, request id patched in; nil = build anew

	clients  map[uint64]*link // ready clients by connection id
	awaiting linkSet          // connections that have not said Hello or Welcome yet
	peers    map[string]*peer // by address
	warm     map[string]string
	warmAt   int64

	ev       replica.Event // reused: what a Step gets
	dirty    []*partition  // stepped since their last flush
	counters metrics.NodeCounters
	loopStat metrics.LoopHistograms
	alarms   alarmLog
	stopping bool
	err      error
	registry *metrics.Registry
	submits  uint64 // Submit frames seen, to time every preprocessSample-th

	ctx    context.Context // ends with the node: arbiter calls, write-behind
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// partition is one replica and what belongs to it.
type partition struct {
	n         *Node
	id        wire.PartitionID
	name      string // of the arbiter's record
	store     *store.Store
	replica   *replica.Replica
	out       replica.Outbox
	dirty     bool
	drained   bool
	committed uint64 // last ActionCommitted
	status    replica.Status
	reading   bool               // a read of the record is under way
	queue     *writebehind.Queue // nil with the sink "hold"
}

// New checks the configuration and makes the node with its partitions.
func New(cfg Config) (*Node, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, clients: map[uint64]*link{}, peers: map[string]*peer{}, warm: map[string]string{}}
	for n.boot == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails, see its documentation
		n.boot = binary.LittleEndian.Uint64(b[:])
	}
	n.self = wire.FormatMemberID(cfg.Pod, n.boot)
	n.log = cfg.Log.With("pod", cfg.Pod, "bootID", wire.FormatBootID(n.boot))
	n.ctx, n.cancel = context.WithCancel(context.Background())
	var err error
	n.loop, err = transport.New(cfg.Transport, transport.Config{
		MaxConns: cfg.MaxConns, MaxInput: wire.MaxFrame, Tick: cfg.Beacon / 2, DialTimeout: transportDialTimeout,
		MaxMemory: int(min(256<<20, cfg.MemoryLimit/4)),
	}, n)
	if err != nil {
		return nil, err
	}
	n.registry = metrics.NewRegistry(&metrics.Collector{Snapshot: n.snapshot})
	n.budget = store.NewBudget(storeLimit(cfg.MemoryLimit))
	for i := range cfg.Partitions {
		p, err := n.newPartition(i)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, p)
	}
	return n, nil
}

// storeLimit is what orders may take of the process's memory: the rest is for
// the Go runtime, connection buffers and the page tables of the store itself.
func storeLimit(limit int64) int64 {
	return limit - min(limit/4, 192<<20)
}

func (n *Node) newPartition(index int) (*partition, error) {
	id, err := wire.MakePartitionID(n.cfg.Shard, index)
	if err != nil {
		return nil, err
	}
	p := &partition{n: n, id: id, name: PartitionName(n.cfg.Grid, n.cfg.Shard, index)}
	if p.store, err = store.New(store.Options{Budget: n.budget}); err != nil {
		return nil, fmt.Errorf("partition %s: %w", id, err)
	}
	opt := replica.Options{
		Partition: id, Self: replica.Member{ID: n.self, Boot: n.boot, Address: n.cfg.Advertise},
		Store: p.store, Replicas: n.cfg.Replicas, MinInSync: n.cfg.MinInSync,
		Timing: replica.Timing{Beacon: n.cfg.Beacon, Lease: n.cfg.Lease, Grace: n.cfg.Grace, ClaimDelay: n.cfg.ClaimDelay},
	}
	if n.cfg.LeasedReads {
		opt.LeaseClock = func() int64 { return n.loop.Clock().Exact() }
	}
	if p.replica, err = replica.New(opt); err != nil {
		return nil, err
	}
	return p, nil
}

// Member is the node's id, "<pod>/<bootID>".
func (n *Node) Member() string { return n.self }

// Run serves until ctx ends, then drains, or until the node cannot go on. It
// returns nil after an orderly end and an error that wraps ErrRestart when the
// process has to be started again.
func (n *Node) Run(ctx context.Context) error {
	defer n.close()
	if err := transport.TuneScheduler(1); err != nil {
		return err
	}
	addr, err := n.loop.Listen(n.cfg.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; is another node running here?", err)
	}
	if n.cfg.HTTP != "" {
		if err := n.serveHTTP(); err != nil {
			return fmt.Errorf("--http: %w", err)
		}
	}
	n.log.Info("node starts", "grid", n.cfg.Grid, "shard", n.cfg.Shard, "listen", addr.String(), "advertise", n.cfg.Advertise,
		"partitions", len(n.parts), "memoryLimitBytes", n.cfg.MemoryLimit, "orderLimitBytes", n.budget.Limit())
	for _, p := range n.parts {
		n.wg.Go(func() { n.watch(p) })
	}
	n.startSinks()
	n.wg.Go(n.prefault)
	n.wg.Go(func() {
		select {
		case <-ctx.Done():
			n.drain()
		case <-n.ctx.Done():
		}
	})
	err = n.loop.Run()
	n.cancel()
	return errors.Join(n.err, err)
}

// fail ends the node from the loop.
func (n *Node) fail(err error) {
	if n.err == nil {
		n.err = err
		n.loop.Stop()
	}
}

// close gives everything back once the loop has ended.
func (n *Node) close() {
	n.cancel()
	n.wg.Wait()
	for _, p := range n.parts {
		p.store.Close()
	}
}

// prefault keeps the memory that the stores write next present, so that the loop
// does not take the page faults. It looks more often while much is written.
func (n *Node) prefault() {
	const ahead = 8 << 20
	var last uint64
	for pause := time.Millisecond; ; {
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(pause):
		}
		var sum uint64
		for _, p := range n.parts {
			sum += p.store.Committed()
		}
		if sum == last {
			pause = min(2*pause, 50*time.Millisecond)
			continue
		}
		last, pause = sum, 2*time.Millisecond
		for _, p := range n.parts {
			p.store.Prefault(ahead)
		}
	}
}
