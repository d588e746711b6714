package node

import (
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
	return nil
}

// transportTLS is what both loops, the data loop and the liveness loop, demand of
// every connection, or in a transition of those that are TLS ones. nil: plain TCP.
func (c *Config) transportTLS(onFailure func(remote string, err error)) *transport.TLS {
	id := c.TLS
	if id == nil {
		return nil
	}
	return &transport.TLS{
		Server: id.Server, Client: id.Client,
		AcceptPlain: c.TLSTransition != TLSOnly, DialPlain: c.TLSTransition == TLSAccept,
		NotTLS: wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayTLS,
			Text: []byte("this port speaks TLS 1.3 only: give the client or node a certificate, a key and the CA")}),
		OnFailure: onFailure,
	}
}

// maxPlainShown bounds the plain clients that are named.
const maxPlainShown = 8

// plain are the clients that would not be there without the transition.
func (c *clients) plain() *nodestatus.PlainClients {
	if c.cfg.TLSTransition == TLSOnly {
		return nil
	}
	var p nodestatus.PlainClients
	for _, l := range c.byID {
		if !l.conn.Open() || l.conn.TLS() {
			continue
		}
		p.Connections++
		host, _, _ := net.SplitHostPort(l.conn.Remote())
		shown := nodestatus.PlainClient{Host: host, Name: fmt.Sprintf("%.64s", l.name)}
		if len(p.Some) < maxPlainShown && !slices.Contains(p.Some, shown) {
			p.Some = append(p.Some, shown)
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
