package transport

import (
	"errors"
	"net"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// errEnded is for a connection that a loop does not take any more.
var errEnded = errors.New("adopt a connection: the loop has ended")

// Adopt implements Loop.
func (l *netLoop) Adopt(nc net.Conn, session *tlsrecord.Session, received []byte, tag any) error {
	ok := l.Post(func() {
		s := &netSocket{l: l, secured: secured{nc: nc, session: session}}
		s.prompt.Store(true)
		c := &Conn{Tag: tag, sock: s, dialled: true, prompt: true}
		s.conn = c
		l.secure(c, &s.secured)
		l.add(c)
		l.serve(s)
		l.adopted(c, nc.RemoteAddr(), received)
		if !c.closing && !c.paused && !c.waiting {
			s.startRead()
		}
	})
	if !ok {
		_ = nc.Close()
		return errEnded
	}
	return nil
}
