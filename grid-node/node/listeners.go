package node

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// listeners are the data port and the port for clients outside. They own accepted
// connections until these are identified, and authenticated where required: a client, or a
// peer, bulk or liveness connection of another node. Of the data loop; the HTTP port
// belongs to pages.
type listeners struct {
	*process
	parts   *partitions
	clients *clients
	peers   *peers
	live    *liveness

	undecided linkSet // not identified yet (Hello, Welcome, proof); dialled ones too
}

const (
	// endedAtOnce is how many overdue strangers one tick closes.
	endedAtOnce = 16
	// maxHello bounds the buffer for a stranger before its Hello.
	maxHello = 1 << 10
	// undecidedPart of the connections is for unidentified ones.
	undecidedPart = 4
)

// open listens on the ports; it returns the data port's address.
func (ls *listeners) open() (addr string, err error) {
	a, err := ls.loop.Listen(ls.cfg.Listen)
	if err != nil {
		return "", fmt.Errorf("--listen: %w; is another node running here?", err)
	}
	if ls.cfg.External != "" { // doorExternal
		if _, err := ls.loop.Listen(ls.cfg.External); err != nil {
			return "", fmt.Errorf("--external-listen: %w; is another node running here?", err)
		}
	}
	return a.String(), nil
}

// accepted starts with a stranger's connection.
func (ls *listeners) accepted(c *transport.Conn) {
	l := &link{conn: c, outside: c.Door() == doorExternal, helloBy: ls.loop.Clock().Mono() + int64(helloTimeout)}
	c.Tag = l
	c.SetLimits(maxHello, clientHardOut)
	ls.makeRoom()
	ls.undecided = append(ls.undecided, l)
}

// tooLong ends a connection that begins an overlong frame.
func (ls *listeners) tooLong(l *link, size int) error {
	text := ""
	switch {
	case l.state == awaitHello && size > maxHello:
		text = fmt.Sprintf("first frame has %d bytes, allowed: a Hello of at most %d", size, maxHello)
	case (l.state == awaitPeerProof || l.state == awaitWelcome) && size > maxHello+wire.MaxText:
		text = fmt.Sprintf("frame of %d bytes from an unauthenticated peer, allowed: at most %d", size, maxHello+wire.MaxText)
	case l.state == awaitProof && size > wire.MaxAuthenticate:
		text = fmt.Sprintf("frame of %d bytes from an unauthenticated client, allowed: at most %d", size, wire.MaxAuthenticate)
	case l.state == ready && !l.role.IsNode() && size > maxClientFrame:
		return ls.badFrame(l, wire.GoawayProtocol, fmt.Sprintf("frame of %d bytes, allowed from a client: at most %d", size, maxClientFrame))
	default:
		return nil
	}
	return l.goaway(wire.GoawayProtocol, text)
}

// tick ends connections that are not identified in time.
func (ls *listeners) tick(now int64) {
	ended := 0
	for i := len(ls.undecided) - 1; i >= 0 && ended < endedAtOnce; i-- {
		if l := ls.undecided[i]; now > l.helloBy && l.conn.Open() {
			ended++
			if l.state == awaitProof {
				_ = ls.clients.turnAway(l)
				continue
			}
			ls.counters.HelloTimeouts++
			_ = l.goaway(wire.GoawayProtocol, fmt.Sprintf("no Hello, or no proof, within %v", helloTimeout))
		}
	}
}

var errTooManyUndecided = errors.New("too many unidentified connections")

// makeRoom closes a random one of the accepted connections that are not identified when
// there are too many: otherwise they could take all places for the length of their
// timeouts. An honest client needs only a round trip, and is hardly ever the one. It gets
// no reason: that would need time to read it.
func (ls *listeners) makeRoom() {
	if len(ls.undecided) < max(minReserved, ls.cfg.MaxConns/undecidedPart) {
		return
	}
	begin := rand.IntN(len(ls.undecided))
	for i := range ls.undecided {
		l := ls.undecided[(begin+i)%len(ls.undecided)]
		if l.conn.Dialled() || l.asking { // they are bounded already
			continue
		}
		ls.counters.HelloTimeouts++
		l.conn.Close(errTooManyUndecided)
		ls.undecided.remove(l)
		return
	}
}

// undecodable answers bytes that are not a frame. The most likely case has its own
// message: a client that speaks TLS to a plain port.
func (ls *listeners) undecodable(l *link, buf []byte, err error) error {
	ls.counters.BadFrames++
	if l.state != awaitHello || !secure.LooksLikeTLS(buf) {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	ls.limited("tls", func() {
		ls.log.Warn("a client or node speaks TLS to this port, which does not: start this node with --tls-cert, --tls-key and --tls-ca, or the other one without", "remote", l.conn.Remote())
	})
	return l.goaway(wire.GoawayTLS, "this port does not speak TLS")
}

// handshakeFailed logs failed handshakes; strangers must not flood the log.
func (ls *listeners) handshakeFailed(remote string, err error) {
	ls.limited("tls", func() {
		ls.log.Warn("a connection was refused before Hello; further ones within a second are counted only", "remote", remote, "reason", err)
	})
}
