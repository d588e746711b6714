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

var _ transport.Handler = (*Node)(nil)

// OnOpen implements transport.Handler.
func (n *Node) OnOpen(c *transport.Conn) {
	l, _ := c.Tag.(*link)
	if l == nil { // accepted
		l = &link{conn: c, outside: c.Door() == doorExternal, helloBy: n.loop.Clock().Mono() + int64(helloTimeout)}
		c.Tag = l
		c.SetLimits(maxHello, clientHardOut)
		n.makeRoomForUndecided()
		n.awaiting = append(n.awaiting, l)
		return
	}
	c.Exempt() // dialled: of a node
	n.sendHello(l)
}

// OnFrames implements transport.Handler.
func (n *Node) OnFrames(c *transport.Conn, buf []byte) (int, error) {
	l := c.Tag.(*link)
	rest := buf
	var hint replica.Hint // of the frame that rest begins with
	for !c.Backlogged() {
		frame, after, err := wire.Split(rest)
		switch {
		case err != nil:
			n.counters.BadFrames++
			err = n.undecodable(l, rest, err)
		case frame == nil:
			if l.state == awaitHello && wire.Need(rest) > maxHello {
				err = n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("first frame has %d bytes, allowed: a Hello of at most %d", wire.Need(rest), maxHello))
				break
			}
			if (l.state == awaitPeerProof || l.state == awaitWelcome) && wire.Need(rest) > maxHello+wire.MaxText {
				err = n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("frame of %d bytes from who has proved nothing, allowed: at most %d", wire.Need(rest), maxHello+wire.MaxText))
				break
			}
			if l.state == awaitProof && wire.Need(rest) > wire.MaxAuthenticate {
				err = n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("frame of %d bytes from a client that has proved nothing, allowed: at most %d", wire.Need(rest), wire.MaxAuthenticate))
				break
			}
			if l.state == ready && !l.role.IsNode() && wire.Need(rest) > maxClientFrame {
				n.counters.BadFrames++
				err = n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("frame of %d bytes, allowed from a client: at most %d", wire.Need(rest), maxClientFrame))
				break
			}
			return len(buf) - len(rest), nil
		case l.state == ready:
			if !l.role.IsNode() && !n.hasTurn(l, frame) {
				return len(buf) - len(rest), nil
			}
			next := n.lookAhead(after)
			err = n.frame(l, frame, hint)
			hint = next
		case l.state == awaitHello:
			err = n.hello(l, frame)
		case l.state == awaitProof:
			err = n.proofFrame(l, frame)
		case l.state == awaitPeerProof:
			err = n.peerProof(l, frame)
		default:
			err = n.welcome(l, frame)
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

// lookAhead lets the replica prepare for the frame after the one that is handled.
func (n *Node) lookAhead(rest []byte) replica.Hint {
	if next, _, _ := wire.Split(rest); next != nil && wire.FrameType(next) == wire.TypeSubmit {
		if p := n.partition(wire.FramePartition(next)); p != nil {
			return p.replica.Prefetch(next)
		}
	}
	return replica.Hint{}
}

// frame handles one frame of a connection that said Hello.
func (n *Node) frame(l *link, frame []byte, hint replica.Hint) error {
	t := wire.FrameType(frame)
	if l.role.IsNode() {
		return n.peerFrame(l, t, frame)
	}
	if (t == wire.TypeSubmit || t == wire.TypeGet) && access.Needs(t)&^l.may == 0 {
		if p := n.partition(wire.FramePartition(frame)); p != nil && !p.ended {
			if t == wire.TypeSubmit {
				p.submit(l, frame, hint)
			} else {
				p.read(l, frame)
			}
			return nil
		}
	}
	before := l.conn.Buffered()
	err := n.request(l, t, frame)
	n.spend(l, t, before)
	return err
}

// request handles what clients ask beside orders and reads, and what they may not ask.
func (n *Node) request(l *link, t wire.Type, frame []byte) error {
	row := wire.Row(t)
	switch {
	case row.From&wire.FromClient == 0:
		n.counters.BadFrames++
		return n.goaway(l, wire.GoawayRole, fmt.Sprintf("frame type %v, allowed from this role: %s", t, wire.Allowed(wire.FromClient)))
	case access.Needs(t)&^l.may != 0:
		return n.notPermitted(l, t, frame)
	case !row.ToReplica:
		return clientFrames[t](n, l, frame)
	}
	p := n.partition(wire.FramePartition(frame))
	if p == nil {
		return n.notHere(l, t, frame)
	}
	if p.ended {
		return n.notServed(l, p, t, frame)
	}
	n.ev = replica.Event{Kind: replica.EventClientFrame, Conn: l.conn.ID(), Client: l.client, Frame: frame}
	p.step(&n.ev)
	return nil
}

// clientFrames are the frames of clients that the node handles itself.
var clientFrames = [256]func(*Node, *link, []byte) error{
	wire.TypeListSinks:    (*Node).askSink,
	wire.TypeReadSink:     (*Node).askSink,
	wire.TypeTableRequest: (*Node).answerTable,
	wire.TypePing:         (*Node).pong,
	wire.TypeAuthenticate: (*Node).authenticate,
	wire.TypeGoaway:       (*Node).goawaySaid,
}

func (n *Node) peerFrame(l *link, t wire.Type, frame []byte) error {
	switch row := wire.Row(t); {
	case row.From&wire.FromPeer == 0:
		n.counters.BadFrames++
		return n.goaway(l, wire.GoawayRole, fmt.Sprintf("frame type %v, allowed between nodes: %s", t, wire.Allowed(wire.FromPeer)))
	case !row.ToReplica:
		return peerFrames[t](n, l, frame)
	}
	p := n.partition(wire.FramePartition(frame))
	if p == nil {
		n.counters.PeerFramesDropped++ // a node of another shard, or of another partition count
		return nil
	}
	n.ev = replica.Event{Kind: replica.EventPeerFrame, Frame: frame}
	if t == wire.TypePrepare {
		l.conn.Urgent()
	}
	if t == wire.TypePrepareAck {
		n.observeAck(t, frame)
		if n.acks++; n.acks%processSample == 0 {
			p.timedStep(&n.ev, &n.loopStat.Postprocess)
			return nil
		}
	}
	p.step(&n.ev)
	return nil
}

// peerFrames are the frames of nodes that the node handles itself.
var peerFrames = [256]func(*Node, *link, []byte) error{
	wire.TypePing:   (*Node).pong,
	wire.TypePong:   func(*Node, *link, []byte) error { return nil },
	wire.TypeGoaway: (*Node).goawaySaid,
}

func (*Node) goawaySaid(_ *link, frame []byte) error { return saidGoaway(frame) }

func (n *Node) pong(l *link, frame []byte) error {
	var m wire.Request
	if err := wire.DecodeRequest(frame, wire.TypePing, &m); err != nil {
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	l.conn.SetOut(wire.AppendRequest(l.conn.Out(), wire.TypePong, &m))
	return nil
}

// partition is nil when this node does not hold it.
func (n *Node) partition(id wire.PartitionID) *partition {
	if id.Shard() != n.cfg.Shard || id.Index() >= len(n.parts) {
		return nil
	}
	return n.parts[id.Index()]
}

// OnClose implements transport.Handler.
func (n *Node) OnClose(c *transport.Conn, err error) {
	l := c.Tag.(*link)
	if l.state != ready {
		n.awaiting.remove(l)
		n.tellTLS(l, err)
	}
	if errors.Is(err, peerkey.ErrRecord) {
		n.counters.BadFrames++
	}
	switch l.role {
	case wire.RolePeer:
		n.notWarmed(l, err)
		n.peerLinkClosed(l, err)
	case wire.RoleBulk:
		n.bulkClosed(l, err)
	default:
		// Replies to a connection that is gone are dropped by its id: nothing to tell
		// the replicas.
		delete(n.clients, c.ID())
		n.letGo(l)
	}
}

// OnTick implements transport.Handler.
func (n *Node) OnTick() {
	now := n.loop.Clock().Mono()
	if d := n.dog.tick(now); d > 0 {
		n.loopStat.Tick.Observe(d)
	}
	ended := 0
	for i := len(n.awaiting) - 1; i >= 0 && ended < endedAtOnce; i-- {
		if l := n.awaiting[i]; now > l.helloBy && l.conn.Open() {
			ended++
			if l.state == awaitProof {
				_ = n.turnAway(l)
				continue
			}
			n.counters.HelloTimeouts++
			_ = n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("no Hello, or no proof, within %v", helloTimeout))
		}
	}
	n.lookAgain(now)
	n.warmUp(now)
	n.roomTick(now)
	for _, p := range n.parts {
		p.remake(now)
	}
	n.ev = replica.Event{Kind: replica.EventTick}
	n.stepAll(&n.ev)
}

// OnWakeEnd implements transport.Handler: what the wake-up changed goes out in
// one batch per partition and one write per connection.
func (n *Node) OnWakeEnd() {
	for i := 0; i < len(n.dirty); i++ { // carrying out may step further partitions
		p := n.dirty[i]
		p.dirty = false
		n.ev = replica.Event{Kind: replica.EventFlush}
		p.replica.Step(n.now(), &n.ev, &p.out)
		p.carryOut()
		p.inc.feed.Wake()
	}
	n.dirty = n.dirty[:0]
}

func (n *Node) now() replica.Time {
	c := n.loop.Clock()
	return replica.Time{Mono: c.Mono(), Wall: c.Wall()}
}

// step hands an event to the replica and carries out what it wants at once, so
// that a connection's output is counted against its limit frame by frame.
func (p *partition) step(ev *replica.Event) {
	p.touch()
	p.replica.Step(p.n.now(), ev, &p.out)
	if len(p.out.Actions) > 0 {
		p.carryOut()
	}
}

// touch makes the partition one that is flushed at the end of the wake-up.
func (p *partition) touch() {
	if !p.dirty {
		p.dirty = true
		p.n.dirty = append(p.n.dirty, p)
	}
}

// submit is step of a Submit.
func (p *partition) submit(l *link, frame []byte, hint replica.Hint) {
	n := p.n
	before := p.replica.Stored()
	n.ev = replica.Event{Kind: replica.EventClientFrame, Conn: l.conn.ID(), Frame: frame, Hint: hint}
	if n.submits++; n.submits%processSample == 0 {
		p.timedStep(&n.ev, &n.loopStat.Preprocess)
	} else {
		p.step(&n.ev)
	}
	l.submitted(p.replica.Stored() != before)
}

// read is step of a Get: what it and the reads before it on that connection are
// answered goes straight into the connection's output.
func (p *partition) read(l *link, frame []byte) {
	c := l.conn
	p.touch()
	ev := &p.n.ev // the fields that this kind of event reads
	ev.Kind, ev.Conn, ev.Frame = replica.EventClientFrame, c.ID(), frame
	before, found := c.Out(), p.replica.ReadBytes()
	p.out.Direct(c.ID(), before)
	p.replica.Step(p.n.now(), ev, &p.out)
	if out := p.out.Taken(); len(out) > len(before) {
		if l.outside {
			out = p.n.external.redirects(out, len(before))
		}
		c.SetOut(out)
	}
	c.Spend(requestWork + int(p.replica.ReadBytes()-found))
	if len(p.out.Actions) > 0 {
		p.carryOut()
	}
}

func (n *Node) stepAll(ev *replica.Event) {
	// The event is copied: carrying out an action may reuse n.ev.
	e := *ev
	for _, p := range n.parts {
		p.step(&e)
	}
}
