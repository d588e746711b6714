package transport

import (
	"fmt"
	"net"
	"sync/atomic"
)

// netSocket is one connection of a netLoop with its two goroutines.
type netSocket struct {
	secured
	l       *netLoop
	conn    *Conn
	door    int      // which call of Listen accepted it
	dialled *secured // result of a dial, handed over by the netDialled event

	rbuf    []byte
	filled  bool          // the last read filled rbuf
	reading bool          // a read is in progress; rbuf belongs to the reader
	prompt  atomic.Bool   // its events go before those of others, see Conn.Urgent
	next    chan struct{} // allows one read
	out     chan []byte   // hands one buffer to the writer; nil: the end of the stream
	spare   []byte
	gone    chan struct{} // closed by release
	try     *tryWriter    // nil where there is none
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

func (s *netSocket) ahead() {}

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
		case b := <-s.out:
			if b == nil {
				s.endWrite()
				continue
			}
			n, err := s.nc.Write(b)
			if !s.l.send(netEvent{kind: netWritten, s: s, n: n, err: err}) || err != nil {
				return
			}
		case <-s.gone:
			return
		}
	}
}

// atOnce is how much the loop writes to the kernel itself. More may be copied on another
// core.
const atOnce = 16 << 10

// write writes little output itself, since a writer's goroutine would have to be woken;
// anything else, and what the socket does not accept at once, goes to the writer as a
// whole.
func (s *netSocket) write(c *Conn) {
	if c.inflight > 0 {
		return
	}
	if c.seal(); len(c.out) == 0 {
		return
	}
	if s.try != nil && len(c.out) <= atOnce {
		n, err := s.try.Write(c.out)
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
		c.out = c.out[:copy(c.out, c.out[n:])]
		c.wrote(n)
	}
	b := c.out
	c.inflight = len(b)
	c.out, s.spare = s.spare[:0], b
	c.blockedAt = s.l.clock.mono
	s.l.countOut(c)
	s.out <- b
}

func (s *netSocket) setReading(c *Conn, on bool) {
	// Off: the next read is not started. On: start it unless one is in progress.
	if on && c.open && !c.closed {
		s.startRead()
	}
}

// shutdownWrite leaves it to the writer, which is idle.
func (s *netSocket) shutdownWrite(*Conn) { s.out <- nil }

func (s *netSocket) endWrite() {
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
	return s.nc.Read(s.rbuf)
}

// unsent asks the kernel. Output still with the writer's goroutine is not included; it is
// counted as if it were.
func (s *netSocket) unsent() int {
	if s.nc == nil {
		return 0
	}
	return s.conn.inflight + unsentOf(s.nc)
}

func (s *netSocket) dead() bool { return s.nc != nil && goneFrom(s.nc) }

func (s *netSocket) setSendBuffer(bytes int) {
	if t, ok := s.nc.(*net.TCPConn); ok {
		setSendBufferOf(t, bytes)
	}
}

// release closes the socket at once.
func (s *netSocket) release(_ *Conn, reset bool) {
	if s.nc != nil {
		if t, ok := s.nc.(*net.TCPConn); ok && reset {
			_ = t.SetLinger(0)
		}
		close(s.gone)
		_ = s.nc.Close()
	}
}
