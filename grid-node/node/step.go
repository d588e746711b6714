package node

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// processSample is how many Submits, or acknowledgements, pass for one that is
// timed: two clock reads are a tenth of what they would measure.
const processSample = 64

// step passes an event to the replica and executes its actions at once, so that a
// connection's output is counted against its limit frame by frame.
func (p *partition) step(ev *replica.Event) {
	if p.closed {
		return // a late answer to it
	}
	p.touch()
	p.replica.Step(p.now(), ev, &p.out)
	if len(p.out.Actions) > 0 {
		p.carryOut()
	}
}

// timedStep is step with its duration recorded.
func (p *partition) timedStep(ev *replica.Event, h *histogram.Histogram) {
	start := time.Now()
	p.step(ev)
	h.Observe(int64(time.Since(start)))
}

// touch makes the partition one that is flushed at the end of the wake-up.
func (p *partition) touch() {
	if !p.dirty {
		p.dirty = true
		p.all.dirty = append(p.all.dirty, p)
	}
}

// submit is step of a Submit.
func (p *partition) submit(l *link, frame []byte, hint replica.Hint) {
	all := p.all
	before := p.replica.Stored()
	all.ev = replica.Event{Kind: replica.EventClientFrame, Conn: l.conn.ID(), Frame: frame, Hint: hint}
	if all.submits++; all.submits%processSample == 0 {
		p.timedStep(&all.ev, &p.loopStat.Preprocess)
	} else {
		p.step(&all.ev)
	}
	l.submitted(p.replica.Stored() != before)
}

// read is step of a Get: answers to it and to earlier reads on that connection go straight
// into the connection's output.
func (p *partition) read(l *link, frame []byte) {
	c := l.conn
	p.touch()
	ev := &p.all.ev // the fields that this kind of event reads
	ev.Kind, ev.Conn, ev.Frame = replica.EventClientFrame, c.ID(), frame
	before, found := c.Out(), p.replica.ReadBytes()
	p.out.Direct(c.ID(), before)
	p.replica.Step(p.now(), ev, &p.out)
	if out := p.out.Taken(); len(out) > len(before) {
		if l.outside {
			out = p.clients.directory.outside.redirects(out, len(before))
		}
		c.SetOut(out)
	}
	c.Spend(requestWork + int(p.replica.ReadBytes()-found))
	if len(p.out.Actions) > 0 {
		p.carryOut()
	}
}

// request is step of any other client request to a replica.
func (p *partition) request(l *link, frame []byte) {
	p.all.ev = replica.Event{Kind: replica.EventClientFrame, Conn: l.conn.ID(), Client: l.client, Frame: frame}
	p.step(&p.all.ev)
}

// peerFrame is step of a frame of another node.
func (p *partition) peerFrame(l *link, t wire.Type, frame []byte) {
	all := p.all
	all.ev = replica.Event{Kind: replica.EventPeerFrame, Frame: frame}
	switch t {
	case wire.TypePrepare, wire.TypePrepareExec:
		l.conn.Urgent()
	case wire.TypePrepareAck:
		p.observeAck(frame)
		if all.acks++; all.acks%processSample == 0 {
			p.timedStep(&all.ev, &p.loopStat.Postprocess)
			return
		}
	}
	p.step(&all.ev)
}
