package node

import (
	"errors"
	"fmt"
	"net"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// checkTLS says what cannot go with TLS.
func (c *Config) checkTLS() error {
	if c.TLS != nil && c.Transport == transport.KindEpoll {
		return fmt.Errorf("--io: value %q, allowed: net, or nothing, with --tls-cert", c.Transport)
	}
	return nil
}

// transportTLS is what both loops, the data loop and the liveness loop, demand of
// every connection. nil: plain TCP.
func (n *Node) transportTLS() *transport.TLS {
	id := n.cfg.TLS
	if id == nil {
		return nil
	}
	return &transport.TLS{
		Server: id.Server, Client: id.Client,
		NotTLS: wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayTLS,
			Text: []byte("this port speaks TLS 1.3 only: give the client or node a certificate, a key and the CA")}),
		OnFailure: n.handshakeFailed,
	}
}

// handshakeFailed logs who could not get in; strangers must not flood the log.
func (n *Node) handshakeFailed(remote string, err error) {
	n.alarms.limited(n.loop.Clock().Mono(), "tls", func() {
		n.log.Warn("a connection was refused before Hello; further ones within a second are counted only", "remote", remote, "reason", err)
	})
}

// mayBeNode looks at the network and the certificate of whoever says that it is the
// node at address. A client's certificate is good for orders, never for replication
// or signs of life.
func (n *Node) mayBeNode(l *link, address []byte) error {
	if err := n.comesFromItsFabric(l.conn.Remote(), address); err != nil {
		return fmt.Errorf("not accepted as a node: %w", err)
	}
	if n.cfg.TLS == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(string(address))
	if err != nil {
		return fmt.Errorf("node at %.64q, allowed: host:port", address)
	}
	if err := n.cfg.TLS.CheckNode(l.conn.Chain(), host); err != nil {
		return fmt.Errorf("not accepted as a node: %w", err)
	}
	return nil
}

// undecodable answers bytes that are no frame. The most likely ones are worth a
// word of their own: a client that speaks TLS to a port that does not.
func (n *Node) undecodable(l *link, buf []byte, err error) error {
	if l.state != awaitHello || !secure.LooksLikeTLS(buf) {
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	n.alarms.limited(n.loop.Clock().Mono(), "tls", func() {
		n.log.Warn("a client or node speaks TLS to this port, which does not: start this node with --tls-cert, --tls-key and --tls-ca, or the other one without", "remote", l.conn.Remote())
	})
	return n.goaway(l, wire.GoawayTLS, "this port does not speak TLS")
}

// tellTLS logs why a node that was dialled cannot be talked to: nobody died,
// somebody has to change flags or certificates.
func (n *Node) tellTLS(l *link, err error) {
	var handshake *secure.HandshakeError
	if l.state != awaitWelcome || !errors.As(err, &handshake) && !errors.Is(err, secure.ErrTLS) {
		return
	}
	n.alarms.limited(n.loop.Clock().Mono(), "tls-dial", func() {
		n.log.Warn("a node cannot be connected to; compare --tls-cert, --tls-key, --tls-ca and --tls-name of both", "remote", l.conn.Remote(), "reason", err)
	})
}

// tlsStatus is what new connections find; nil without TLS.
func tlsStatus(id *secure.Identity) *nodestatus.TLS {
	if id == nil {
		return nil
	}
	cert := id.Certificate()
	s := &nodestatus.TLS{Serial: cert.SerialNumber.Text(16), NotAfter: cert.NotAfter}
	for _, authority := range id.Authorities() {
		s.Authorities = append(s.Authorities, secure.Fingerprint(authority))
	}
	if err := id.Err(); err != nil {
		s.Error = err.Error()
	}
	return s
}
