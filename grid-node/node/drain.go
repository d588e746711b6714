package node

import (
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A planned stop is graceful: primaries are handed over, this process leaves the in-sync
// set of every partition, and only then exits; no order fails. It serves until then: the
// holder of the only copy waits for another to catch up. Stopping (EventStop) is the
// fallback: the partition's record is gone, the time is nearly over, or a second signal
// arrived. Admission ends, accepted orders are answered, the sink catches up. Either way
// clients are notified, and Config.DrainTimeout ends it.

// Outcomes of a drain, per partition; metrics show them.
const (
	drainLeft    = "left"      // handed over and released, or held nothing
	drainStopped = "stopped"   // without waiting
	drainTimeout = "timed_out" // unfinished when the process ended
)

const (
	drainPoll = 5 * time.Millisecond
	// Interval of reading the record of a partition that does not finish: the grid may be
	// being deleted.
	recordPoll   = 500 * time.Millisecond
	maxStopSpare = 5 * time.Second
)

// stopSpare is the part of the drain timeout that is kept for stopping.
func (c *Config) stopSpare() time.Duration { return min(maxStopSpare, c.DrainTimeout/4) }

// drain is the planned stop. It runs on a goroutine and asks the data loop.
type drain struct {
	*process
	parts   *partitions
	clients *clients
	hurry   chan struct{} // closed: stop without waiting
	once    sync.Once     // closes it
}

// run drains, until the loop ends.
func (d *drain) run() {
	start := time.Now()
	d.log.Info("draining: handing over, then leaving", "timeout", d.cfg.DrainTimeout.String())
	d.loop.Post(d.parts.drain)
	poll, records := time.NewTicker(drainPoll), time.NewTicker(recordPoll)
	defer poll.Stop()
	defer records.Stop()
	patience := time.NewTimer(d.cfg.DrainTimeout - d.cfg.stopSpare())
	defer patience.Stop()
	deadline := time.After(d.cfg.DrainTimeout)
	hurry := d.hurry
	for {
		select {
		case <-poll.C:
			left, ok := d.undrained(deadline)
			if ok && len(left) == 0 {
				d.log.Info("drained", "took", time.Since(start).String())
				d.loop.Post(d.end)
				return
			}
		case <-records.C:
			d.loop.Post(d.parts.readRecords)
		case <-hurry:
			hurry = nil
			d.loop.Post(func() { d.parts.stop("asked to stop at once") })
		case <-patience.C:
			d.loop.Post(func() { d.parts.stop("the time to hand over is up") })
		case <-deadline:
			left, _ := d.undrained(time.After(loopAnswer))
			d.log.Warn("drain timed out; what was acknowledged is on the other members", "left", left)
			d.loop.Post(d.end)
			return
		case <-d.ctx.Done():
			return
		}
	}
}

// undrained asks the loop what is left to do, with a timeout.
func (d *drain) undrained(limit <-chan time.Time) (left []string, ok bool) {
	answer := make(chan []string, 1)
	if !d.loop.Post(func() { answer <- d.parts.undrained() }) {
		return nil, false
	}
	select {
	case left = <-answer:
		return left, true
	case <-limit:
		return []string{"the loop is busy"}, false
	case <-d.ctx.Done():
		return nil, false
	}
}

// end notifies every client and stops the loop once they could read it; on the loop.
func (d *drain) end() {
	d.parts.countDrains()
	d.clients.goaway(wire.GoawayDraining, "this node is stopping")
	// The goaways leave with this wake-up's writes; Stop takes effect after them.
	d.loop.Stop()
}

// drain begins to leave every partition.
func (ps *partitions) drain() {
	ps.stopping = true
	ps.step(replica.Event{Kind: replica.EventDrain})
	for _, p := range ps.list {
		if p.record.gone {
			p.record.seen(arbiter.ErrNotFound)
		}
	}
}

// stop ends waiting for others, in all partitions.
func (ps *partitions) stop(why string) {
	for _, p := range ps.list {
		p.stop(why)
	}
}

// stopped reports whether all are stopped: until a drain reaches that, this node may be
// the only one that can serve clients.
func (ps *partitions) stopped() bool {
	if !ps.stopping {
		return false
	}
	for _, p := range ps.list {
		if !p.stopped {
			return false
		}
	}
	return true
}

// readRecords reads the record of every partition that is not drained.
func (ps *partitions) readRecords() {
	for _, p := range ps.list {
		if !p.drained {
			p.record.read()
		}
	}
}

// undrained returns what is left to do.
func (ps *partitions) undrained() (left []string) {
	for _, p := range ps.list {
		switch {
		case p.drained:
		case p.status.HandingOver:
			left = append(left, p.id.String()+": handing over")
		case p.status.Role == replica.RolePrimary && !p.stopped:
			left = append(left, p.id.String()+": waits for a member that can take over")
		case p.status.Role == replica.RolePrimary:
			left = append(left, p.id.String()+": orders in flight")
		default:
			left = append(left, p.id.String()+": waits to be released by its primary")
		}
		if p.unsunk() {
			left = append(left, p.id.String()+": entries the sink does not hold")
		}
	}
	return left
}

// countDrains counts the outcomes of the drain.
func (ps *partitions) countDrains() {
	for _, p := range ps.list {
		switch {
		case !p.drained || p.unsunk():
			ps.counters.Drain(drainTimeout)
		case p.stopped:
			ps.counters.Drain(drainStopped)
		default:
			ps.counters.Drain(drainLeft)
		}
	}
}

// stop ends waiting for others in one partition.
func (p *partition) stop(why string) {
	if p.stopped {
		return
	}
	p.stopped = true
	if !p.drained {
		p.log.Warn("stopping without handing over", "partition", p.id.String(), "role", p.status.Role.String(), "reason", why)
	}
	p.step(&replica.Event{Kind: replica.EventStop})
}

// drainOne brings a replica made during a drain to the same state.
func (p *partition) drainOne() {
	switch {
	case p.stopped:
		p.step(&replica.Event{Kind: replica.EventStop})
	case p.all.stopping:
		p.step(&replica.Event{Kind: replica.EventDrain})
	}
}

// unsunk reports whether this primary's sink lags the log.
func (p *partition) unsunk() bool {
	sunk, any := p.inc.sunk()
	return any && p.status.Role == replica.RolePrimary && sunk < p.store.Committed()
}
