package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// tlsStream is TLS over another stream: records are made into a buffer, which is written
// piece by piece, and taken apart as they come.
type tlsStream struct {
	st    stream
	addr  string
	layer *tlsrecord.Layer

	// Of the reader.
	raw   []byte // raw[:have] is received, less than what was opened
	have  int
	plain []byte // opened; plain[taken:] is not read yet
	taken int
	err   error // what follows plain

	// Of the writer.
	out  []byte // records; out[sent:] is not written
	sent int
	owed int // bytes of the present Write that are records by now
}

const (
	// maxSeal is how many bytes are made into records before they are written.
	maxSeal = 64 << 10
	// minRaw is the length of the receive buffer at first: several orders in a record each.
	minRaw = tlsrecord.MaxRecord
)

func newTLSStream(ctx context.Context, cfg *Config, st stream, addr string) (stream, error) {
	host, _, err := net.SplitHostPort(addr)
	var tc *tls.Config
	if err == nil {
		tc, err = cfg.TLS(host)
	}
	if err != nil {
		st.Close() //nolint:errcheck // the error that matters is returned
		return nil, &tlsError{addr, err}
	}
	s, err := tlsrecord.Client(ctx, &belowTLS{st: st, ctx: ctx}, tc)
	if err != nil {
		st.Close() //nolint:errcheck // the error that matters is returned
		err = &tlsError{addr, secure.Explain(err)}
		if ctx.Err() != nil {
			err = join(ctx.Err(), err)
		}
		return nil, err
	}
	t := &tlsStream{st: st, addr: addr, layer: s.Layer, raw: make([]byte, max(minRaw, len(s.Early)))}
	t.have = copy(t.raw, s.Early)
	t.open()
	return t, nil
}

// Read implements stream.
func (s *tlsStream) Read(p []byte, until int64) (int, error) {
	if s.taken == len(s.plain) && s.err == nil {
		if s.have == len(s.raw) || 2*len(s.raw) <= len(p) {
			s.raw = append(s.raw, make([]byte, len(s.raw))...)
		}
		n, err := s.st.Read(s.raw[s.have:], until)
		s.have += n
		if n == 0 {
			return 0, err
		}
		s.open()
	}
	n := copy(p, s.plain[s.taken:])
	switch s.taken += n; {
	case n > 0:
		return n, nil
	case s.err != nil:
		return 0, s.err
	}
	return 0, errTick // a record is incomplete, or had no data
}

// open decrypts what was received.
func (s *tlsStream) open() {
	data, rest, err := s.layer.Open(s.plain[:0], s.raw[:s.have])
	s.plain, s.taken = data, 0
	s.have = copy(s.raw, rest)
	if s.err = err; err == nil {
		return
	}
	if why := secure.ExplainRead(err); why != err { //nolint:errorlint // the same error means: no explanation
		s.err = &tlsError{s.addr, why}
	}
}

// Write implements stream.
func (s *tlsStream) Write(p []byte) (int, error) {
	if s.owed == 0 {
		s.owed = min(len(p), maxSeal)
		s.out, s.sent = s.layer.Seal(s.out[:0], p[:s.owed]), 0
	}
	for s.sent < len(s.out) {
		n, err := s.st.Write(s.out[s.sent:])
		s.sent += n
		if err != nil {
			return 0, err
		}
	}
	n := s.owed
	s.owed = 0
	return n, nil
}

// Close implements stream.
func (s *tlsStream) Close() error { return s.st.Close() }

// belowTLS is a stream as the net.Conn of a handshake: it waits through ticks.
type belowTLS struct {
	st  stream
	ctx context.Context
}

func (b *belowTLS) Read(p []byte) (int, error) {
	for {
		n, err := b.st.Read(p, never)
		if !errors.Is(err, errTick) {
			return n, err
		}
		if b.ctx.Err() != nil {
			return n, os.ErrDeadlineExceeded
		}
	}
}

func (b *belowTLS) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		n, err := b.st.Write(p[sent:])
		sent += n
		switch {
		case err == nil:
		case !errors.Is(err, errTick):
			return sent, err
		case b.ctx.Err() != nil:
			return sent, os.ErrDeadlineExceeded
		}
	}
	return sent, nil
}

func (b *belowTLS) Close() error { return b.st.Close() }

// A stream has its own deadlines, and its addresses are not used.
func (b *belowTLS) SetDeadline(time.Time) error      { return nil }
func (b *belowTLS) SetReadDeadline(time.Time) error  { return nil }
func (b *belowTLS) SetWriteDeadline(time.Time) error { return nil }
func (b *belowTLS) LocalAddr() net.Addr              { return nil }
func (b *belowTLS) RemoteAddr() net.Addr             { return nil }
