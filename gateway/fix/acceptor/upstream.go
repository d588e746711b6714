package acceptor

import (
	"net"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Upstream is a connection of this process to a server, on the loop of the sessions: what a
// session asks of it is sent, and what it answers is reported, in the wake-up in which it came,
// without another goroutine. Its methods run on the loop.
type Upstream interface {
	// Opened is called first. The connection may be written from then on.
	Opened(now fix.Now, c *transport.Conn)
	// Frames is transport.Handler.OnFrames.
	Frames(now fix.Now, b []byte) (int, error)
	// Closed is called once, without Opened if the connection could not be served.
	Closed(now fix.Now, why error)
}

// Adopt serves a connection that was made elsewhere, as transport.Loop.Adopt does. The loop's
// limits for counterparties do not hold for it.
func (s *Server) Adopt(nc net.Conn, session *tlsrecord.Session, received []byte, u Upstream) error {
	return s.loop.Adopt(nc, session, received, u)
}
