package node

import (
	"errors"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A planned stop leaves in good order: primaries are handed over, this process is
// retired from every partition, and only then it ends; no order fails. It serves
// on until then: who holds the only copy waits for another to catch up. Stopping
// (EventStop) is what is left when that cannot be: the partition's record is gone,
// the time is nearly over, or somebody said so twice. Admission ends, what was
// accepted is answered, the sink catches up. Either way clients are told to go, and
// Config.DrainTimeout ends it.

// Outcomes of a drain, per partition; metrics show them.
const (
	drainLeft    = "left"      // handed over and retired, or held nothing
	drainStopped = "stopped"   // without waiting for anybody
	drainTimeout = "timed_out" // when the process ended something was left to do
)

const (
	drainPoll = 5 * time.Millisecond
	// The record of a partition that does not come to an end is looked at so often:
	// is the grid being deleted?
	recordPoll   = 500 * time.Millisecond
	maxStopSpare = 5 * time.Second
)

// StopNow makes a drain wait for nobody: a second signal. From any goroutine, any
// number of times.
func (n *Node) StopNow() {
	n.hurryOnce.Do(func() { close(n.hurry) })
}

// stopSpare is the part of the drain timeout that is kept for stopping.
func (c *Config) stopSpare() time.Duration { return min(maxStopSpare, c.DrainTimeout/4) }

// drain is the planned stop, from its beginning until the loop is told to end.
func (n *Node) drain() {
	start := time.Now()
	n.log.Info("draining: handing over, then leaving", "timeout", n.cfg.DrainTimeout.String())
	n.loop.Post(func() {
		n.stopping = true
		n.stepAll(&replica.Event{Kind: replica.EventDrain})
		for _, p := range n.parts {
			if p.recordGone {
				n.recordSeen(p, arbiter.ErrNotFound)
			}
			if p.retired {
				n.stop(p, "it is retired")
			}
		}
	})
	poll, records := time.NewTicker(drainPoll), time.NewTicker(recordPoll)
	defer poll.Stop()
	defer records.Stop()
	patience := time.NewTimer(n.cfg.DrainTimeout - n.cfg.stopSpare())
	defer patience.Stop()
	deadline := time.After(n.cfg.DrainTimeout)
	hurry := n.hurry
	for {
		select {
		case <-poll.C:
			left, ok := n.undrainedNow(deadline)
			if ok && len(left) == 0 {
				n.log.Info("drained", "took", time.Since(start).String())
				n.loop.Post(n.sayGoodbye)
				return
			}
		case <-records.C:
			n.loop.Post(n.lookAtRecords)
		case <-hurry:
			hurry = nil
			n.stopAll("asked to stop at once")
		case <-patience.C:
			n.stopAll("the time to hand over is up")
		case <-deadline:
			left, _ := n.undrainedNow(time.After(loopAnswer))
			n.log.Warn("drain timed out; what was acknowledged is on the other members", "left", left)
			n.loop.Post(n.sayGoodbye)
			return
		case <-n.ctx.Done():
			return
		}
	}
}

// undrainedNow asks the loop what is left to be done, and gives up at a limit.
func (n *Node) undrainedNow(limit <-chan time.Time) (left []string, ok bool) {
	answer := make(chan []string, 1)
	if !n.loop.Post(func() { answer <- n.undrained() }) {
		return nil, false
	}
	select {
	case left = <-answer:
		return left, true
	case <-limit:
		return []string{"the loop is busy"}, false
	case <-n.ctx.Done():
		return nil, false
	}
}

// stopAll gives up waiting for others, in all partitions.
func (n *Node) stopAll(why string) {
	n.loop.Post(func() {
		for _, p := range n.parts {
			n.stop(p, why)
		}
	})
}

// stop gives up waiting for others in one partition; on the loop.
func (n *Node) stop(p *partition, why string) {
	if p.stopped {
		return
	}
	p.stopped = true
	if !p.drained {
		n.log.Warn("stopping without handing over", "partition", p.id.String(), "role", p.status.Role.String(), "reason", why)
	}
	p.step(&replica.Event{Kind: replica.EventStop})
}

// lookAtRecords reads the record of every partition that is not drained.
func (n *Node) lookAtRecords() {
	for _, p := range n.parts {
		if !p.drained {
			n.readConfig(p)
		}
	}
}

// recordSeen is told with every word of the arbiter. Without a record nobody can
// take over, ever: the grid is being deleted. That the record is gone may be heard
// before the signal, and not after it, when the right to read it is gone too; an
// answer that is no answer changes nothing.
func (n *Node) recordSeen(p *partition, err error) {
	if err == nil || errors.Is(err, arbiter.ErrNotFound) {
		p.recordGone = err != nil
	}
	if n.stopping && p.recordGone {
		n.stop(p, "its record is gone: the grid is being deleted")
	}
}

// drainOne brings a replica that was made during a drain to the same point.
func (p *partition) drainOne() {
	switch {
	case p.stopped:
		p.step(&replica.Event{Kind: replica.EventStop})
	case p.n.stopping:
		p.step(&replica.Event{Kind: replica.EventDrain})
	}
}

// undrained says what is still to be done.
func (n *Node) undrained() []string {
	var left []string
	for _, p := range n.parts {
		switch {
		case p.drained:
		case p.status.HandingOver:
			left = append(left, p.id.String()+": handing over")
		case p.status.Role == replica.RolePrimary && !p.stopped:
			left = append(left, p.id.String()+": waits for a member that can take over")
		case p.status.Role == replica.RolePrimary:
			left = append(left, p.id.String()+": orders in flight")
		default:
			left = append(left, p.id.String()+": waits to be retired")
		}
		if p.unsunk() {
			left = append(left, p.id.String()+": entries the sink does not hold")
		}
	}
	return left
}

// unsunk says whether this primary's sink lags the log.
func (p *partition) unsunk() bool {
	sunk, any := p.inc.sunk()
	return any && p.status.Role == replica.RolePrimary && sunk < p.store.Committed()
}

// sayGoodbye tells every client and stops the loop once they could read it.
func (n *Node) sayGoodbye() {
	for _, p := range n.parts {
		switch {
		case !p.drained || p.unsunk():
			n.counters.Drain(drainTimeout)
		case p.stopped:
			n.counters.Drain(drainStopped)
		default:
			n.counters.Drain(drainLeft)
		}
	}
	for _, l := range n.clients {
		if l.conn.Open() {
			_ = n.goaway(l, wire.GoawayDraining, "this node is stopping")
		}
	}
	// The goaways leave with this wake-up's writes; Stop takes effect after them.
	n.loop.Stop()
}

// closing says whether new clients are refused: until a drain has come to
// stopping, this node may be the only one that can serve them.
func (n *Node) closing() bool {
	for _, p := range n.parts {
		if !p.stopped {
			return false
		}
	}
	return true
}
