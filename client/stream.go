package client

import (
	"context"
	"errors"
	"net"
	"time"
)

// stream is the byte connection below a link. Two implementations: the net
// package (any operating system) and blocking sockets (Linux); tlsStream sits on
// either.
//
// One goroutine may read while another writes. Both calls return errTick after
// at most about tick without progress, so that the caller can look at contexts
// and deadlines without a timer of its own on the path.
type stream interface {
	// Read returns at least one byte, or an error. until is the monotonic
	// time (see nanotime) at which the caller wants to be back.
	Read(p []byte, until int64) (int, error)
	// Write returns how many bytes the peer's window took; after errTick the
	// caller comes back with the rest, the same bytes first.
	Write(p []byte) (int, error)
	// Close wakes a reader and a writer; it may be called more than once.
	Close() error
}

// tick bounds how late a waiting call notices a cancelled context.
const tick = 20 * time.Millisecond

// errTick: nothing moved for about tick; the stream is still good.
var errTick = errors.New("client: no progress within a tick")

func dialStream(ctx context.Context, cfg *Config, mode IO, addr string) (stream, error) {
	conn, err := cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	var st stream = &netStream{conn: conn}
	if tcp, ok := conn.(*net.TCPConn); ok && mode != IONet && haveRawIO {
		if st, err = newRawStream(tcp, mode); err != nil {
			return nil, err
		}
	}
	if cfg.TLS == nil {
		return st, nil
	}
	return newTLSStream(ctx, cfg, st, addr)
}

// netStream is the net package's connection. Deadlines are moved at most every
// half tick, not per call: each move costs a timer update.
type netStream struct {
	conn     net.Conn
	readEnd  int64 // read deadline in force, monotonic
	writeEnd int64
}

func (s *netStream) Read(p []byte, until int64) (int, error) {
	now := nanotime()
	want := min(now+int64(tick), max(until, now+int64(time.Millisecond)))
	if s.readEnd > want || s.readEnd < now+int64(tick)/2 && s.readEnd != want {
		if err := s.conn.SetReadDeadline(timeOf(want)); err != nil {
			return 0, err
		}
		s.readEnd = want
	}
	n, err := s.conn.Read(p)
	return n, tickOr(n, err)
}

func (s *netStream) Write(p []byte) (int, error) {
	now := nanotime()
	if s.writeEnd < now+int64(tick)/2 {
		if err := s.conn.SetWriteDeadline(timeOf(now + int64(tick))); err != nil {
			return 0, err
		}
		s.writeEnd = now + int64(tick)
	}
	n, err := s.conn.Write(p)
	return n, tickOr(0, err)
}

func (s *netStream) Close() error { return s.conn.Close() }

// tickOr turns a passed deadline into errTick, unless bytes came with it.
func tickOr(n int, err error) error {
	if err == nil {
		return nil
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		if n > 0 {
			return nil
		}
		return errTick
	}
	return err
}
