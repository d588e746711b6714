package node

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// dataLoop is the state of the thread of the data loop, and the transport's handler. Other
// goroutines reach it by Loop.Post and onLoop.
type dataLoop struct {
	*process
	dog       *watchdog
	listeners listeners
	clients   clients
	peers     peers
	parts     partitions
	directory directory
	room      room
}

var _ transport.Handler = (*dataLoop)(nil)

// OnOpen implements transport.Handler.
func (d *dataLoop) OnOpen(c *transport.Conn) {
	if l, _ := c.Tag.(*link); l != nil { // dialled: of a node
		c.Exempt()
		d.peers.sayHello(l)
		return
	}
	d.listeners.accepted(c)
}

// OnFrames implements transport.Handler.
func (d *dataLoop) OnFrames(c *transport.Conn, buf []byte) (int, error) {
	l := c.Tag.(*link)
	rest := buf
	var hint replica.Hint // of the frame that rest begins with
	for !c.Backlogged() {
		frame, after, err := wire.Split(rest)
		switch {
		case err != nil:
			err = d.listeners.undecodable(l, rest, err)
		case frame == nil:
			if err = d.listeners.tooLong(l, wire.Need(rest)); err == nil {
				return len(buf) - len(rest), nil
			}
		case l.state == ready:
			if !l.role.IsNode() && !d.clients.hasTurn(l, frame) {
				return len(buf) - len(rest), nil
			}
			next := d.lookAhead(after)
			err = d.frame(l, frame, hint)
			hint = next
		case l.state == awaitHello:
			err = d.listeners.hello(l, frame)
		case l.state == awaitProof:
			err = d.clients.proofFrame(l, frame)
		case l.state == awaitPeerProof:
			err = d.listeners.peerProof(l, frame)
		default:
			err = d.peers.welcome(l, frame)
		}
		if err != nil {
			return len(buf) - len(rest), err
		}
		rest = after
		if l.conn.Begins() { // what follows is in records
			break
		}
	}
	return len(buf) - len(rest), nil
}

// lookAhead lets the replica prefetch for the frame after the present one.
func (d *dataLoop) lookAhead(rest []byte) replica.Hint {
	if next, _, _ := wire.Split(rest); next != nil && wire.FrameType(next) == wire.TypeSubmit {
		if p := d.parts.at(wire.FramePartition(next)); p != nil {
			return p.replica.Prefetch(next)
		}
	}
	return replica.Hint{}
}

// frame handles one frame of a connection after its Hello.
func (d *dataLoop) frame(l *link, frame []byte, hint replica.Hint) error {
	t := wire.FrameType(frame)
	if l.role.IsNode() {
		return d.peerFrame(l, t, frame)
	}
	if (t == wire.TypeSubmit || t == wire.TypeGet) && access.Needs(t)&^l.may == 0 {
		if p := d.parts.at(wire.FramePartition(frame)); p != nil && !p.ended {
			if t == wire.TypeSubmit {
				p.submit(l, frame, hint)
			} else {
				p.read(l, frame)
			}
			return nil
		}
	}
	before := l.conn.Buffered()
	err := d.clients.request(l, t, frame)
	l.spend(t, frame, before)
	if t == wire.TypeInvoke {
		l.conn.Spend(d.parts.computes.spent())
	}
	return err
}

func (d *dataLoop) peerFrame(l *link, t wire.Type, frame []byte) error {
	switch row := wire.Row(t); {
	case row.From&wire.FromPeer == 0:
		return d.badFrame(l, wire.GoawayRole, fmt.Sprintf("frame type %v, allowed between nodes: %s", t, wire.Allowed(wire.FromPeer)))
	case !row.ToReplica:
		return peerFrames[t](l, frame)
	}
	if p := d.parts.at(wire.FramePartition(frame)); p != nil {
		p.peerFrame(l, t, frame)
	} else {
		d.counters.PeerFramesDropped++ // a node of another shard, or of another partition count
	}
	return nil
}

// peerFrames are the frames of nodes that the node handles itself.
var peerFrames = [256]func(*link, []byte) error{
	wire.TypePing:   (*link).pong,
	wire.TypePong:   func(*link, []byte) error { return nil },
	wire.TypeGoaway: func(_ *link, frame []byte) error { return saidGoaway(frame) },
}

// OnClose implements transport.Handler.
func (d *dataLoop) OnClose(c *transport.Conn, err error) {
	l := c.Tag.(*link)
	if l.state != ready {
		d.listeners.undecided.remove(l)
		d.peers.tellTLS(l, err)
	}
	if errors.Is(err, peerkey.ErrRecord) {
		d.counters.BadFrames++
	}
	switch l.role {
	case wire.RolePeer:
		d.peers.names.lost(l, err)
		d.peers.closed(l, err)
	case wire.RoleBulk:
		d.peers.bulkClosed(l, err)
	default:
		d.clients.closed(l)
	}
}

// OnTick implements transport.Handler.
func (d *dataLoop) OnTick() {
	now := d.loop.Clock().Mono()
	if interval := d.dog.tick(now); interval > 0 {
		d.loopStat.Tick.Observe(interval)
	}
	d.listeners.tick(now)
	d.clients.lookAgain(now)
	d.clients.questions.give()
	d.peers.tick(now)
	d.room.tick(now)
	d.parts.tick(now)
}

// OnWakeEnd implements transport.Handler: the results of the wake-up are sent in one batch
// per partition and one write per connection.
func (d *dataLoop) OnWakeEnd() { d.parts.flush() }

// OnWritten implements transport.Afterwards: what the wake-up committed becomes visible to questions.
func (d *dataLoop) OnWritten() (again bool) { return d.parts.views != nil && d.parts.views.step() }
