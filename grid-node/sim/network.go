package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// network carries frames between pods, and between clients and pods. Between pods it is
// either a set of connections (in order, lossless except for resets, with frames held by a
// cut delivered when it heals) or, in hostile worlds, single frames that are lost,
// duplicated, reordered and delayed for seconds. The protocol must be correct on both.
type network struct {
	w     *world
	links [][]*link // [from][to]
	conns []*conn   // by id - 1
}

// link is one direction between two pods.
type link struct {
	from, to *pod
	up       bool
	gen      int            // number of connections so far; frames of an earlier one are lost
	cut      bool           // nothing passes, silently
	slow     int64          // added to every frame's latency
	last     [classes]int64 // arrival of the last frame: each connection keeps its order
	held     []func()       // frames in flight, held by a cut
}

// class of a frame: each has a connection of its own.
type class uint8

const (
	classData class = iota
	classLiveness
	classBulk
	classes
)

func (n *network) init(w *world) {
	n.w = w
	for _, from := range w.pods {
		var row []*link
		for _, to := range w.pods {
			row = append(row, &link{from: from, to: to, up: true})
		}
		n.links = append(n.links, row)
	}
}

func (n *network) link(from, to *pod) *link { return n.links[from.index][to.index] }

// each visits the links between different pods.
func (n *network) each(f func(*link)) {
	for _, row := range n.links {
		for _, l := range row {
			if l.from != l.to {
				f(l)
			}
		}
	}
}

// send puts a frame of a replica in flight.
func (n *network) send(p *process, address string, frame []byte, c class) {
	to := n.w.podAt(address)
	if to == nil || to == p.pod {
		return
	}
	l := n.link(p.pod, to)
	if n.w.profile.hostile && !n.w.healing {
		n.sendHostile(p, l, frame, c)
		return
	}
	if !l.up {
		n.w.traceFrame(p, to, frame, "LOST (not connected)")
		return
	}
	d := n.latency(l)
	if c == classBulk && !n.w.healing {
		d += n.w.between(0, n.w.profile.bulkDelay)
	}
	at := max(n.w.now+d, l.last[c]+1)
	l.last[c] = at
	gen := l.gen
	arrive := func() {
		if l.gen == gen {
			n.arrive(p, l, frame, c)
		}
	}
	n.w.events.push(at, func() {
		if l.cut { // the kernel sends it again until the cut heals
			l.held = append(l.held, arrive)
			return
		}
		arrive()
	})
}

// sendHostile is a network that reorders and loses frames.
func (n *network) sendHostile(p *process, l *link, frame []byte, c class) {
	w, odds := n.w, &n.w.profile.odds
	if l.cut || w.chance(odds.drop) {
		if !l.cut {
			w.faults.hit(faultDrop)
		}
		w.traceFrame(p, l.to, frame, "LOST")
		return
	}
	copies := 1
	if w.chance(odds.duplicate) {
		copies = 2
		w.faults.hit(faultDuplicate)
	}
	for range copies {
		d := n.latency(l)
		switch {
		case w.chance(odds.reorder):
			d += w.between(0, 20*millisecond)
			w.faults.hit(faultReorder)
		case w.chance(odds.late):
			d += w.between(50*millisecond, 2*second)
			w.faults.hit(faultLateFrame)
		}
		w.after(d, func() { n.arrive(p, l, frame, c) })
	}
}

// latency of one frame on a link.
func (n *network) latency(l *link) int64 {
	d := n.w.between(40*microsecond, 250*microsecond)
	if n.w.chance(20) {
		d += n.w.between(0, 3*millisecond)
	}
	if l.slow > 0 {
		d += n.w.between(l.slow/2, l.slow)
	}
	return d
}

// arrive hands a frame to whatever process the pod runs.
func (n *network) arrive(from *process, l *link, frame []byte, c class) {
	p := l.to.proc
	if p == nil {
		return
	}
	if c == classLiveness {
		p.hear(from, frame)
		return
	}
	n.w.traceFrame(from, l.to, frame, "")
	p.deliver(func() {
		p.step(&replica.Event{Kind: replica.EventPeerFrame, Frame: frame})
	})
}

// cutOff starts or ends a cut of one direction.
func (n *network) cutOff(l *link, cut bool) {
	if l.cut == cut {
		return
	}
	l.cut = cut
	n.w.logf("network: %s -> %s %s", l.from.name, l.to.name, map[bool]string{true: "CUT", false: "heals"}[cut])
	if !cut {
		held := l.held
		l.held = nil
		for _, arrive := range held {
			arrive()
		}
	}
}

// reset breaks the connection between two pods, both ways: frames in flight are lost. A
// live process reconnects soon.
func (n *network) reset(a, b *pod) {
	n.w.logf("network: connection of %s and %s RESET", a.name, b.name)
	links := []*link{n.link(a, b), n.link(b, a)}
	if n.w.rng.IntN(3) == 0 {
		links = links[:1] // only one side notices, the other keeps writing
	}
	for _, l := range links {
		n.breakLink(l)
		n.tell(l.from, l.to, replica.Event{Kind: replica.EventPeerDown})
	}
	n.w.after(n.w.between(5*millisecond, 60*millisecond), func() { n.connect(a, b) })
}

func (n *network) breakLink(l *link) {
	l.up = false
	l.gen++
	l.held = nil
}

// connect establishes a connection if both ends live and are not cut off.
func (n *network) connect(a, b *pod) {
	ab, ba := n.link(a, b), n.link(b, a)
	if a.proc == nil || b.proc == nil || ab.up && ba.up {
		return
	}
	if ab.cut || ba.cut {
		n.w.after(20*millisecond, func() { n.connect(a, b) })
		return
	}
	for _, l := range []*link{ab, ba} {
		if !l.up {
			l.up = true
			n.tell(l.from, l.to, replica.Event{Kind: replica.EventPeerUp})
			n.tell(l.from, l.to, replica.Event{Kind: replica.EventPeerUp, Bulk: true})
		}
	}
}

// tell notifies a pod's process of the connection to another pod.
func (n *network) tell(at, about *pod, ev replica.Event) {
	ev.Address = about.address
	n.w.after(n.w.between(10*microsecond, millisecond), func() {
		if p := at.proc; p != nil {
			if ev.Kind == replica.EventPeerDown {
				n.w.faults.hit(faultReset)
				n.w.logf("%s sees its connection to %s reset", p.name, about.name)
			}
			p.deliver(func() { p.step(&ev) })
		}
	})
}

// processGone ends the connections of a process that died.
func (n *network) processGone(p *process, reset bool) {
	for _, o := range n.w.pods {
		if o == p.pod {
			continue
		}
		out, in := n.link(p.pod, o), n.link(o, p.pod)
		n.breakLink(out)
		if reset && !out.cut {
			n.breakLink(in)
			n.tell(o, p.pod, replica.Event{Kind: replica.EventPeerDown})
		}
	}
	for _, c := range n.conns {
		if c.proc == p {
			c.proc = nil
			if reset {
				n.w.after(n.w.between(50*microsecond, millisecond), c.lost)
			}
		}
	}
}

// processStarted connects a new process of a pod: the others learn only now that an
// earlier one, which may have died silently, is dead.
func (n *network) processStarted(p *pod) {
	for _, o := range n.w.pods {
		if o == p {
			continue
		}
		in := n.link(o, p)
		if in.up {
			n.breakLink(in)
			n.tell(o, p, replica.Event{Kind: replica.EventPeerDown})
		}
		n.w.after(n.w.between(2*millisecond, 40*millisecond), func() { n.connect(p, o) })
	}
}

// inherit hands a process's client connections to its next incarnation.
func (n *network) inherit(old, next *process) {
	for _, c := range n.conns {
		if c.proc == old {
			c.proc = next
		}
	}
}

// peer of a connection on the client's side.
type connUser interface {
	got(c *conn, frame []byte, lineage uint64) // lineage: of the process that answered
	closed(c *conn)
}

// conn is a client's connection to a process: both directions are ordered. An abandoned
// one may still deliver frames in flight to the process.
type conn struct {
	n         *network
	id        uint64
	user      connUser
	pod       *pod
	proc      *process // the one at the other end, nil when it is gone
	gaveUp    bool     // by the client: answers are no longer read
	stalled   int64    // nothing arrives before, in either direction
	toProcess int64    // last arrival
	toClient  int64
}

// dial connects a user to the process that the pod runs now, nil if none does.
func (n *network) dial(user connUser, to *pod) *conn {
	if to.proc == nil {
		return nil
	}
	c := &conn{n: n, id: uint64(len(n.conns) + 1), user: user, pod: to, proc: to.proc}
	n.conns = append(n.conns, c)
	return c
}

// lost tells the user that the connection ended.
func (c *conn) lost() {
	if !c.gaveUp {
		c.gaveUp = true
		c.user.closed(c)
	}
}

func (c *conn) way(last *int64) int64 {
	w := c.n.w
	d := w.between(30*microsecond, 200*microsecond)
	*last = max(w.now+d, *last+1, c.stalled)
	return *last
}

// send carries a frame to the process.
func (c *conn) send(frame []byte) {
	if c.proc == nil {
		return
	}
	c.n.w.events.push(c.way(&c.toProcess), func() {
		if p := c.proc; p != nil {
			c.n.w.traceRequest(c, p, frame)
			if u, ok := c.user.(*client); ok && c.gaveUp && wire.FrameType(frame) == wire.TypeOpenSession {
				u.lateOpen = true
			}
			p.deliver(func() {
				if p.alive && p.status.Role == replica.RoleStopped {
					c.notServed(p, frame)
					return
				}
				if wire.FrameType(frame) == wire.TypeFollow {
					if p.alive {
						p.follow(c, frame)
					}
					return
				}
				ev := replica.Event{Kind: replica.EventClientFrame, Conn: c.id, Client: c.owner(), Frame: frame}
				if c.id%2 == 0 && p.alive { // the first frame of a batch has no hint, those behind it have
					ev.Hint = p.r.Prefetch(frame)
				}
				p.step(&ev)
			})
		}
	})
}

// hangUp abandons a connection: the process learns of its end behind what was sent.
func (c *conn) hangUp() {
	c.gaveUp = true
	c.n.w.events.push(c.way(&c.toProcess), func() {
		if p := c.proc; p != nil {
			p.deliver(func() {
				if p.alive && p.r.HoldsFix(c.id) {
					p.step(&replica.Event{Kind: replica.EventClientGone, Conn: c.id})
				}
			})
		}
	})
}

// reply carries frames of a process to the client.
func (n *network) reply(p *process, id uint64, frames []byte, lineage uint64) {
	c := n.conns[id-1]
	if c.proc != p {
		return // of a process before
	}
	for len(frames) > 0 {
		frame, rest, err := wire.Split(frames)
		if err != nil || frame == nil {
			n.w.violation("wire", "%s sends connection %d a broken frame: %v", p.name, id, err)
			return
		}
		frames = rest
		n.w.checkReply(p, c, frame, lineage)
		n.w.traceReply(p, c, frame)
		n.w.events.push(c.way(&c.toClient), func() {
			if !c.gaveUp {
				c.user.got(c, frame, lineage)
			}
		})
	}
}

// notServed answers for a retired replica, as the node does until its process exits.
func (c *conn) notServed(p *process, frame []byte) {
	m := wire.NotPrimary{ForType: wire.FrameType(frame), Epoch: p.status.Config.Epoch, Address: []byte(p.status.Config.Primary.Address), Member: []byte(p.status.Config.Primary.ID)}
	if m.ForType == wire.TypeReadLog {
		return
	}
	var err error
	if m.RequestID, m.Slot, err = wire.RequestID(frame); err != nil {
		return
	}
	c.n.reply(p, c.id, wire.AppendNotPrimary(nil, partition, &m), p.lineage())
}
