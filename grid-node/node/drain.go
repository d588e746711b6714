package node

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// drain is the planned stop: admission ends (orders are refused as Draining),
// what was accepted is committed and answered, the sink catches up, clients are
// told to go, the loop stops. It takes at most Config.DrainTimeout.
func (n *Node) drain() {
	start := time.Now()
	n.log.Info("draining", "timeout", n.cfg.DrainTimeout.String())
	n.loop.Post(func() {
		n.stopping = true
		n.stepAll(&replica.Event{Kind: replica.EventStop})
	})
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(n.cfg.DrainTimeout)
	for {
		left := make(chan []string, 1)
		if !n.loop.Post(func() { left <- n.undrained() }) {
			return
		}
		select {
		case what := <-left:
			if len(what) == 0 {
				n.log.Info("drained", "took", time.Since(start).String())
				n.loop.Post(n.sayGoodbye)
				return
			}
			select {
			case <-poll.C:
				continue
			case <-deadline:
				n.log.Warn("drain timed out; what was acknowledged is on the other members", "left", what)
			case <-n.ctx.Done():
				return
			}
		case <-deadline:
			n.log.Warn("drain timed out: the loop is busy")
		case <-n.ctx.Done():
			return
		}
		n.loop.Post(n.sayGoodbye)
		return
	}
}

// undrained says what is still to be done.
func (n *Node) undrained() []string {
	var left []string
	for _, p := range n.parts {
		if !p.drained {
			left = append(left, p.id.String()+": orders in flight")
		}
		if p.inc.queue != nil && p.status.Role == replica.RolePrimary && p.inc.queue.Durable() < p.store.Committed() {
			left = append(left, p.id.String()+": entries the sink does not hold")
		}
	}
	return left
}

// sayGoodbye tells every client and stops the loop once they could read it.
func (n *Node) sayGoodbye() {
	for _, l := range n.clients {
		if l.conn.Open() {
			_ = n.goaway(l, wire.GoawayDraining, "this node is stopping")
		}
	}
	// The goaways leave with this wake-up's writes; Stop takes effect after them.
	n.loop.Stop()
}
