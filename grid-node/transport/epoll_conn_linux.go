package transport

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

const (
	readMask = unix.EPOLLIN | unix.EPOLLRDHUP
	// copyLimit is the longest incomplete frame that is copied in front of the shared read
	// buffer; a longer one is received into a buffer of its own, so that a peer sending it
	// byte by byte cannot make us copy it each time.
	copyLimit = 16 << 10
)

// minRoom is the room in the buffer of a long frame below which the buffer is doubled.
const minRoom = 4 << 10

// earlyOut is how much output is worth its own system call before the other connections of
// a wake-up are read: the peer continues in the meantime.
const earlyOut = 8 << 10

// read receives once (until the end of the stream if the peer is gone) and
// delivers.
func (l *epollLoop) read(s *epollSocket, c *Conn, ending bool) {
	if c.paused || c.waiting {
		// Reading is off, so this is the end of the connection: the peer will not drain
		// the output that paused it.
		if ending {
			c.Close(ErrPeerClosed)
		}
		return
	}
	// One read per wake-up keeps connections fair. A closed peer sends nothing more, so
	// its remaining input is finite: read all of it, then see the end.
	for range 64 {
		n, err := l.receive(s, c)
		switch {
		case err != nil:
			c.Close(err)
			return
		case c.closing || c.ended || c.paused || c.waiting || !ending || n == 0:
			return
		}
	}
}

// receive reads once. n is 0 when there was nothing to read.
func (l *epollLoop) receive(s *epollSocket, c *Conn) (int, error) {
	own := len(c.in) > copyLimit
	buf, start := l.rbuf, 0
	if c.guard != nil {
		own = false
	} else if own {
		c.usedIn = aLong
		room := minRoom // the announced length may never arrive
		if c.exempt {
			room = l.cfg.ReadBuffer
		}
		c.in = grow(c.in, room)
		buf, start = c.in[:cap(c.in)], len(c.in)
	} else {
		start = copy(buf, c.in)
	}
	n, errno := recv(s.fd, buf[start:])
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return 0, nil
	case errno != 0:
		return 0, fmt.Errorf("%w: %w", ErrPeerClosed, errno)
	case n == 0:
		c.endOfInput()
		return 0, nil
	}
	l.stats.Reads++
	l.stats.BytesIn += uint64(n)
	if c.linger {
		c.discard(n)
		return n, nil
	}
	if c.guard != nil {
		l.unseal(c, buf[:n])
		s.writeEarly(c)
		return n, nil
	}
	rest := l.deliver(c, buf[:start+n])
	switch {
	case c.guard != nil: // from now on; undelivered input is in c.in
	case c.closing || c.linger:
		c.in = nil
	case len(rest) == 0:
		c.in = c.in[:0] // kept: the next frame may be as long; see trimInput
	case own:
		c.in = c.in[:copy(c.in[:cap(c.in)], rest)]
	default:
		c.in, c.usedIn = append(c.in[:0], rest...), max(c.usedIn, aShort)
	}
	if cap(c.in) != int(c.countedIn) && !c.exempt {
		l.countIn(c)
	}
	s.writeEarly(c)
	return n, nil
}

func (s *epollSocket) ahead() { prefetch.Line(unsafe.Pointer(s)) }

func (s *epollSocket) writeEarly(c *Conn) {
	if c.Buffered() >= earlyOut && !c.closing {
		s.write(c)
	}
}

// grow makes room for at least n more bytes, doubling.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	g := make([]byte, len(b), max(2*cap(b), len(b)+n))
	copy(g, b)
	return g
}

func (s *epollSocket) write(c *Conn) {
	if s.mask&unix.EPOLLOUT != 0 {
		return // the socket is full, EPOLLOUT follows
	}
	c.seal()
	for c.off < len(c.out) {
		b, long := c.out[c.off:], c.long()
		if long {
			if s.l.turns.outLeft <= 0 {
				s.l.writeLater(c)
				return
			}
			b = b[:min(len(b), max(s.l.turns.outLeft, longOut))]
		}
		n, errno := send(s.fd, b)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			s.block(c)
			return
		case errno != 0:
			c.Close(fmt.Errorf("%w: %w", ErrPeerClosed, errno))
			return
		}
		if long {
			s.l.turns.outLeft -= n
		}
		c.off += n
		c.wrote(n)
	}
	c.drained()
}

// block waits for room in the socket.
func (s *epollSocket) block(c *Conn) {
	if c.off > len(c.out)/2 {
		c.out = c.out[:copy(c.out, c.out[c.off:])]
		c.off = 0
	}
	if c.blockedAt == 0 {
		c.blockedAt = s.l.clock.mono
	}
	s.setMask(c, s.mask|unix.EPOLLOUT)
	s.l.countOut(c)
}

func (s *epollSocket) unblock(c *Conn) {
	s.setMask(c, s.mask&^unix.EPOLLOUT)
	if !c.dirty {
		c.dirty = true
		s.l.dirty = append(s.l.dirty, c)
	}
}

func (s *epollSocket) setReading(c *Conn, on bool) {
	if on {
		s.setMask(c, s.mask|readMask)
	} else {
		// Without EPOLLRDHUP too: level-triggered, it would spin while we wait for
		// room. A dead peer is still seen by EPOLLHUP or EPOLLERR.
		s.setMask(c, s.mask&^readMask)
	}
}

func (s *epollSocket) setMask(c *Conn, mask uint32) {
	if mask == s.mask || c.closed {
		return
	}
	if err := s.l.ctl(unix.EPOLL_CTL_MOD, s, mask); err != nil {
		c.Close(err)
	}
}

// shutdownWrite of a connection whose peer did the same lets epoll report each change once:
// it is ready, with EPOLLHUP, all the time.
func (s *epollSocket) shutdownWrite(c *Conn) {
	if c.ended {
		s.setMask(c, unix.EPOLLET)
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_WR)
}

func (s *epollSocket) unsent() int {
	n, err := unix.IoctlGetInt(s.fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

func (s *epollSocket) dead() bool { return socketGone(s.fd) }

func (s *epollSocket) setSendBuffer(bytes int) {
	boundSending(s.fd, bytes)
}

func (s *epollSocket) release(_ *Conn, reset bool) {
	s.l.socks[s.fd] = nil
	if reset {
		_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(s.fd) // removes it from the epoll set
}

// noSocket stands in while a dialled name is being resolved.
type noSocket struct{}

func (noSocket) write(*Conn)            {}
func (noSocket) setReading(*Conn, bool) {}
func (noSocket) ahead()                 {}
func (noSocket) setPrompt(*Conn, bool)  {}
func (noSocket) shutdownWrite(*Conn)    {}
func (noSocket) unsent() int            { return 0 }
func (noSocket) dead() bool             { return false }
func (noSocket) setSendBuffer(int)      {}
func (noSocket) release(*Conn, bool)    {}
