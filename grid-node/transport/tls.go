package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// TLS makes all connections of a Loop TLS connections, except those of AcceptPlain and
// DialPlain. A connection is announced (OnOpen) when its handshake is done; before that it
// costs the handler nothing.
type TLS struct {
	// AcceptPlain also accepts peers that do not speak TLS, detected by their first bytes.
	// DialPlain dials plain connections. Conn.TLS distinguishes them.
	AcceptPlain, DialPlain bool
	// Server returns the configuration of each accepted connection, Client that of each
	// dialled one; host is the one dialled. Both from any goroutine.
	Server func() *tls.Config
	Client func(host string) *tls.Config
	// HandshakeTimeout bounds the handshake of an accepted connection; default 3 s.
	// Config.DialTimeout bounds that of a dialled one.
	HandshakeTimeout time.Duration
	// MaxHandshakes at the same time, of accepted connections; default 128. One more ends
	// that of the peer that has owed an answer longest: idle connections keep no client
	// out. It is rejected if all of them wait for this process.
	MaxHandshakes int
	// MaxComputing of them compute at the same time, the others wait for the network or
	// for their turn; default a quarter of GOMAXPROCS, at least 1. Without a limit they
	// would queue for processors in front of the loop.
	MaxComputing int
	// NotTLS is written to a peer that does not speak TLS, before its connection is
	// closed; may be nil.
	NotTLS []byte
	// OnFailure is called on the loop for accepted connections whose handshake failed; may
	// be nil.
	OnFailure func(remote string, err error)
}

// secured is a connection after its handshake.
type secured struct {
	nc      net.Conn
	session *tlsrecord.Session // nil: it is a plain one
	early   []byte             // of a plain one: read already, to detect TLS
}

// secure continues c after the handshake.
func (l *core) secure(c *Conn, s *secured) {
	if s.session == nil {
		return
	}
	l.stats.BytesIn += uint64(len(s.session.Early))
	c.peer = &peer{s.session.State.PeerCertificates}
	c.guard = &protection{Guard: s.session, raw: s.session.Early, begun: true}
}

// dial connects and makes the handshake if configured.
func (cfg *Config) dial(ctx context.Context, addr string) (*secured, error) {
	d := net.Dialer{}
	if cfg.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(cfg.Source, 0))
	}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &secured{nc: nc}
	if cfg.TLS == nil || cfg.TLS.DialPlain {
		return s, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		s.session, err = tlsrecord.Client(ctx, nc, cfg.TLS.Client(host))
	}
	if err == nil {
		return s, nil
	}
	_ = nc.Close()
	if why := secure.Explain(err); errors.Is(err, io.EOF) { // as for a plain connection that ends before an answer
		return nil, fmt.Errorf("%w: %w", ErrPeerClosed, why)
	}
	return nil, secure.Explain(err)
}

// accepted makes the handshake of a peer; without a session and an error: a plain peer, as
// allowed.
func (t *TLS) accepted(h *handshake) (*secured, error) {
	s := &secured{nc: h.Conn}
	if t.AcceptPlain {
		switch speaks, err := h.speaksTLS(); {
		case err != nil:
			return nil, secure.Explain(err)
		case !speaks:
			s.early = h.early
			return s, h.SetDeadline(time.Time{})
		}
	}
	var err error
	s.session, err = tlsrecord.Server(context.Background(), h, t.Server())
	h.giveBack()
	if err != nil {
		err = secure.Explain(err)
		if errors.Is(err, secure.ErrPlain) {
			t.sayNotTLS(h.Conn)
		}
		return nil, err
	}
	return s, h.SetDeadline(time.Time{})
}

// sayNotTLS sends a plain peer the reason, and waits until it has read that: a reset, for
// unread input, could overtake it.
func (t *TLS) sayNotTLS(nc net.Conn) {
	if _, err := nc.Write(t.NotTLS); err != nil {
		return
	}
	if hc, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(nc, maxDiscard))
}
