package transport

import (
	"fmt"
	"net"
	"sync/atomic"
)

// netSocket is one connection of a netLoop with its two goroutines.
type netSocket struct {
	l       *netLoop
	conn    *Conn
	nc      net.Conn   // the socket
	tls     *session   // above nc; nil without TLS
	early   []byte     // read already, to find out what the peer speaks
	door    int        // which call of Listen accepted it
	dialled *netSocket // result of a dial, handed over by the netDialled event

	rbuf    []byte
	filled  bool          // the last read filled rbuf
	reading bool          // a read is under way; rbuf belongs to the reader
	prompt  atomic.Bool   // its events go before those of others, see Conn.Urgent
	next    chan struct{} // allows one read
	out     chan outgoing // hands one buffer to the writer
	spare   []byte
	gone    chan struct{} // closed by release
	try     *tryWriter    // nil where there is none
}

// outgoing is what a writer is handed: bytes, or the end of the stream (nil).
type outgoing struct {
	b []byte
	// encrypted: the TLS session holds b already, and what the socket did not take.
	encrypted bool
}

// firstRead is the length of a connection's first buffer, patientRead that of the longest
// while it is not prompt.
const (
	firstRead   = 4 << 10
	patientRead = 16 << 10
)

// startRead lets the reader read once, into a longer buffer if it filled the one it has.
func (s *netSocket) startRead() {
	if s.reading {
		return
	}
	s.reading = true
	if most := s.most(); s.filled && len(s.rbuf) < most {
		s.rbuf = make([]byte, min(2*len(s.rbuf), most))
	}
	s.next <- struct{}{}
}

// most is the longest buffer that the connection may have.
func (s *netSocket) most() int {
	if s.prompt.Load() {
		return s.l.cfg.ReadBuffer
	}
	return min(s.l.cfg.ReadBuffer, patientRead)
}

func (s *netSocket) setPrompt(_ *Conn, on bool) { s.prompt.Store(on) }

func (s *netSocket) readLoop() {
	for {
		select {
		case <-s.next:
		case <-s.gone:
			return
		}
		n, err := s.read()
		if !s.l.send(netEvent{kind: netRead, s: s, n: n, err: err}) || err != nil {
			return
		}
	}
}

func (s *netSocket) writeLoop() {
	for {
		select {
		case o := <-s.out:
			if o.b == nil {
				s.endWrite()
				continue
			}
			n, err := s.send(o)
			if !s.l.send(netEvent{kind: netWritten, s: s, n: n, err: err}) || err != nil {
				return
			}
		case <-s.gone:
			return
		}
	}
}

// atOnce is how much the loop hands to the kernel itself. What is more may be
// encrypted and copied on another core.
const atOnce = 16 << 10

// write hands what is little to the kernel, for a writer's goroutine would have to
// be woken; anything else, and what the socket does not take at once, goes to the
// writer as a whole.
func (s *netSocket) write(c *Conn) {
	if c.inflight > 0 {
		return
	}
	if c.seal(); len(c.out) == 0 {
		return
	}
	encrypted := false
	if s.try != nil && len(c.out) <= atOnce {
		n, err := s.sendNow(c.out)
		if err != nil {
			c.Close(fmt.Errorf("%w: %w", ErrPeerClosed, err))
			return
		}
		if n == len(c.out) {
			c.off = n
			c.wrote(n)
			c.drained()
			return
		}
		// A record is sent as a whole or it is not: what is left of it, the session has.
		if encrypted = s.tls != nil; !encrypted {
			c.out = c.out[:copy(c.out, c.out[n:])]
			c.wrote(n)
		}
	}
	b := c.out
	c.inflight = len(b)
	c.out, s.spare = s.spare[:0], b
	c.blockedAt = s.l.clock.mono
	s.l.countOut(c)
	s.out <- outgoing{b: b, encrypted: encrypted}
}

// sendNow never waits. With TLS n is len(b) or 0: either all of it was taken, or the
// session holds a rest.
func (s *netSocket) sendNow(b []byte) (n int, err error) {
	if s.tls == nil {
		return s.try.Write(b)
	}
	all, err := s.tls.writeNow(b, s.try)
	if all {
		n = len(b)
	}
	return n, err
}

func (s *netSocket) setReading(c *Conn, on bool) {
	// Off: the next read is not started. On: start it unless one is under way.
	if on && c.open && !c.closed {
		s.startRead()
	}
}

// shutdownWrite leaves it to the writer, which is idle: with TLS there is a last
// record to write.
func (s *netSocket) shutdownWrite(*Conn) { s.out <- outgoing{} }

func (s *netSocket) endWrite() {
	if s.tls != nil {
		_ = s.tls.conn.CloseWrite() // the peer may be gone
	}
	if hc, ok := s.nc.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
}

func (s *netSocket) read() (int, error) {
	if len(s.early) > 0 {
		n := copy(s.rbuf, s.early)
		s.early = s.early[n:]
		return n, nil
	}
	if s.tls != nil {
		return s.tls.read(s.rbuf)
	}
	return s.nc.Read(s.rbuf)
}

func (s *netSocket) send(o outgoing) (int, error) {
	switch {
	case o.encrypted:
		return len(o.b), s.tls.records.Flush()
	case s.tls != nil:
		return s.tls.write(o.b)
	}
	return s.nc.Write(o.b)
}

// unsent asks the kernel. What a writer's goroutine still has is not in it; it is
// counted as if it were.
func (s *netSocket) unsent() int {
	if s.nc == nil {
		return 0
	}
	return s.conn.inflight + unsentOf(s.nc)
}

func (s *netSocket) setSendBuffer(bytes int) {
	if t, ok := s.nc.(*net.TCPConn); ok {
		setSendBufferOf(t, bytes)
	}
}

// release closes the socket at once. A tls.Conn's own Close would wait for a peer
// that does not read.
func (s *netSocket) release(_ *Conn, reset bool) {
	if s.nc != nil {
		if t, ok := s.nc.(*net.TCPConn); ok && reset {
			_ = t.SetLinger(0)
		}
		close(s.gone)
		_ = s.nc.Close()
	}
}
