package node

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TLSTransition is a stage between plain TCP and TLS. Neighbours among these understand
// each other: no TLS, TLSAccept, TLSDial, TLS only.
type TLSTransition string

const (
	// TLSOnly is no stage: the data port speaks TLS and nothing else.
	TLSOnly TLSTransition = ""
	// TLSAccept takes TLS beside plain connections and dials plain ones: other nodes may
	// not have TLS yet.
	TLSAccept TLSTransition = nodestatus.TransitionAccept
	// TLSDial takes both and dials TLS: all other nodes take it.
	TLSDial TLSTransition = nodestatus.TransitionDial
)

// checkTLS says what cannot go with TLS.
func (c *Config) checkTLS() error {
	switch c.TLSTransition {
	case TLSOnly:
	case TLSAccept, TLSDial:
		if c.TLS == nil {
			return fmt.Errorf("--tls-transition: value %q, allowed: nothing without --tls-cert, --tls-key and --tls-ca", c.TLSTransition)
		}
		if c.Access != nil {
			return fmt.Errorf("--tls-transition: value %q, allowed: nothing with --authorization, for a plain client cannot prove who it is", c.TLSTransition)
		}
	default:
		return fmt.Errorf("--tls-transition: value %q, allowed: accept, dial, or nothing", c.TLSTransition)
	}
	if c.TLS != nil && c.Transport == transport.KindEpoll {
		return fmt.Errorf("--io: value %q, allowed: net, or nothing, with --tls-cert", c.Transport)
	}
	return nil
}

// transportTLS is what both loops, the data loop and the liveness loop, demand of
// every connection, or in a transition of those that are TLS ones. nil: plain TCP.
func (n *Node) transportTLS() *transport.TLS {
	id := n.cfg.TLS
	if id == nil {
		return nil
	}
	return &transport.TLS{
		Server: id.Server, Client: id.Client,
		AcceptPlain: n.cfg.TLSTransition != TLSOnly, DialPlain: n.cfg.TLSTransition == TLSAccept,
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
		return err
	}
	if n.cfg.TLS == nil || n.cfg.TLSTransition != TLSOnly && !l.conn.TLS() {
		return nil // as where no node has TLS
	}
	host, _, err := net.SplitHostPort(string(address))
	if err != nil {
		return fmt.Errorf("node at %.64q, allowed: host:port", address)
	}
	return n.cfg.TLS.CheckNode(l.conn.Chain(), host)
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

// maxPlainShown bounds the plain clients that are named.
const maxPlainShown = 8

// plainClients are the clients that would not be there without the transition.
func (n *Node) plainClients() *nodestatus.PlainClients {
	if n.cfg.TLSTransition == TLSOnly {
		return nil
	}
	var p nodestatus.PlainClients
	for _, l := range n.clients {
		if !l.conn.Open() || l.conn.TLS() {
			continue
		}
		p.Connections++
		host, _, _ := net.SplitHostPort(l.conn.Remote())
		c := nodestatus.PlainClient{Host: host, Name: fmt.Sprintf("%.64s", l.name)}
		if len(p.Some) < maxPlainShown && !slices.Contains(p.Some, c) {
			p.Some = append(p.Some, c)
		}
	}
	return &p
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
