package transport

import (
	"net"
)

// netSocket is one connection of a netLoop with its two goroutines.
type netSocket struct {
	l       *netLoop
	conn    *Conn
	nc      net.Conn   // the socket
	tls     *session   // above nc; nil without TLS
	dialled *netSocket // result of a dial, handed over by the netDialled event

	rbuf    []byte
	reading bool          // a read is under way; rbuf belongs to the reader
	next    chan struct{} // allows one read
	out     chan []byte   // hands one buffer to the writer
	spare   []byte
	gone    chan struct{} // closed by release
}

func (s *netSocket) startRead() {
	if !s.reading {
		s.reading = true
		s.next <- struct{}{}
	}
}

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
			n, err := s.send(b)
			if !s.l.send(netEvent{kind: netWritten, s: s, n: n, err: err}) || err != nil {
				return
			}
		case <-s.gone:
			return
		}
	}
}

// write hands the whole buffer to the writer and goes on with the other one.
func (s *netSocket) write(c *Conn) {
	if c.inflight > 0 || len(c.out) == 0 {
		return
	}
	b := c.out
	c.inflight = len(b)
	c.out, s.spare = s.spare[:0], b
	c.blockedAt = s.l.clock.mono
	s.out <- b
}

func (s *netSocket) setReading(c *Conn, on bool) {
	// Off: the next read is not started. On: start it unless one is under way.
	if on && c.open && !c.closed {
		s.startRead()
	}
}

// shutdownWrite leaves it to the writer, which is idle: with TLS there is a last
// record to write.
func (s *netSocket) shutdownWrite(*Conn) { s.out <- nil }

func (s *netSocket) endWrite() {
	if s.tls != nil {
		_ = s.tls.conn.CloseWrite() // the peer may be gone
	}
	if hc, ok := s.nc.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
}

func (s *netSocket) read() (int, error) {
	if s.tls != nil {
		return s.tls.read(s.rbuf)
	}
	return s.nc.Read(s.rbuf)
}

func (s *netSocket) send(b []byte) (int, error) {
	if s.tls != nil {
		return s.tls.write(b)
	}
	return s.nc.Write(b)
}

// release closes the socket at once. A tls.Conn's own Close would wait for a peer
// that does not read.
func (s *netSocket) release(*Conn) {
	if s.nc != nil {
		close(s.gone)
		_ = s.nc.Close()
	}
}
