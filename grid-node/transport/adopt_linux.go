package transport

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// Adopt implements Loop.
func (l *epollLoop) Adopt(nc net.Conn, session *tlsrecord.Session, received []byte, tag any) error {
	remote := nc.RemoteAddr()
	fd, err := takeSocket(nc)
	if err != nil {
		return err
	}
	ok := l.Post(func() {
		tuneSocket(fd)
		c := &Conn{Tag: tag, dialled: true, prompt: true}
		l.add(c)
		l.secure(c, &secured{session: session})
		if l.attach(c, fd, readMask) {
			l.adopted(c, remote, received)
		}
	})
	if !ok {
		_ = unix.Close(fd)
		return errEnded
	}
	return nil
}
