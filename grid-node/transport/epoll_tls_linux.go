package transport

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Connections with TLS begin on goroutines of the net package, where crypto/tls makes
// their handshake. Then the loop gets the descriptor.

// secured takes over an accepted connection; from any goroutine.
func (l *epollLoop) secured(door int, s *secured) bool {
	remote := s.nc.RemoteAddr()
	fd, err := takeSocket(s.nc)
	if err != nil {
		return l.Post(func() { l.stats.Refused++ })
	}
	ok := l.Post(func() {
		if l.full() {
			_ = unix.Close(fd)
			return
		}
		l.stats.Accepted++
		tuneSocket(fd)
		c := &Conn{door: uint16(door)}
		l.add(c)
		l.secure(c, s)
		if !l.attach(c, fd, readMask) {
			return
		}
		l.begin(c, remote)
		if len(s.early) > 0 && c.Open() {
			c.in = append(c.in, s.early...)
			l.deliverAgain(c)
		}
	})
	if !ok {
		_ = unix.Close(fd)
	}
	return ok
}

// dialSecured connects, with the handshake; on a goroutine of its own.
func (l *epollLoop) dialSecured(c *Conn, addr string) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.DialTimeout)
	defer cancel()
	fd := -1
	s, err := l.cfg.dial(ctx, addr)
	if err == nil {
		fd, err = takeSocket(s.nc)
	}
	ok := l.Post(func() {
		switch {
		case c.closing && fd >= 0:
			_ = unix.Close(fd)
		case c.closing:
		case err != nil:
			c.Close(fmt.Errorf("connect to %s: %w", c.remote, err))
		default:
			tuneSocket(fd)
			l.secure(c, s)
			if l.attach(c, fd, readMask) {
				l.begin(c, s.nc.RemoteAddr())
			}
		}
	})
	if !ok && fd >= 0 {
		_ = unix.Close(fd)
	}
}

// takeSocket duplicates the descriptor of a connection of the net package, which is
// closed.
func takeSocket(nc net.Conn) (fd int, err error) {
	defer nc.Close() //nolint:errcheck // the socket stays open by the other descriptor
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("take a socket from the net package: the connection is a %T, allowed: a *net.TCPConn", nc)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	if ctl := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); ctl != nil {
		err = ctl
	}
	if err != nil {
		return -1, fmt.Errorf("take a socket from the net package: %w", err)
	}
	return fd, nil
}
