package node

import (
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/writebehind"
)

// startSinks starts the write-behind queue of each partition. With the sink
// "hold" there is none: the queue is the log, and nothing moves its cursor.
func (n *Node) startSinks() {
	if n.cfg.Sink != SinkFile {
		return
	}
	for _, p := range n.parts {
		queue := writebehind.New(writebehind.Options{
			Name: p.id.String(), Log: p.store, Metrics: n.registry.Sink, Logger: n.log,
			Sink: writebehind.NewFile(n.cfg.SinkDir, n.cfg.Pod, n.cfg.Grid, p.id.String(), n.registry.Sink),
			Advance: func(seq uint64) {
				n.loop.Post(func() { p.step(&replica.Event{Kind: replica.EventCursor, Seq: seq}) })
			},
		})
		n.loop.Post(func() {
			p.queue = queue
			p.tellQueue()
		})
		n.wg.Go(func() { queue.Run(n.ctx) })
	}
}

// tellQueue says whether this node writes the partition's sink.
func (p *partition) tellQueue() {
	if p.queue == nil || p.status.Config == nil {
		return
	}
	c := p.status.Config
	p.queue.SetActive(p.status.Role == replica.RolePrimary, c.Epoch, c.Lineage, p.status.CursorSeq)
}

// sinkPosition is how far the write-behind sink is known to be.
func (p *partition) sinkPosition() uint64 {
	pos := p.replica.Status().CursorSeq
	if p.queue != nil {
		pos = max(pos, p.queue.Durable())
	}
	return pos
}
