// Package node is the data plane of one pod: it feeds the replicas of a shard's
// partitions with what the transport, the arbiter and the write-behind queue have
// to say, and carries out what they decide.
//
// One loop thread owns everything in Node that is not said to be shared. Other
// goroutines (arbiter calls, HTTP, write-behind) reach it by Loop.Post.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

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
	loop   transport.Loop
	live   *liveness
	plan   memoryPlan
	budget *store.Budget
	parts  []*partition

	clients  map[uint64]*link // ready clients by connection id
	connsOf  map[string]int   // how many of them by Identity.Key, see takeIn
	awaiting linkSet          // connections that have not said Hello or Welcome yet
	bulkIn   linkSet          // bulk connections that others dialled
	peers    map[string]*peer // by address
	warm     map[string]string
	warmAt   int64
	lookAt   int64 // wall clock: when a client's token is due to be looked at again; 0 for none
	lookedAt int64
	unknown  map[string]*unknownPeer // configured names that lead nowhere

	ev        replica.Event // reused: what a Step gets
	dirty     []*partition  // stepped since their last flush
	counters  metrics.NodeCounters
	loopStat  metrics.LoopHistograms
	alarms    alarmLog
	dog       *watchdog
	stopping  bool          // a drain has begun
	layout    wire.Layout   // which shards take orders; zero until a record says so
	external  external      // addresses for clients outside
	hurry     chan struct{} // closed: wait for nobody
	hurryOnce sync.Once
	registry  *metrics.Registry
	submits   uint64 // Submit frames seen, to time every processSample-th
	acks      uint64 // acknowledgements of other members, likewise
	fabric    metrics.Fabric
	api       arbiterContact
	room      room
	trust     *peerTrust
	sinkAsked chan sinkRequest
	web       *webguard.Listener // of HTTP; nil: none

	ctx    context.Context // ends with the node: arbiter calls, write-behind
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New checks the configuration and makes the node with its partitions.
func New(cfg Config) (*Node, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, clients: map[uint64]*link{}, connsOf: map[string]int{}, peers: map[string]*peer{}, warm: map[string]string{}, unknown: map[string]*unknownPeer{}, hurry: make(chan struct{}),
		sinkAsked: make(chan sinkRequest, maxSinkReads)}
	if err := checkCgroup(cfg.MemoryLimit); err != nil {
		return nil, err
	}
	n.plan = planMemory(cfg.MemoryLimit, cfg.Partitions)
	n.boot = newBootID()
	n.self = wire.FormatMemberID(cfg.Pod, n.boot)
	n.log = cfg.Log.With("pod", cfg.Pod, "bootID", wire.FormatBootID(n.boot))
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.dog = newWatchdog(metrics.ThreadNames[0], &n.cfg)
	var err error
	n.loop, err = transport.New(cfg.Transport, transport.Config{
		MaxConns: cfg.MaxConns, MaxInput: wire.MaxFrame, Tick: cfg.Beacon / 2, DialTimeout: transportDialTimeout, Source: cfg.Source(),
		MaxMemory: int(n.plan.clients), MaxUnread: int(n.plan.clients / 2), MaxHeldInput: int(n.plan.clients / 4), Work: loopWork, TLS: n.transportTLS(),
		WakeUp: func(d time.Duration) { n.loopStat.WakeUp.Observe(int64(d)) },
	}, n)
	if err != nil {
		return nil, err
	}
	n.trust = &peerTrust{keys: cfg.PeerKeys, insecure: cfg.InsecurePeers}
	if n.live, err = newLiveness(n); err != nil {
		return nil, err
	}
	n.fabric = fabricOf(cfg.Advertise, cfg.Fabric, cfg.TLS != nil)
	n.registry = metrics.NewRegistry(&metrics.Collector{Snapshot: n.snapshot})
	n.budget = store.NewBudget(n.plan.orders)
	for i := range cfg.Partitions {
		p, err := n.newPartition(i)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, p)
	}
	return n, nil
}

// Member is the node's id, "<pod>/<bootID>".
func (n *Node) Member() string { return n.self }

// Run serves until ctx ends, then drains, or until the node cannot go on. It
// returns nil after an orderly end.
func (n *Node) Run(ctx context.Context) error {
	defer n.close()
	if err := transport.TuneScheduler(2); err != nil {
		return err
	}
	if !n.awaitWarm(ctx) {
		return nil
	}
	addr, err := n.loop.Listen(n.cfg.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; is another node running here?", err)
	}
	if n.cfg.External != "" {
		if _, err := n.loop.Listen(n.cfg.External); err != nil {
			return fmt.Errorf("--external-listen: %w; is another node running here?", err)
		}
	}
	if n.cfg.HTTP != "" {
		if err := n.serveHTTP(); err != nil {
			return fmt.Errorf("--http: %w", err)
		}
	}
	n.log.Info("node starts", "grid", n.cfg.Grid, "shard", n.cfg.Shard, "listen", addr.String(), "advertise", n.cfg.Advertise,
		"partitions", len(n.parts), "memoryLimitBytes", n.cfg.MemoryLimit, "orderLimitBytes", n.budget.Limit())
	n.wg.Go(func() {
		if err := n.live.loop.Run(); err != nil {
			n.log.Error("the liveness thread ended; the node stops, others take over", "reason", err)
			n.loop.Stop()
		}
	})
	n.wg.Go(n.watch)
	go n.readSinks(n.ctx)
	if k := n.cfg.PeerKeys; k != nil {
		n.wg.Go(func() { k.Watch(n.ctx, func() { n.loop.Post(n.keysChanged) }) })
	}
	if a := n.cfg.Access; a != nil {
		if err := a.Rules.Err(); err != nil {
			n.rulesUnread(a.Rules.Rules(), err)
		}
		n.wg.Go(func() { a.Rules.Watch(n.ctx, rulesEvery, func() { n.loop.Post(n.rulesChanged) }) })
		if a.Tokens != nil {
			n.wg.Go(func() { a.Tokens.Run(n.ctx) })
		}
	}
	n.wg.Go(func() {
		select {
		case <-ctx.Done():
			n.drain()
		case <-n.ctx.Done():
		}
	})
	err = n.loop.Run()
	n.cancel()
	return err
}

// awaitWarm waits for the memory of Config.Prefault; false if ctx ends before.
func (n *Node) awaitWarm(ctx context.Context) bool {
	for _, p := range n.parts {
		select {
		case <-p.inc.warm:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// close gives everything back once the loop has ended.
func (n *Node) close() {
	n.cancel()
	n.live.loop.Stop()
	n.wg.Wait()
	n.dog.meter.close()
	n.live.dog.meter.close()
	for _, p := range n.parts {
		p.inc.close()
	}
}
