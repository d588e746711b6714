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

// TLSTransition is a stage between plain TCP and TLS. Neighbouring stages are compatible:
// no TLS, TLSAccept, TLSDial, TLS only.
type TLSTransition string

const (
	// TLSOnly is the end state: the data port speaks TLS only.
	TLSOnly TLSTransition = ""
	// TLSAccept accepts TLS beside plain connections and dials plain ones: other nodes may
	// not have TLS yet.
	TLSAccept TLSTransition = nodestatus.TransitionAccept
	// TLSDial accepts both and dials TLS: all other nodes accept it.
	TLSDial TLSTransition = nodestatus.TransitionDial
)

// checkTLS rejects settings that are incompatible with TLS.
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

// transportTLS is the TLS configuration of both loops; in a transition it applies to TLS
// connections only. nil: plain TCP.
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

// plain lists the clients that exist only because of the transition.
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

// tlsStatus returns what new connections find; nil without TLS.
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
