package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// TLS makes all connections of a Loop TLS connections, but for those of AcceptPlain and
// DialPlain. A connection is announced (OnOpen) when its handshake is done; before that
// it costs the handler nothing.
type TLS struct {
	// AcceptPlain takes a peer that does not speak TLS, too: its first bytes tell. DialPlain
	// makes the connections that this end opens plain ones. Conn.TLS tells which is which.
	AcceptPlain, DialPlain bool
	// Server is asked for the configuration of each accepted connection, Client for
	// that of each dialled one; host is the one dialled. Both from any goroutine.
	Server func() *tls.Config
	Client func(host string) *tls.Config
	// HandshakeTimeout bounds the handshake of an accepted connection; default 3 s.
	// Config.DialTimeout bounds that of a dialled one.
	HandshakeTimeout time.Duration
	// MaxHandshakes at the same time, of accepted connections; default 128. One more
	// ends that of the peer that owes an answer for longest: who only holds connections
	// open keeps nobody out. It is refused if all of them wait for this process.
	MaxHandshakes int
	// MaxComputing of them compute at the same time, the others wait for the network or
	// for their turn; default a quarter of GOMAXPROCS, but 1 at least. As many as want to
	// would stand in front of the loop in the queues for a processor.
	MaxComputing int
	// NotTLS is written to a peer that does not speak TLS, before its connection is
	// closed; may be nil.
	NotTLS []byte
	// OnFailure is told on the loop of accepted connections whose handshake failed;
	// may be nil.
	OnFailure func(remote string, err error)
}

// session is TLS on a connection of a netLoop.
type session struct {
	conn    *tls.Conn
	records *secure.Records
}

// chain is the certificate of the peer and the intermediate ones it sent.
func (t *session) chain() []*x509.Certificate {
	if t == nil {
		return nil
	}
	return t.conn.ConnectionState().PeerCertificates
}

func (t *session) read(p []byte) (int, error) { return t.records.ReadAll(t.conn, p) }

func (t *session) write(p []byte) (int, error) {
	t.records.Hold()
	n, err := t.conn.Write(p)
	if err == nil {
		err = t.records.Flush()
	}
	return n, err
}

// writeNow encrypts p and hands to w what that takes; false: a rest is held, and
// Flush sends it.
func (t *session) writeNow(p []byte, w io.Writer) (all bool, err error) {
	t.records.Hold()
	if _, err = t.conn.Write(p); err != nil {
		return false, err
	}
	return t.records.FlushTo(w)
}

// dialled makes the handshake of a connection this side opened.
func (t *TLS) dialled(ctx context.Context, nc net.Conn, addr string) (*session, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s := &session{records: secure.NewRecords(nc)}
	s.conn = tls.Client(s.records, t.Client(host))
	err = s.conn.HandshakeContext(ctx)
	switch {
	case errors.Is(err, io.EOF): // as of a plain connection that ends before it is answered
		return nil, fmt.Errorf("%w: %w", ErrPeerClosed, secure.Explain(err))
	case err != nil:
		return nil, secure.Explain(err)
	}
	return s, nil
}

// secureAccepted makes the handshake of an accepted connection, off the loop.
func (l *netLoop) secureAccepted(s *netSocket) {
	h := l.handshakes.begin(s.nc, l.cfg.TLS.HandshakeTimeout)
	if h == nil {
		_ = s.nc.Close()
		return
	}
	go func() {
		kind := netAccepted
		var err error
		if s.tls, err = l.cfg.TLS.accepted(h); err == nil && s.tls == nil {
			s.early = h.early
		}
		if err != nil {
			kind = netNoTLS
			_ = s.nc.Close()
		}
		h.done()
		if !l.send(netEvent{kind: kind, s: s, err: err}) {
			_ = s.nc.Close()
		}
	}()
}

// accepted makes the handshake of a peer; nil without an error: it speaks plainly, and may.
func (t *TLS) accepted(h *handshake) (*session, error) {
	if t.AcceptPlain {
		switch speaks, err := h.speaksTLS(); {
		case err != nil:
			return nil, secure.Explain(err)
		case !speaks:
			return nil, h.SetDeadline(time.Time{})
		}
	}
	s := &session{records: secure.NewRecords(h)}
	s.conn = tls.Server(s.records, t.Server())
	err := s.conn.Handshake()
	h.giveBack()
	if err != nil {
		err = secure.Explain(err)
		if errors.Is(err, secure.ErrPlain) {
			t.sayNotTLS(h.Conn)
		}
		return nil, err
	}
	s.records.Conn = h.Conn // orders take no turns
	return s, h.SetDeadline(time.Time{})
}

// sayNotTLS tells a peer in its own language, and waits until it has read that:
// a reset, for input nobody read, could overtake it.
func (t *TLS) sayNotTLS(nc net.Conn) {
	if _, err := nc.Write(t.NotTLS); err != nil {
		return
	}
	if hc, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(nc, maxDiscard))
}
