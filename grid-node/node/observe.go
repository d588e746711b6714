package node

import (
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// observeCommitted records the latency of orders just committed. An entry carries the wall
// clock of its receipt.
func (p *partition) observeCommitted(seq uint64) {
	from := p.committed + 1
	p.committed = seq
	if c := p.status.Config; c != nil && c.Standby {
		p.tellFollowers() // the lineage is the source's, as the entries have it
	}
	if p.status.Role != replica.RolePrimary {
		return
	}
	now := p.loop.Clock().Wall()
	// Orders of one wake-up carry the same time: count them together.
	var at int64
	var same uint64
	for s := from; s <= seq; s++ {
		entry := p.store.Get(s)
		if entry == nil || !order.Kind(entry[4]).IsOrder() { // nil: freed already
			continue
		}
		if t := order.Received(entry); t != at {
			if t >= now { // no other copy was waited for, and the loop's clock has not advanced since
				now = max(t, time.Now().UnixNano())
			}
			if same > 0 {
				p.loopStat.Order.ObserveN(now-at, same)
			}
			at, same = t, 0
		}
		same++
	}
	if same > 0 {
		p.loopStat.Order.ObserveN(now-at, same)
		p.orderAt = p.loop.Clock().Mono()
	}
	if p.changes.awaitsOrder {
		p.changes.firstOrder(from, seq)
	}
}

// observeAck records the round trip that an acknowledgement closes; it echoes
// the sender's clock.
func (p *partition) observeAck(frame []byte) {
	var m wire.PrepareAck
	if err := wire.DecodePrepareAck(frame, &m); err != nil || m.EchoNs == 0 {
		return // the replica reports the fault
	}
	if d := p.loop.Clock().Mono() - m.EchoNs; d >= 0 && d < int64(time.Hour) {
		p.loopStat.RoundTrip.Observe(d)
	}
}

const loopAnswer = time.Second

var errLoopBusy = errors.New("the loop did not answer within 1s")

// runOn runs f on a loop, see process.onLoop.
func runOn(l transport.Loop, f func()) error {
	var taken atomic.Bool // by the loop, or back
	done := make(chan struct{})
	if !l.Post(func() {
		if taken.CompareAndSwap(false, true) {
			f()
			close(done)
		}
	}) {
		return errors.New("the loop has ended")
	}
	select {
	case <-done:
	case <-time.After(loopAnswer):
		if taken.CompareAndSwap(false, true) {
			return errLoopBusy
		}
		<-done
	}
	return nil
}

// snapshot copies the state for metrics.
func (h *pages) snapshot() (*metrics.Snapshot, error) {
	d := h.data
	s := &metrics.Snapshot{}
	err := d.onLoop(func() {
		s.Node = d.counters
		s.Node.Alarms, s.Node.Drains = maps.Clone(d.counters.Alarms), maps.Clone(d.counters.Drains)
		s.Loop = d.loopStat
		s.Transport = d.loop.Stats()
		s.Liveness, s.Threads[1] = h.live.snapshot()
		s.Threads[0] = d.dog.stats
		s.Functions, s.PostFunctions = d.parts.functions.snapshot(), d.parts.postCounts()
		s.ComputeFunctions = d.parts.computes.snapshot()
		s.Journal = d.parts.journalSnapshot()
		s.Clients = len(d.clients.byID)
		s.Follow = d.clients.follows.snapshot()
		s.Questions = d.clients.questions.stats
		s.Questions.Open = d.clients.questions.n
		for _, p := range d.peers.byAddr {
			if p.out != nil {
				s.Peers++
				s.PeerLinks = appendPeerLink(s.PeerLinks, p.out)
			}
		}
		s.DataLinks = map[string]int{}
		d.peers.eachLink(func(_, _ string, l *link, _ bool) { s.DataLinks[l.by.String()]++ })
		for _, p := range d.parts.list {
			s.Partitions = append(s.Partitions, p.snapshot(d.loop.Clock().Wall()))
			s.MemoryUsed += p.store.Used()
			s.Replicas = max(s.Replicas, s.Partitions[len(s.Partitions)-1].Status.Replicas)
		}
		s.MemoryLimit, s.Memory = d.parts.budget.Limit(), d.room.memory()
	})
	if err != nil {
		return nil, err // s may still be written to by a late loop
	}
	if at := d.parts.arbiter.at.Load(); at != 0 {
		s.ArbiterAgo = max(1, since()-at)
	}
	if h.listener != nil {
		s.HTTPConns, s.HTTPEnded = h.listener.Stats()
	}
	s.Fabric = h.fabric
	if d.cfg.TLS != nil {
		s.TLSExpires = d.cfg.TLS.Expires() // reads files: not on the loop
	}
	if a := d.cfg.Access; a != nil {
		s.Access = &metrics.Access{RulesUnread: a.Rules.Err() != nil, RulesRead: a.Rules.Read()}
		if a.Tokens != nil {
			s.Access.Tokens = a.Tokens.Stats()
		}
	}
	return s, nil
}

func (p *partition) snapshot(wall int64) metrics.Partition {
	m := metrics.Partition{Name: p.id.String(), Status: p.replica.Status(), Counters: p.replica.Counters(), Orders: p.store.Orders()}
	if e := p.store.Get(m.Status.CommitSeq + 1); e != nil {
		m.LagNs = max(0, wall-order.Received(e))
	}
	m.Inspected, m.Broken = p.inc.inspector.Seq(), p.broken+p.inc.inspector.Broken()
	if point, ok := p.replica.Restoring(); ok {
		m.Unloaded = point.Seq - min(point.Seq, m.Status.LastSeq)
	}
	m.Unread, m.Targets = p.loadFailures, p.replica.DropCopyTargets()
	if m.Limited = p.replica.Guard().Limited(); m.Limited {
		_, _, m.Kills = p.replica.Limits()
	}
	m.Regions, m.Exchange = p.regionSnapshot(), p.exchangeSnapshot(wall)
	m.View = p.inc.view.status(m.Status.CommitSeq)
	m.Sinks = p.sinks(&m.Status, wall)
	return m
}
