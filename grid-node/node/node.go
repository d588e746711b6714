// Package node is the data plane of one pod: it passes events of the transport, the
// arbiter and the sinks to the replicas of a shard's partitions, and executes their
// actions.
//
// Two loops, each on a thread of its own, own the state in dataLoop and in liveness.
// Goroutines (arbiter calls, pages, sinks, drain) reach them by Loop.Post and onLoop.
package node

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/inspect"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	helloTimeout         = 3 * time.Second
	transportDialTimeout = time.Second
)

// Node is one grid node.
type Node struct {
	process
	data  dataLoop
	live  *liveness
	sinks sinkFiles
	pages pages
	drain drain
}

// New checks the configuration and makes the node with its partitions.
func New(cfg Config) (*Node, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if err := checkCgroup(cfg.MemoryLimit); err != nil {
		return nil, err
	}
	n := &Node{}
	n.identity = newIdentity(cfg)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	plan := planMemory(cfg.MemoryLimit, 1)
	plan.orders -= n.cfg.viewMemory() + n.cfg.functionMemory() + n.cfg.executionMemory() + n.cfg.regionMemory()
	functions, err := newFunctions(&n.process)
	if err != nil {
		return nil, err
	}
	computes, err := newComputeFunctions(&n.process)
	if err != nil {
		return nil, err
	}
	posts, err := newPostFunctions(&n.process)
	if err != nil {
		return nil, err
	}
	n.loop, err = transport.New(cfg.Transport, transport.Config{
		MaxConns: cfg.MaxConns, MaxInput: wire.MaxFrame, Tick: cfg.Beacon / 2, DialTimeout: transportDialTimeout, Source: cfg.Source(),
		MaxMemory: int(plan.clients), MaxUnread: int(plan.clients / 2), MaxHeldInput: int(plan.clients / 4), Work: loopWork,
		TLS: cfg.transportTLS(n.data.listeners.handshakeFailed), WakeUp: func(d time.Duration) { n.loopStat.WakeUp.Observe(int64(d)) },
	}, &n.data)
	if err != nil {
		return nil, err
	}
	if n.live, err = newLiveness(&n.identity); err != nil {
		return nil, err
	}
	n.wire(plan)
	n.data.parts.functions, n.data.parts.posts, n.data.parts.computes = functions, posts, computes
	if computes != nil {
		computes.maps.clients = &n.data.clients
	}
	n.data.parts.regions.now, n.data.parts.calendar = n.cfg.Regions, n.cfg.Execution.phases(time.Now())
	if n.cfg.LimitsFile != "" {
		if n.data.parts.profile.text, err = n.cfg.readProfile(); err != nil {
			return nil, fmt.Errorf("--limits: %w", err)
		}
	}
	return n, nil
}

// wire connects the parts.
func (n *Node) wire(plan memoryPlan) {
	p, d := &n.process, &n.data
	d.process, d.dog = p, newWatchdog(metrics.ThreadNames[0], &n.cfg)
	d.parts = partitions{process: p, peers: &d.peers, clients: &d.clients, live: n.live, arbiter: &arbiterContact{}, inspections: inspect.NewTurns(), plan: plan, budget: store.NewBudget(plan.orders), views: newViews(&n.cfg),
		held: held{due: map[wire.PartitionID]arbiter.Record{}, ended: map[wire.PartitionID]ended{}}}
	d.listeners = listeners{process: p, parts: &d.parts, clients: &d.clients, peers: &d.peers, live: n.live}
	d.clients = clients{process: p, listeners: &d.listeners, parts: &d.parts, directory: &d.directory, sinkFiles: &n.sinks, follows: newFollows(plan), questions: newQuestions(plan), byID: map[uint64]*link{}, connsOf: map[string]int{}}
	d.peers = peers{process: p, listeners: &d.listeners, parts: &d.parts, live: n.live, byAddr: map[string]*peer{},
		names: peerNames{peers: &d.peers, led: map[string]string{}, unknown: map[string]*unknownPeer{}}}
	d.directory = directory{process: p, parts: &d.parts}
	d.room = room{process: p, parts: &d.parts}
	n.sinks = sinkFiles{process: p, clients: &d.clients, asked: make(chan sinkRequest, maxSinkReads)}
	n.pages = pages{data: d, live: n.live, fabric: fabricOf(n.cfg.Advertise, n.cfg.Fabric, n.cfg.TLS != nil)}
	n.drain = drain{process: p, parts: &d.parts, clients: &d.clients, hurry: make(chan struct{})}
	n.registry = metrics.NewRegistry(&metrics.Collector{Snapshot: n.pages.snapshot})
}

// StopNow makes a drain stop without waiting: a second signal. From any goroutine, any
// number of times.
func (n *Node) StopNow() { n.drain.once.Do(func() { close(n.drain.hurry) }) }

// Run serves until ctx ends, then drains, or until the node fails. It returns nil after an
// orderly end.
func (n *Node) Run(ctx context.Context) error {
	unlock := func() {}
	defer func() { unlock() }() // when the journals are closed
	defer n.close()
	if err := transport.TuneScheduler(2); err != nil {
		return err
	}
	var err error
	if unlock, err = n.cfg.lockJournals(ctx); err != nil {
		return err
	}
	if err := n.data.parts.watch(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if !n.data.parts.awaitWarm(ctx) {
		return nil
	}
	addr, err := n.data.listeners.open()
	if err != nil {
		return err
	}
	if n.cfg.HTTP != "" {
		if err := n.pages.serve(); err != nil {
			return fmt.Errorf("--http: %w", err)
		}
	}
	n.log.Info("node starts", "grid", n.cfg.Grid, "shard", n.cfg.Shard, "listen", addr, "advertise", n.cfg.Advertise,
		"partitions", len(n.data.parts.list), "memoryLimitBytes", n.cfg.MemoryLimit, "orderLimitBytes", n.data.parts.budget.Limit())
	n.wg.Go(func() {
		if err := n.live.loop.Run(); err != nil {
			n.log.Error("the liveness thread ended; the node stops, others take over", "reason", err)
			n.loop.Stop()
		}
	})
	go n.sinks.run()
	n.watchFiles()
	n.wg.Go(func() {
		select {
		case <-ctx.Done():
			n.drain.run()
		case <-n.ctx.Done():
		}
	})
	err = n.loop.Run()
	n.cancel()
	return err
}

// watchFiles follows the files that may change while the node runs.
func (n *Node) watchFiles() {
	if n.cfg.LimitsFile != "" {
		n.wg.Go(n.watchLimits)
	}
	if n.cfg.ReadRegions != nil {
		n.wg.Go(n.watchRegions)
	}
	if k := n.cfg.PeerKeys; k != nil {
		n.wg.Go(func() { k.Watch(n.ctx, func() { n.loop.Post(n.data.peers.keysChanged) }) })
	}
	if x := n.cfg.Execution; x != nil && x.File != nil {
		n.wg.Go(func() {
			x.File.Watch(n.ctx, instrumentsEvery, func() { n.loop.Post(n.data.parts.instrumentsChanged) })
		})
	}
	if x := n.cfg.Execution; x != nil && x.Calendar != nil {
		n.watchCalendar()
	}
	a := n.cfg.Access
	if a == nil {
		return
	}
	if err := a.Rules.Err(); err != nil {
		n.data.clients.rulesUnread(a.Rules.Rules(), err)
	}
	n.wg.Go(func() { a.Rules.Watch(n.ctx, rulesEvery, func() { n.loop.Post(n.data.clients.rulesChanged) }) })
	if a.Tokens != nil {
		n.wg.Go(func() { a.Tokens.Run(n.ctx) })
	}
}

// close releases everything once the loop has ended.
func (n *Node) close() {
	n.cancel()
	n.live.loop.Stop()
	n.wg.Wait()
	n.data.dog.meter.close()
	n.live.dog.meter.close()
	for _, p := range n.data.parts.list {
		p.inc.close(n.data.parts.views)
	}
	n.data.parts.functions.close()
	n.data.parts.computes.close()
}
