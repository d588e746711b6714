package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// siteLink is a process that follows the source and sends what it gets to the standby. It
// holds nothing that it needs after its end.
type siteLink struct {
	p          *pair
	to         *conn // to the standby
	from       *conn // to the source
	advances   *conn
	reqID      uint64
	openID     uint64 // of the LinkOpen
	opened     bool
	seq, hash  uint64 // last entry sent to the standby
	stored     uint64 // by the last LinkState
	commit     uint64
	commitHash uint64
	lineage    uint32
	movedAt    int64
	arrives    int64 // of the last frame on the way to the standby
}

func (p *pair) addLink() {
	l := &siteLink{p: p}
	p.links = append(p.links, l)
	l.schedule()
}

func (l *siteLink) between(a, b int64) int64 { return a + l.p.rng.Int64N(b-a+1) }

func (l *siteLink) schedule() {
	l.p.source.after(l.between(5*millisecond, 30*millisecond), func() {
		l.act()
		l.schedule()
	})
}

// drop ends a connection.
func drop(c **conn) {
	if *c != nil {
		(*c).gaveUp = true
	}
	*c = nil
}

// ahead is how many entries may be on the way. A node bounds them, too.
const ahead = 40

func (l *siteLink) act() {
	p, now := l.p, l.p.source.now
	late := l.to != nil && (!l.opened || l.seq > l.stored) && now-l.movedAt > 400*millisecond
	if p.cut || late || p.rng.IntN(60) == 0 { // the connections are lost, or the process ends
		drop(&l.to)
		drop(&l.from)
		drop(&l.advances)
	}
	switch {
	case p.cut:
	case l.to == nil || l.to.proc == nil || l.to.gaveUp:
		l.open()
	case l.opened && (l.from == nil || l.from.proc == nil || l.from.gaveUp) && l.seq-l.commit < ahead/2:
		l.reqID++
		if l.from = p.source.net.dial(l, p.source.pods[p.rng.IntN(len(p.source.pods))]); l.from != nil {
			l.from.send(wire.AppendFollow(nil, partition, &wire.Follow{ReqID: l.reqID, FromSeq: l.seq + 1, FromHash: l.hash, Lineage: l.lineage, Window: 1, Name: []byte(outsideReader)}))
		}
	case l.commit > 0 && p.rng.IntN(3) == 0:
		l.advance()
	}
}

// open asks a pod of the standby where to go on.
func (l *siteLink) open() {
	w := l.p.standby
	drop(&l.from)
	l.opened, l.movedAt = false, w.now
	l.reqID++
	l.openID = l.reqID
	if l.to = w.net.dial(l, w.pods[l.p.rng.IntN(len(w.pods))]); l.to != nil {
		l.to.send(wire.AppendLinkOpen(nil, partition, &wire.LinkOpen{ReqID: l.reqID, Term: 1, Source: []byte("a")}))
	}
}

// advance tells the source what the standby has committed.
func (l *siteLink) advance() {
	w := l.p.source
	if l.advances == nil || l.advances.proc == nil || l.advances.gaveUp {
		if l.advances = w.net.dial(l, w.pods[l.p.rng.IntN(len(w.pods))]); l.advances == nil {
			return
		}
	}
	m := wire.Advance{ReqID: 1, Seq: l.commit, Hash: l.commitHash, Name: []byte(outsideReader)}
	if operatorMutant(mutLinkAhead) {
		m.Seq, m.Hash = l.seq, l.hash
	}
	l.advances.send(wire.AppendAdvance(nil, partition, &m))
}

func (l *siteLink) closed(c *conn) {
	for _, mine := range []**conn{&l.to, &l.from, &l.advances} {
		if *mine == c {
			*mine = nil
		}
	}
}

func (l *siteLink) got(c *conn, frame []byte, _ uint64) {
	switch t := wire.FrameType(frame); {
	case t == wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		if m.Code == wire.CodeDiverged {
			c.n.w.violation("I21", "an honest link is told that it sends another history: %s", m.Text)
		}
		c.gaveUp = true
	case t == wire.TypeNotPrimary:
		c.gaveUp = true
	case c == l.to && t == wire.TypeLinkState:
		l.state(frame)
	case c == l.from && t == wire.TypeFollowEntries:
		l.pass(frame)
	case c == l.from && t == wire.TypeFollowEnd:
		var m wire.FollowEnd
		_ = wire.DecodeFollowEnd(frame, &m)
		if m.Reason == wire.EndDiverged {
			c.n.w.violation("I21", "a link is told that entry %d, which the standby holds, is of another history: %s", l.seq, m.Text)
		}
		c.gaveUp = true
		if m.Reason == wire.EndSnapshotRequired { // the other link has brought the standby further
			drop(&l.to)
		}
	}
}

func (l *siteLink) state(frame []byte) {
	var m wire.LinkState
	_ = wire.DecodeLinkState(frame, &m)
	if !l.opened {
		l.opened, l.seq, l.hash = true, m.Seq, m.Hash
	}
	if m.Seq != l.stored || m.CommitSeq != l.commit {
		l.movedAt = l.p.source.now
	}
	l.stored, l.commit, l.commitHash, l.lineage = m.Seq, m.CommitSeq, m.CommitHash, m.Lineage
}

// pass sends entries on, over a distance.
func (l *siteLink) pass(frame []byte) {
	var m wire.FollowEntries
	_ = wire.DecodeFollowEntries(frame, &m)
	if m.From != l.seq+1 || m.Through-l.commit > ahead {
		drop(&l.from) // of before, or too far ahead: the next one begins where the standby is
		return
	}
	if len(m.Entries) == 0 {
		return
	}
	w, to := l.p.standby, l.to
	if l.seq == l.stored {
		l.movedAt = w.now
	}
	l.seq, l.hash = m.Through, m.ThroughHash
	out := wire.AppendLinkEntries(nil, partition, &wire.LinkEntries{ReqID: l.openID, Term: 1, Entries: m.Entries})
	l.arrives = max(l.arrives+1, w.now+l.between(3*millisecond, 40*millisecond))
	w.events.push(l.arrives, func() {
		if to != nil && !to.gaveUp {
			to.send(out)
		}
	})
}
