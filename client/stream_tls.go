package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// tlsStream is TLS over another stream. A tls.Conn is broken by a write that was
// cut short, so records are made into a buffer (secure.Records) and the buffer is
// what is written piece by piece.
type tlsStream struct {
	below   *belowTLS
	records *secure.Records
	conn    *tls.Conn
	owed    int // bytes of the present Write that are records by now, not all written
}

// maxSeal is how many bytes are made into records before they are written.
const maxSeal = 64 << 10

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
	below := &belowTLS{st: st, until: never, patient: ctx}
	s := &tlsStream{below: below, records: secure.NewRecords(below)}
	s.conn = tls.Client(s.records, tc)
	if err := s.conn.HandshakeContext(ctx); err != nil {
		st.Close() //nolint:errcheck // the error that matters is returned
		if ctx.Err() != nil {
			return nil, join(ctx.Err(), &tlsError{addr, secure.Explain(err)})
		}
		return nil, &tlsError{addr, secure.Explain(err)}
	}
	below.patient = nil
	below.addr = addr
	return s, nil
}

func (s *tlsStream) Read(p []byte, until int64) (int, error) {
	s.below.until = until
	n, err := s.records.ReadAll(s.conn, p)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errTick
	}
	if why := secure.ExplainRead(err); why != err { //nolint:errorlint // the very same error means: nothing to say
		err = &tlsError{s.below.addr, why}
	}
	return n, err
}

func (s *tlsStream) Write(p []byte) (int, error) {
	if s.owed == 0 {
		s.records.Hold()
		n, err := s.conn.Write(p[:min(len(p), maxSeal)])
		if err != nil {
			return 0, err
		}
		s.owed = n
	}
	if err := s.records.Flush(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errTick
		}
		return 0, err
	}
	n := s.owed
	s.owed = 0
	return n, nil
}

func (s *tlsStream) Close() error { return s.below.Close() }

// belowTLS is a stream as a net.Conn. Its ticks are timeouts, after which a
// tls.Conn can be read again.
type belowTLS struct {
	st      stream
	addr    string
	until   int64           // for Read
	patient context.Context // during the handshake: ticks are waited through
}

func (b *belowTLS) Read(p []byte) (int, error) {
	for {
		n, err := b.st.Read(p, b.until)
		if !errors.Is(err, errTick) {
			return n, err
		}
		if b.patient == nil {
			return n, os.ErrDeadlineExceeded
		}
		if err := b.patient.Err(); err != nil {
			return n, err
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
		case b.patient == nil:
			return sent, os.ErrDeadlineExceeded
		case b.patient.Err() != nil:
			return sent, b.patient.Err()
		}
	}
	return sent, nil
}

func (b *belowTLS) Close() error { return b.st.Close() }

// A stream has deadlines of its own, and nobody asks for addresses.
func (b *belowTLS) SetDeadline(time.Time) error      { return nil }
func (b *belowTLS) SetReadDeadline(time.Time) error  { return nil }
func (b *belowTLS) SetWriteDeadline(time.Time) error { return nil }
func (b *belowTLS) LocalAddr() net.Addr              { return nil }
func (b *belowTLS) RemoteAddr() net.Addr             { return nil }
