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
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// observeCommitted records how long each order took that was just committed. An
// entry carries the wall clock of its receipt.
func (p *partition) observeCommitted(seq uint64) {
	from := p.committed + 1
	p.committed = seq
	if p.status.Role != replica.RolePrimary {
		return
	}
	n := p.n
	now := n.loop.Clock().Wall()
	// Orders of one wake-up carry the same time: count them together.
	var at int64
	var same uint64
	for s := from; s <= seq; s++ {
		entry := p.store.Get(s)
		if entry == nil || order.Kind(entry[4]) != order.KindOrder { // nil: freed already
			continue
		}
		if t := order.Received(entry); t != at {
			if t >= now { // no other copy was waited for, and the loop's clock has stood still since
				now = max(t, time.Now().UnixNano())
			}
			if same > 0 {
				n.loopStat.Order.ObserveN(now-at, same)
			}
			at, same = t, 0
		}
		same++
	}
	if same > 0 {
		n.loopStat.Order.ObserveN(now-at, same)
		p.orderAt = n.loop.Clock().Mono()
	}
	if p.changes.awaitsOrder {
		p.firstOrder(from, seq)
	}
}

// observeAck records the round trip that an acknowledgement closes; it echoes
// the sender's clock.
func (n *Node) observeAck(t wire.Type, frame []byte) {
	var m wire.PeerAck
	if err := wire.DecodePeerAck(frame, t, &m); err != nil || m.EchoNs == 0 {
		return // the replica says what is wrong with it
	}
	if d := n.loop.Clock().Mono() - m.EchoNs; d >= 0 && d < int64(time.Hour) {
		n.loopStat.RoundTrip.Observe(d)
	}
}

// timedStep is step with its duration recorded.
func (p *partition) timedStep(ev *replica.Event, h *histogram.Histogram) {
	start := time.Now()
	p.step(ev)
	h.Observe(int64(time.Since(start)))
}

// processSample is how many Submits, or acknowledgements, pass for one that is
// timed: two clock reads are a tenth of what they would measure.
const processSample = 64

const loopAnswer = time.Second

var errLoopBusy = errors.New("the loop did not answer within 1s")

// onLoop runs f on the data loop and waits, from any other goroutine. After an error f has
// not run, and will not.
func (n *Node) onLoop(f func()) error { return runOn(n.loop, f) }

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

// snapshot copies what metrics show.
func (n *Node) snapshot() (*metrics.Snapshot, error) {
	s := &metrics.Snapshot{}
	err := n.onLoop(func() {
		s.Node = n.counters
		s.Node.Alarms, s.Node.Drains = maps.Clone(n.counters.Alarms), maps.Clone(n.counters.Drains)
		s.Loop = n.loopStat
		s.Transport = n.loop.Stats()
		s.Liveness, s.Threads[1] = n.live.snapshot()
		s.Threads[0] = n.dog.stats
		s.Clients = len(n.clients)
		for _, p := range n.peers {
			if p.out != nil {
				s.Peers++
				s.PeerLinks = appendPeerLink(s.PeerLinks, p.out)
			}
		}
		s.DataLinks = map[string]int{}
		n.eachPeerLink(func(_, _ string, l *link, _ bool) { s.DataLinks[l.by.String()]++ })
		for _, p := range n.parts {
			s.Partitions = append(s.Partitions, p.snapshot(n.loop.Clock().Wall()))
			s.MemoryUsed += p.store.Used()
			s.Replicas = max(s.Replicas, s.Partitions[len(s.Partitions)-1].Status.Replicas)
		}
		s.MemoryLimit, s.Memory = n.budget.Limit(), n.memory()
	})
	if err != nil {
		return nil, err // s may still be written to by a late loop
	}
	if at := n.api.at.Load(); at != 0 {
		s.ArbiterAgo = max(1, since()-at)
	}
	if n.web != nil {
		s.HTTPConns, s.HTTPEnded = n.web.Stats()
	}
	s.Fabric, s.Sink = n.fabric, n.cfg.Sink
	if n.cfg.TLS != nil {
		s.TLSExpires = n.cfg.TLS.Expires() // looks at files: not on the loop
	}
	if a := n.cfg.Access; a != nil {
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
	m.SinkSeq = p.sinkPosition()
	m.Inspected, m.Broken = p.inc.inspector.Seq(), p.broken+p.inc.inspector.Broken()
	m.Writes = len(p.inc.outlets) > 0 && m.Status.Role == replica.RolePrimary
	// What follows the last entry that is more than the sink's own position waits for nobody.
	if e := p.store.Read(m.SinkSeq + 1); m.Writes && m.SinkSeq < m.Status.DataSeq && e != nil {
		m.OldestNs = max(0, wall-order.Received(e))
	}
	return m
}
