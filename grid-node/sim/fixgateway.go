package sim

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixGateway is a process that keeps nothing. Its sessions are doors: fixdoor.go.
type fixGateway struct {
	x     *fixWorld
	place int
	name  string
	alive bool
	pod   *pod // of the node that it is connected to
	conn  *conn
	reqID uint64
	doors []*fixDoor
}

func (g *fixGateway) schedule() {
	g.x.w.after(millisecond+g.x.rng.Int64N(4*millisecond), func() {
		if g.alive {
			g.act()
			g.schedule()
		}
	})
}

// end is the end of the process; seen: its counterparties see their connections end.
func (g *fixGateway) end(seen bool) {
	g.alive = false
	if g.conn != nil {
		g.hangUp()
	}
	for _, d := range g.doors {
		d.link.dead = true
		if seen {
			l := d.link
			g.x.w.after(g.x.rng.Int64N(2*millisecond), func() { l.party.closed(l, 0) })
		}
	}
	g.doors = nil
}

// hangUp leaves the connection to a node, which sees that or not. What is under way still
// arrives.
func (g *fixGateway) hangUp() {
	if g.x.rng.IntN(2) == 0 {
		g.conn.gaveUp = true
		return
	}
	g.conn.hangUp()
}

func (g *fixGateway) act() {
	w := g.x.w
	if g.conn == nil {
		if g.conn = w.net.dial(g, g.pod); g.conn == nil {
			g.pod = w.resolvedPod()
			return
		}
		for _, d := range g.doors {
			d.reconnected()
		}
	}
	for _, d := range slices.Clone(g.doors) {
		if d.waits(w.now) > 150*millisecond {
			g.turnTo(w.anyPod())
			return
		}
		d.flush()
	}
}

// turnTo goes on at another pod: what is under way there may still arrive.
func (g *fixGateway) turnTo(p *pod) {
	if g.conn != nil {
		g.hangUp()
		g.conn = nil
	}
	g.pod = p
	for _, d := range g.doors {
		d.since = 0
	}
}

// closed is the end of the connection to a node.
func (g *fixGateway) closed(c *conn) {
	if g.conn != c {
		return
	}
	g.conn = nil
	for _, d := range g.doors {
		d.since = 0
	}
}

// request returns a new id.
func (g *fixGateway) request() uint64 {
	g.reqID++
	return g.reqID
}

// receive is a message of a counterparty.
func (g *fixGateway) receive(l *fixLink, m *fixMsg) {
	d := g.doorOf(func(d *fixDoor) bool { return d.link == l })
	switch {
	case d == nil && m.kind == 'A':
		if old := g.doorOf(func(d *fixDoor) bool { return d.party == l.party }); old != nil {
			g.drop(old) // of a connection that the counterparty has left
		}
		d = &fixDoor{g: g, party: l.party, link: l, logon: *m, late: l.party.refusedNow()}
		d.chooseSources()
		g.doors = append(g.doors, d)
		d.open()
	case d == nil: // ended by this side
	default:
		d.receive(m)
	}
}

func (g *fixGateway) doorOf(is func(*fixDoor) bool) *fixDoor {
	if i := slices.IndexFunc(g.doors, is); i >= 0 {
		return g.doors[i]
	}
	return nil
}

func (g *fixGateway) drop(d *fixDoor) {
	g.doors = slices.DeleteFunc(g.doors, func(o *fixDoor) bool { return o == d })
}

// left is the end of a counterparty's connection.
func (g *fixGateway) left(l *fixLink) {
	if d := g.doorOf(func(d *fixDoor) bool { return d.link == l }); d != nil {
		g.over(d)
	}
}

// over is the end of a session's connection, which the grid is told where that matters.
func (g *fixGateway) over(d *fixDoor) {
	if g.x.w.profile.lapses != nil && d.state == doorOpen && g.conn != nil {
		g.conn.send(wire.AppendFixHere(nil, partition, &wire.FixHere{Slot: d.slot, Attempt: d.attempt}))
	}
	g.drop(d)
}

// slot finds the session of an answer.
func (g *fixGateway) slot(slot uint32) *fixDoor {
	return g.doorOf(func(d *fixDoor) bool { return d.state == doorOpen && d.slot == slot })
}

// got is an answer of the grid.
func (g *fixGateway) got(c *conn, frame []byte, _ uint64) {
	if c != g.conn || !g.alive {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeFixOpened:
		var m wire.FixOpened
		_ = wire.DecodeFixOpened(frame, &m)
		if d := g.doorOf(func(d *fixDoor) bool { return d.request == m.ReqID && d.state != doorOpen }); d != nil {
			d.opened(&m)
		}
	case wire.TypeFixAck:
		var m wire.FixAck
		_ = wire.DecodeFixAck(frame, &m)
		if d := g.slot(m.Slot); d != nil {
			d.acked(&m)
		}
	case wire.TypeFixReports:
		var m wire.FixReports
		_ = wire.DecodeFixReports(frame, &m)
		if d := g.slot(m.Slot); d != nil && d.attempt == m.Attempt {
			d.reported(&m)
		}
	case wire.TypeFixStepped:
		var m wire.FixStepped
		_ = wire.DecodeFixStepped(frame, &m)
		for i := range m.Records {
			if d := g.slot(m.Records[i].Slot); d != nil {
				d.stepped(&m, &m.Records[i])
			}
		}
	case wire.TypeFixResent:
		var m wire.FixResent
		if err := wire.DecodeFixResent(frame, &m); err != nil {
			g.x.w.violation("wire", "%s gets a broken FixResent: %v", g.name, err)
			return
		}
		if d := g.doorOf(func(d *fixDoor) bool { return d.asks(m.ReqID) != nil }); d != nil {
			d.resent(&m)
		}
	case wire.TypeFixProbe:
		var m wire.FixProbe
		_ = wire.DecodeFixProbe(frame, &m)
		g.probed(&m)
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		g.rejected(&m)
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		if p := g.x.w.podAt(string(m.Address)); p != nil {
			g.turnTo(p)
		} else {
			g.turnTo(g.x.w.anyPod())
		}
	}
}

// probed asks the counterparty of a session whether it is there.
func (g *fixGateway) probed(m *wire.FixProbe) {
	d := g.slot(m.Slot)
	tell := func(here bool) {
		if g.conn != nil && g.alive {
			g.conn.send(wire.AppendFixHere(nil, partition, &wire.FixHere{Slot: m.Slot, Attempt: m.Attempt, Here: here}))
		}
	}
	if d == nil || d.attempt != m.Attempt {
		tell(false)
		return
	}
	g.x.w.after(g.x.rng.Int64N(5*millisecond), func() {
		l := d.link
		here := !l.dead && !l.left && l.party.link == l
		if tell(here); !here {
			g.drop(d)
		}
	})
}

func (g *fixGateway) rejected(m *wire.Reject) {
	if m.Code == wire.CodeStandby {
		g.x.w.checkStandby(m)
	}
	var d *fixDoor
	switch m.ForType {
	case wire.TypeFixOpen:
		d = g.doorOf(func(d *fixDoor) bool { return d.request == m.RequestID && d.state != doorOpen })
	case wire.TypeFixSubmit:
		d = g.slot(m.Slot)
	case wire.TypeFixStep:
		d = g.doorOf(func(d *fixDoor) bool { return d.state == doorOpen && d.stepping(m.RequestID) })
	case wire.TypeFixResend:
		d = g.doorOf(func(d *fixDoor) bool { return d.asks(m.RequestID) != nil })
	}
	if d != nil {
		d.rejected(m)
	}
}
