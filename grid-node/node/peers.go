package node

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// peer is another node of the shard, known by the address of its data port.
//
// Either side may dial, so two connections can meet. Both sides then prefer the
// one that the smaller address dialled; the dialler of the other closes it after
// it flushed, and nobody takes that for a death, because one link is left. What was
// written to it may be lost: a change of the link that is written to is an
// EventPeerUp, as a first one is.
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

const (
	maxPeers       = 256
	minDialBackoff = 10 * time.Millisecond
	maxDialBackoff = 500 * time.Millisecond
	// lookedFor is how long a peer whose connection ended is dialled without anything to send it: its pod may be gone.
	lookedFor = time.Minute
)

// peerAt finds or makes the peer; nil when there are too many, which only nodes
// that lie about their addresses can cause.
func (n *Node) peerAt(addr string) *peer {
	p := n.peers[addr]
	if p == nil {
		if len(n.peers) >= maxPeers {
			n.counters.PeersRefused++
			return nil
		}
		p = &peer{addr: addr, backoff: minDialBackoff}
		n.peers[addr] = p
	}
	return p
}

// send writes frames to the node at address, or begins to connect. What cannot
// be sent is dropped: the protocol sends again when EventPeerUp tells of the
// connection, and by its own timing.
func (n *Node) send(address string, head, tail []byte) {
	p := n.peerAt(address)
	if p == nil {
		return
	}
	if p.out == nil {
		n.counters.PeerFramesDropped++
		n.dialPeer(p)
		return
	}
	p.out.conn.SetOut(append(append(p.out.conn.Out(), head...), tail...))
}

func (n *Node) dialPeer(p *peer) {
	now := n.loop.Clock().Mono()
	if p.dialling || now < p.dialAt || p.addr == n.cfg.Advertise {
		return
	}
	p.dialling = true
	p.dialAt = now + int64(p.backoff)
	p.backoff = min(2*p.backoff, maxDialBackoff)
	n.dial(p.addr, &link{peer: p, role: wire.RolePeer})
}

func (n *Node) dial(addr string, l *link) {
	l.state = awaitWelcome
	l.helloBy = n.loop.Clock().Mono() + int64(helloTimeout+transportDialTimeout)
	n.awaiting = append(n.awaiting, l)
	l.conn = n.loop.Dial(addr, l)
}

// peerReady takes a finished handshake into use. address is where the process at
// the other end is reached.
func (n *Node) peerReady(l *link, address string) error {
	if l.boot == n.boot { // a name that leads to ourselves
		return n.goaway(l, wire.GoawayRole, "this is the node that dials")
	}
	p := n.peerAt(address)
	if p == nil {
		return n.goaway(l, wire.GoawayLimit, "too many peers")
	}
	if l.peer != nil {
		l.peer.dialling = false
	}
	l.peer = p
	if p.boot != l.boot && p.out != nil && !l.conn.Dialled() {
		n.askWho(p)
		return n.goaway(l, wire.GoawayRole, "another process is connected from this address; it is being asked who is there now")
	}
	if p.boot != l.boot {
		n.forgetIncarnation(p)
		p.boot = l.boot
	}
	p.links = append(p.links, l)
	p.backoff, p.suspect, p.lostAt = minDialBackoff, false, 0
	isUp := p.out != nil
	n.choose(p)
	if !isUp {
		n.log.Info("peer connected", "peer", l.name, "address", p.addr, "dialled", l.conn.Dialled())
		n.stepAll(&replica.Event{Kind: replica.EventPeerUp, Address: p.addr})
	}
	return nil
}

// askWho dials a peer whose address another process claims. Who answers at the address is who is there; what somebody
// says who connects is no proof that the process before has ended, and each such word moved the epoch twice.
func (n *Node) askWho(p *peer) {
	n.dialPeer(p)
	p.dialAt = max(p.dialAt, n.loop.Clock().Mono()+int64(maxDialBackoff)) // once in that time; a link that is lost is dialled at once
}

// forgetIncarnation drops what is left of an earlier process at the address.
func (n *Node) forgetIncarnation(p *peer) {
	if b := &p.bulk; b.link != nil {
		b.link.conn.Close(errNewIncarnation)
		b.link, b.dialAt = nil, 0
	}
	if len(p.links) == 0 && !p.suspect {
		return // its end is known, or it was never there
	}
	// Another process in its place is proof enough that it has ended: nobody need
	// be refused there first, and a process that is started at once never is.
	for _, l := range p.links {
		l.peer = nil
		l.conn.Close(errNewIncarnation)
	}
	p.links, p.out = p.links[:0], nil
	n.stepAll(&replica.Event{Kind: replica.EventPeerDown, Address: p.addr})
}

var errNewIncarnation = errors.New("another process answers at the address now")

// choose picks the link to write to and gives up the surplus ones that we dialled.
func (n *Node) choose(p *peer) {
	was := p.out
	p.out = nil
	weDial := n.cfg.Advertise < p.addr
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
		// Who gives a connection up throws away what still arrives on it, and the
		// other writes to it until it knows of the better one.
		n.stepAll(&replica.Event{Kind: replica.EventPeerUp, Address: p.addr})
	}
}

var errSurplus = errors.New("the other connection of this pair is used")

// peerLinkClosed handles the end of a link between nodes, ready or not.
func (n *Node) peerLinkClosed(l *link, err error) {
	p := l.peer
	if p == nil { // dialled by a configured name, or of a forgotten incarnation
		return
	}
	if l.state == awaitWelcome {
		p.dialling = false
	}
	p.links.remove(l)
	if p.out == l {
		n.choose(p)
	}
	if p.out != nil || errors.Is(err, errSurplus) || errors.Is(err, transport.ErrStopped) {
		return
	}
	if l.state == ready {
		p.lostAt = n.loop.Clock().Mono()
	}
	gone := errors.Is(err, syscall.ECONNREFUSED)
	switch {
	case l.state == ready && errors.Is(err, transport.ErrPeerClosed):
		// The other side's doing: a process that ended, or a reset on the way. One
		// look at once tells them apart.
		n.log.Warn("peer lost", "peer", l.name, "address", p.addr, "reason", err)
		p.suspect, p.dialAt = true, 0
		n.dialPeer(p)
	case l.state == ready:
		n.log.Warn("connection to a peer closed", "peer", l.name, "address", p.addr, "reason", err)
	case p.suspect && !refusedBy(err) && (errors.Is(err, transport.ErrPeerClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		gone = true // it was just ending: accepted by the kernel, never answered; a reset may be there before the connection is
	}
	// An attempt that timed out proves nothing; the silence decides then.
	if gone {
		p.suspect = false
		n.stepAll(&replica.Event{Kind: replica.EventPeerDown, Address: p.addr})
	}
}

// warmUp keeps a connection to every configured peer, so that the first Join or
// take-over does not have to dial, and dials a peer that may have ended so that its end is
// known. The names lead to addresses only once a
// connection stands; n.warm remembers which.
func (n *Node) warmUp(now int64) {
	if now < n.warmAt {
		return
	}
	n.warmAt = now + int64(maxDialBackoff)
	n.closeIdleBulk(now)
	for _, p := range n.peers {
		if p.suspect && p.out == nil && now-p.lostAt < int64(lookedFor) {
			n.dialPeer(p)
		}
	}
	for _, name := range n.cfg.Peers {
		if u := n.unknown[name]; u != nil && now < u.dialAt {
			continue
		}
		addr, known := n.warm[name]
		if known && (addr == n.cfg.Advertise || addr == "" || (n.peers[addr] != nil && n.peers[addr].out != nil)) {
			continue
		}
		n.warm[name] = "" // being dialled
		n.dial(name, &link{warm: name, role: wire.RolePeer})
	}
}

// warmed remembers where a configured name led to.
func (n *Node) warmed(l *link, addr string) {
	if l.warm == "" {
		return
	}
	n.warm[l.warm] = addr
	delete(n.unknown, l.warm)
}

// unknownPeer is a name that does not exist: its pod has not started yet, or is one
// that a shard with fewer copies has no more. Whoever appears under it dials himself,
// so the name server is asked more and more rarely.
type unknownPeer struct {
	dialAt  int64 // Mono
	backoff time.Duration
}

const maxUnknownBackoff = 30 * time.Second

// notWarmed forgets that a configured name is being dialled.
func (n *Node) notWarmed(l *link, err error) {
	if l.warm == "" || n.warm[l.warm] != "" {
		return
	}
	delete(n.warm, l.warm) // the attempt failed: dial again
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		delete(n.unknown, l.warm)
		return
	}
	u := n.unknown[l.warm]
	if u == nil {
		u = &unknownPeer{backoff: maxDialBackoff}
		n.unknown[l.warm] = u
	}
	u.dialAt = n.loop.Clock().Mono() + int64(u.backoff)
	u.backoff = min(2*u.backoff, maxUnknownBackoff)
}
