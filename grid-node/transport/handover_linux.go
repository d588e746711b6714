package transport

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

func (s *epollSocket) accepts(to Loop) error {
	if _, ok := to.(*epollLoop); !ok {
		return wrongKind(to)
	}
	return nil
}

// handOver removes the descriptor from this loop's set and passes it on.
func (s *epollSocket) handOver(c *Conn) {
	s.l.socks[s.fd] = nil
	fd, to := s.fd, c.moving.to.(*epollLoop)
	if err := unix.EpollCtl(s.ep, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		_ = unix.Close(fd)
		return
	}
	tag, rest, guard := c.moving.tag, c.moving.rest, c.guard
	remote, _ := netip.ParseAddrPort(c.remote)
	ok := to.Post(func() {
		if to.full() {
			_ = unix.Close(fd)
			return
		}
		a := &Conn{Tag: tag, prompt: true, peer: c.peer, guard: guard}
		to.add(a)
		if to.attach(a, fd, readMask) {
			to.adopted(a, net.TCPAddrFromAddrPort(remote), rest)
		}
	})
	if !ok {
		_ = unix.Close(fd)
	}
}

func (noSocket) accepts(Loop) error { return ErrClosed }
func (noSocket) handOver(*Conn)     {}
