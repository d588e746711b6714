package node

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// listeners are the data port and the port for clients outside. What connects there is theirs until it
// has said, and proved where it has to, what it is: a client, or a peer, bulk or liveness connection of
// another node. Of the data loop; the HTTP port is pages'.
type listeners struct {
	*process
	parts   *partitions
	clients *clients
	peers   *peers
	live    *liveness

	undecided linkSet // have not said Hello, Welcome or who they are yet; dialled ones too
}

const (
	// endedAtOnce is how many strangers whose time is over one tick sends away.
	endedAtOnce = 16
	// maxHello bounds what a stranger can make us buffer before it said Hello.
	maxHello = 1 << 10
	// undecidedPart of the connections is for those that have not said who they are.
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

// accepted begins with a connection of a stranger.
func (ls *listeners) accepted(c *transport.Conn) {
	l := &link{conn: c, outside: c.Door() == doorExternal, helloBy: ls.loop.Clock().Mono() + int64(helloTimeout)}
	c.Tag = l
	c.SetLimits(maxHello, clientHardOut)
	ls.makeRoom()
	ls.undecided = append(ls.undecided, l)
}

// tooLong ends a connection that begins a frame of more bytes than are waited for from it.
func (ls *listeners) tooLong(l *link, size int) error {
	text := ""
	switch {
	case l.state == awaitHello && size > maxHello:
		text = fmt.Sprintf("first frame has %d bytes, allowed: a Hello of at most %d", size, maxHello)
	case (l.state == awaitPeerProof || l.state == awaitWelcome) && size > maxHello+wire.MaxText:
		text = fmt.Sprintf("frame of %d bytes from who has proved nothing, allowed: at most %d", size, maxHello+wire.MaxText)
	case l.state == awaitProof && size > wire.MaxAuthenticate:
		text = fmt.Sprintf("frame of %d bytes from a client that has proved nothing, allowed: at most %d", size, wire.MaxAuthenticate)
	case l.state == ready && !l.role.IsNode() && size > maxClientFrame:
		return ls.badFrame(l, wire.GoawayProtocol, fmt.Sprintf("frame of %d bytes, allowed from a client: at most %d", size, maxClientFrame))
	default:
		return nil
	}
	return l.goaway(wire.GoawayProtocol, text)
}

// tick ends connections that have not said in time what they are.
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

var errTooManyUndecided = errors.New("too many connections have not said who they are")

// makeRoom ends one, any, of the accepted connections that have not said who
// they are when there are too many: they are not to take all there are for as long as
// each of them may think. Whoever means it needs no more than a round trip, and is
// hardly ever the one. It is not told why: who is told is given time to read it.
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

// undecodable answers bytes that are no frame. The most likely ones are worth a
// word of their own: a client that speaks TLS to a port that does not.
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

// handshakeFailed logs who could not get in; strangers must not flood the log.
func (ls *listeners) handshakeFailed(remote string, err error) {
	ls.limited("tls", func() {
		ls.log.Warn("a connection was refused before Hello; further ones within a second are counted only", "remote", remote, "reason", err)
	})
}
