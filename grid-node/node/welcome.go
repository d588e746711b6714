package node

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// sayHello sends the Hello on a dialled connection.
func (ps *peers) sayHello(l *link) {
	l.handshake.hello = ps.newHello(l.role)
	l.conn.SetOut(append(l.conn.Out(), l.handshake.hello...))
}

// checkVersion refuses a node that answers with a version it was not offered.
func checkVersion(m *wire.Welcome) error {
	if m.Version < wire.MinVersion || m.Version > wire.Version {
		return &wire.FrameError{Type: wire.TypeWelcome, Field: "version", Value: uint64(m.Version), Allowed: fmt.Sprintf("%d..%d", wire.MinVersion, wire.Version)}
	}
	return nil
}

// welcome ends the handshake of a connection we dialled.
func (ps *peers) welcome(l *link, frame []byte) error {
	if wire.FrameType(frame) == wire.TypeGoaway {
		return saidGoaway(frame)
	}
	wanted := ""
	if l.peer != nil {
		wanted = l.peer.addr
	}
	if records, done, err := l.step(ps.trust, l.conn, wanted, frame); err != nil {
		return ps.unproven(l, err)
	} else if done {
		if records != nil {
			l.conn.Protect(records)
		}
		return nil
	}
	var m wire.Welcome
	if err := wire.DecodeWelcome(frame, &m); err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	_, boot, err := wire.ParseMemberID(string(m.Member))
	if err == nil {
		err = checkVersion(&m)
	}
	if err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	if err := l.welcomed(ps.trust, l.conn, &m); err != nil {
		return ps.unproven(l, err)
	}
	ps.listeners.undecided.remove(l)
	l.state, l.boot, l.name, l.version = ready, boot, string(m.Member), m.Version
	if l.role == wire.RoleBulk {
		ps.bulkReady(l)
		return nil
	}
	l.conn.SetLimits(0, peerHardOut)
	addr := l.conn.Remote()
	if l.by == byKey {
		addr = l.address
	}
	if boot == ps.boot {
		addr = ps.cfg.Advertise
	}
	ps.names.found(l, addr)
	return ps.ready(l, addr)
}

// unproven closes a dialled connection whose other end is not a node of the grid.
func (ps *peers) unproven(l *link, err error) error {
	ps.counters.NodesRefused++
	ps.limited("peer-key", func() {
		ps.log.Warn("a dialled node is not accepted as one of this grid", "remote", l.conn.Remote(), "reason", err)
	})
	return l.goaway(wire.GoawayRole, err.Error())
}

// tellTLS logs why the TLS handshake with a dialled node failed: no process died, but
// flags or certificates must be changed.
func (ps *peers) tellTLS(l *link, err error) {
	var handshake *secure.HandshakeError
	if l.state != awaitWelcome || !errors.As(err, &handshake) && !errors.Is(err, secure.ErrTLS) {
		return
	}
	ps.limited("tls-dial", func() {
		ps.log.Warn("a node cannot be connected to; compare --tls-cert, --tls-key, --tls-ca and --tls-name of both", "remote", l.conn.Remote(), "reason", err)
	})
}
