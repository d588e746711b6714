package server

import (
	"errors"
	"net/http"
	"slices"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// conn is a connection; client is nil before the handshake.
type conn struct {
	server   *Server
	tc       *transport.Conn
	client   *fanout.Client
	topics   []topics.Pattern // that it may read
	decoder  ws.Decoder
	since    int64 // Mono, of the connection or of what it sent last
	pinged   int64
	encoding int
	at       int // in Server.clients
	ended    bool
	closing  bool // a close frame was sent
	lent     bool // in Server.lent
}

// commandCost is a command's share of the loop's work, in bytes of answers: they are parsed, and each takes microseconds.
const commandCost = 8 << 10

var errYield = errors.New("other connections have their turn")

// greet answers the opening request.
func (c *conn) greet(b []byte) (int, error) {
	s := c.server
	h, n, err := ws.ParseHandshake(b, &s.terms)
	if refusal, ok := errors.AsType[*ws.Refusal](err); ok {
		c.refuse(refusal)
		return len(b), nil
	}
	if h == nil {
		return 0, nil
	}
	allowed, err := s.cfg.Admit(h.Request, c.tc.Certificate())
	if err != nil {
		c.refuse(&ws.Refusal{Status: http.StatusForbidden, Reason: err.Error()})
		return len(b), nil
	}
	c.topics, c.encoding = allowed, slices.Index(encodings, h.Subprotocol)
	c.client = s.hub.Open(c, c.encoding)
	c.at = len(s.clients)
	s.clients = append(s.clients, c)
	c.since = s.loop.Clock().Mono()
	c.tc.SetLimits(64<<10, 1<<20) // a client that does not read its answers sends no more commands
	c.write(h.AppendAccept(c.buffer()))
	more, err := c.frames(b[n:])
	return n + more, err
}

// refuse answers over HTTP and closes.
func (c *conn) refuse(r *ws.Refusal) {
	c.write(r.AppendRefusal(c.buffer()))
	c.tc.CloseAfterFlush(r)
}

// frames decodes what a client sent.
func (c *conn) frames(b []byte) (int, error) {
	n, err := c.decoder.Decode(b, c)
	switch failure, ok := errors.AsType[*ws.Error](err); {
	case errors.Is(err, errYield):
		if n < len(b) {
			c.tc.Wait()
		}
	case ok:
		c.end(failure.Code, failure.Reason)
		return len(b), nil
	}
	if n > 0 {
		c.since, c.pinged = c.server.loop.Clock().Mono(), 0
	}
	return n, nil
}

// OnMessage implements ws.Handler. It yields behind each command.
func (c *conn) OnMessage(_ ws.Opcode, payload []byte) error {
	if c.closing {
		return nil
	}
	c.tc.Spend(commandCost)
	c.command(payload)
	return errYield
}

// OnPing implements ws.Handler. A client that does not read gets no more pongs.
func (c *conn) OnPing(payload []byte) error {
	if !c.closing && c.tc.Buffered() < 4<<10 {
		c.write(ws.AppendFrame(c.buffer(), ws.Pong, payload))
	}
	return nil
}

// OnPong implements ws.Handler.
func (c *conn) OnPong([]byte) error { return nil }

// OnClose implements ws.Handler.
func (c *conn) OnClose(code int, _ []byte) error {
	if code == ws.StatusNone || code >= 3000 {
		code = ws.StatusNormal
	}
	c.end(code, "")
	return nil
}

// end closes the connection with a close frame.
func (c *conn) end(code int, reason string) {
	if c.closing || c.ended {
		return
	}
	c.client.Close()
	c.write(ws.AppendClose(c.buffer(), code, reason))
	c.closing = true
	c.tc.CloseAfterFlush(&ws.Error{Code: code, Reason: reason})
}

// Close implements fanout.Outlet: the client was too slow. What it has not taken goes with the connection if it takes none
// of it within the transport's patience.
func (c *conn) Close(reason error) { c.end(ws.StatusPolicy, reason.Error()) }

// keepAlive pings a client that is quiet, and closes one that does not answer.
func (c *conn) keepAlive(now int64) {
	switch quiet, ping := now-c.since, int64(c.server.cfg.Ping); {
	case quiet > 3*ping:
		c.end(ws.StatusGoingAway, "nothing was heard of the client")
	case quiet > ping && now-c.pinged > ping && !c.closing && c.tc.Buffered() == 0:
		c.pinged = now
		c.write(ws.AppendFrame(c.buffer(), ws.Ping, nil))
	}
}

// buffer returns the connection's output to append to, for write.
func (c *conn) buffer() []byte {
	b, s := c.tc.Out(), c.server
	if cap(b) > 0 {
		return b
	}
	if n := len(s.buffers); n > 0 {
		b = s.buffers[n-1]
		s.buffers[n-1] = nil
		s.buffers, s.pooled = s.buffers[:n-1], s.pooled-cap(b)
		return b
	}
	return make([]byte, 0, lend)
}

func (c *conn) write(b []byte) {
	c.tc.SetOut(b)
	if !c.lent {
		c.lent = true
		c.server.lent = append(c.server.lent, c)
	}
}

// Buffered implements fanout.Outlet.
func (c *conn) Buffered() int { return c.tc.Buffered() }

// Message implements fanout.Outlet.
func (c *conn) Message(frame []byte, slot int, number uint32) {
	b := c.buffer()
	at := len(b) + slot
	b = append(b, frame...)
	setNumber(b[at:], c.encoding, number)
	c.write(b)
}
