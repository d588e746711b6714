package node

import (
	"errors"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// peer is another node of the shard, known by the address of its data port.
//
// Either side may dial, so there may be two connections. Both sides then prefer the one
// that the smaller address dialled; the dialler of the other closes it after a flush,
// which is not taken for a death, because one link is left. Frames written to it may be
// lost: a change of the link in use is an EventPeerUp, as a first one is.
type peer struct {
	addr     string
	boot     uint64 // of the process behind the links
	links    linkSet
	out      *link // the link that is written to, nil while there is none
	dialling bool
	suspect  bool  // its last connection ended and it has not answered since
	lostAt   int64 // Mono at which its last connection ended; 0 while there is one
	dialAt   int64 // Mono before which it is not dialled again
	backoff  time.Duration
	bulk     bulkLink
}

// peers are the other nodes of the shard, whatever partitions they have a copy of. Of the data loop.
type peers struct {
	*process
	listeners *listeners
	parts     *partitions
	live      *liveness

	byAddr map[string]*peer
	last   *peer   // of the last look-up: most nodes send to one other
	bulkIn linkSet // bulk connections that others dialled
	names  peerNames
	lookAt int64 // Mono from which tick has something to do
}

const (
	maxPeers       = 256
	minDialBackoff = 10 * time.Millisecond
	maxDialBackoff = 500 * time.Millisecond
	// lookedFor is how long a peer whose connection ended is dialled without anything to
	// send: its pod may be gone.
	lookedFor = time.Minute
)

// at finds or makes the peer; nil when there are too many, which only nodes with false
// addresses can cause.
func (ps *peers) at(addr string) *peer {
	if ps.last != nil && ps.last.addr == addr {
		return ps.last
	}
	p := ps.byAddr[addr]
	if p == nil {
		if len(ps.byAddr) >= maxPeers {
			ps.counters.PeersRefused++
			return nil
		}
		p = &peer{addr: addr, backoff: minDialBackoff}
		ps.byAddr[addr] = p
	}
	ps.last = p
	return p
}

// send writes frames to the node at address, or starts to connect. Frames that cannot be
// sent are dropped: the protocol resends on EventPeerUp, and by its own timing.
func (ps *peers) send(address string, head, tail []byte) {
	p := ps.at(address)
	if p == nil {
		return
	}
	if p.out == nil {
		ps.counters.PeerFramesDropped++
		ps.dialPeer(p)
		return
	}
	p.out.conn.SetOut(append(append(p.out.conn.Out(), head...), tail...))
}

func (ps *peers) dialPeer(p *peer) {
	now := ps.loop.Clock().Mono()
	if p.dialling || now < p.dialAt || p.addr == ps.cfg.Advertise {
		return
	}
	p.dialling = true
	p.dialAt = now + int64(p.backoff)
	p.backoff = min(2*p.backoff, maxDialBackoff)
	ps.dial(p.addr, &link{peer: p, role: wire.RolePeer})
}

func (ps *peers) dial(addr string, l *link) {
	l.state = awaitWelcome
	l.helloBy = ps.loop.Clock().Mono() + int64(helloTimeout+transportDialTimeout)
	ps.listeners.undecided = append(ps.listeners.undecided, l)
	l.conn = ps.loop.Dial(addr, l)
}

// ready puts a finished handshake to use. address is where the process at the other end is
// reached.
func (ps *peers) ready(l *link, address string) error {
	if l.boot == ps.boot { // a name that leads to ourselves
		return l.goaway(wire.GoawayRole, "this is the node that dials")
	}
	p := ps.at(address)
	if p == nil {
		return l.goaway(wire.GoawayLimit, "too many peers")
	}
	if l.peer != nil {
		l.peer.dialling = false
	}
	l.peer = p
	if p.boot != l.boot && p.out != nil && !l.conn.Dialled() {
		ps.askWho(p)
		return l.goaway(wire.GoawayRole, "another process is connected from this address; its address is being dialled to verify that")
	}
	if p.boot != l.boot {
		ps.forgetIncarnation(p)
		p.boot = l.boot
	}
	p.links = append(p.links, l)
	p.backoff, p.suspect, p.lostAt = minDialBackoff, false, 0
	isUp := p.out != nil
	ps.choose(p)
	if !isUp {
		ps.log.Info("peer connected", "peer", l.name, "address", p.addr, "dialled", l.conn.Dialled())
		ps.parts.step(replica.Event{Kind: replica.EventPeerUp, Address: p.addr})
	}
	return nil
}

// askWho dials a peer whose address another process claims. The process that answers at
// the address is the real one; a claim on an accepted connection does not prove that the
// former process has ended, and each such claim used to move the epoch twice.
func (ps *peers) askWho(p *peer) {
	ps.dialPeer(p)
	p.dialAt = max(p.dialAt, ps.loop.Clock().Mono()+int64(maxDialBackoff)) // once in that time; a link that is lost is dialled at once
}

// forgetIncarnation drops what is left of an earlier process at the address.
func (ps *peers) forgetIncarnation(p *peer) {
	if b := &p.bulk; b.link != nil {
		b.link.conn.Close(errNewIncarnation)
		b.link, b.dialAt = nil, 0
	}
	if len(p.links) == 0 && !p.suspect {
		return // its end is known, or it was never there
	}
	// Another process in its place proves that it has ended: no refused connection is
	// needed first, and with an immediate restart there is none.
	for _, l := range p.links {
		l.peer = nil
		l.conn.Close(errNewIncarnation)
	}
	p.links, p.out = p.links[:0], nil
	ps.parts.step(replica.Event{Kind: replica.EventPeerDown, Address: p.addr})
}

var errNewIncarnation = errors.New("another process answers at the address now")

// choose picks the link to write to and closes the surplus ones that we dialled.
func (ps *peers) choose(p *peer) {
	was := p.out
	p.out = nil
	weDial := ps.cfg.Advertise < p.addr
	for _, l := range p.links {
		if p.out == nil || l.conn.Dialled() == weDial {
			p.out = l
		}
	}
	kept := p.links[:0]
	for _, l := range p.links {
		if l != p.out && l.conn.Dialled() {
			l.conn.CloseAfterFlush(errSurplus)
		} else {
			kept = append(kept, l)
		}
	}
	clear(p.links[len(kept):])
	p.links = kept
	if was != nil && p.out != nil && p.out != was {
		// Input still arriving on a closed surplus link is discarded, and the other end
		// writes to it until it knows the better one.
		ps.parts.step(replica.Event{Kind: replica.EventPeerUp, Address: p.addr})
	}
}

var errSurplus = errors.New("the other connection of this pair is used")

// closed handles the end of a link between nodes, ready or not.
func (ps *peers) closed(l *link, err error) {
	p := l.peer
	if p == nil { // dialled by a configured name, or of a forgotten incarnation
		return
	}
	if l.state == awaitWelcome {
		p.dialling = false
	}
	p.links.remove(l)
	if p.out == l {
		ps.choose(p)
	}
	if p.out != nil || errors.Is(err, errSurplus) || errors.Is(err, transport.ErrStopped) {
		return
	}
	if l.state == ready {
		p.lostAt = ps.loop.Clock().Mono()
	}
	gone := errors.Is(err, syscall.ECONNREFUSED)
	switch {
	case l.state == ready && errors.Is(err, transport.ErrPeerClosed):
		// Caused by the other side: a process that ended, or a reset on the path. One
		// immediate dial distinguishes them.
		ps.log.Warn("peer lost", "peer", l.name, "address", p.addr, "reason", err)
		p.suspect, p.dialAt = true, 0
		ps.dialPeer(p)
	case l.state == ready:
		ps.log.Warn("connection to a peer closed", "peer", l.name, "address", p.addr, "reason", err)
	case p.suspect && !refusedBy(err) && (errors.Is(err, transport.ErrPeerClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		gone = true // it was just ending: accepted by the kernel, never answered; a reset may be there before the connection is
	}
	// A timed-out attempt is inconclusive; the silence decides then.
	if gone {
		p.suspect = false
		ps.parts.step(replica.Event{Kind: replica.EventPeerDown, Address: p.addr})
	}
}

// tick closes idle bulk connections, and dials: peers that may have ended, to detect that,
// and configured ones.
func (ps *peers) tick(now int64) {
	if now < ps.lookAt {
		return
	}
	ps.lookAt = now + int64(maxDialBackoff)
	ps.closeIdleBulk(now)
	for _, p := range ps.byAddr {
		if p.suspect && p.out == nil && now-p.lostAt < int64(lookedFor) {
			ps.dialPeer(p)
		}
	}
	ps.names.dial(now)
}
