package node

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/sink"
	"github.com/ordergrid/ordergrid/grid-node/sink/file"
)

// startSink starts the write-behind queue. With the sink "hold" there is none:
// the queue is the log, and nothing moves its cursor.
func (p *partition) startSink(ctx context.Context, inc *incarnation) error {
	n := p.n
	if n.cfg.Sink != SinkFile {
		return nil
	}
	reader, err := inc.feed.Reader(SinkFile)
	if err != nil {
		return fmt.Errorf("partition %s: %w", p.id, err)
	}
	inc.queue = sink.New(sink.Options{
		Name: p.id.String(), Log: reader, Metrics: n.registry.Sink, Logger: n.log,
		Sink: file.New(n.cfg.SinkDir, n.cfg.Pod, n.cfg.Grid, p.id.String(), n.registry.Sink),
		Advance: func(seq uint64) {
			n.loop.Post(func() {
				if p.inc == inc {
					p.step(&replica.Event{Kind: replica.EventCursor, Seq: seq})
				}
			})
		},
		Start: func() (sink.Start, error) { return p.sinkStart(inc, reader) },
	})
	before, ended := p.sinkEnded, make(chan struct{})
	p.sinkEnded = ended
	inc.wg.Go(func() {
		defer close(ended)
		if before != nil {
			<-before // a slow disk may hold the writer before, and the file has one at a time
		}
		inc.queue.Run(ctx)
	})
	return nil
}

// sinkStart tells the queue, on its goroutine, what the freed part of the log led
// to, and keeps the rest where it is.
func (p *partition) sinkStart(inc *incarnation, reader *feed.Reader) (s sink.Start, err error) {
	err = p.n.onLoop(func() {
		if p.inc != inc {
			return // it ends
		}
		seq, hash, lineage, sessions := p.replica.Base()
		reader.Hold(seq + 1)
		s = sink.Start{Seq: seq, Hash: hash, Lineage: lineage, Sessions: map[uint32]sink.SessionID{}}
		for _, b := range sessions {
			s.Sessions[b.Slot] = sink.SessionID{Hi: b.ID[0], Lo: b.ID[1]}
		}
	})
	return s, err
}

// tellQueue says whether this node writes the partition's sink.
func (p *partition) tellQueue() {
	if c := p.status.Config; p.inc.queue != nil && c != nil {
		p.inc.queue.SetActive(p.status.Role == replica.RolePrimary, c.Epoch, c.Lineage, p.status.CursorSeq)
	}
}

// sinkPosition is how far the write-behind sink is known to be.
func (p *partition) sinkPosition() uint64 {
	pos := p.replica.Status().CursorSeq
	if p.inc.queue != nil {
		pos = max(pos, p.inc.queue.Durable())
	}
	return pos
}
