package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// conn is a connection; client is nil before the handshake. There are thousands, so it is small.
type conn struct {
	server   *Server
	tc       *transport.Conn
	client   *fanout.Client
	grant    *Grant // nil: it has not logged in
	decoder  ws.Decoder
	since    int64 // Mono, of the connection or of what it sent last
	pinged   int64
	decided  *decision
	events   *events  // nil: a WebSocket
	sending  *sending // nil: it has published nothing long, has no inbox and is no gateway
	at       int32    // in Server.clients
	encoding uint8
	stage    stage
	ended    bool
	closing  bool // a close frame was sent
	lent     bool // in Server.lent
	judging  bool // Config.Ask has not decided yet
}

// sending is what a connection has of its own to publish: most have nothing.
type sending struct {
	large   int               // of Server.large
	inboxes map[uint32]string // topics, by subscription
	gateway string            // the ID of the one that it is
}

// sends returns what a connection has of its own to publish.
func (c *conn) sends() *sending {
	if c.sending == nil {
		c.sending = &sending{}
	}
	return c.sending
}

// stage of a connection.
type stage uint8

const (
	turned  stage = iota // it was one too many
	greeted              // it has to send its request
	asked                // and to log in
	granted
	gone
)

// commandCost is a command's share of the loop's work, in bytes of answers: they are parsed, and each takes microseconds.
const commandCost = 8 << 10

var (
	errYield   = errors.New("other connections have their turn")
	errCrowded = errors.New("too many connections of this address have not logged in")
)

// settle takes a connection to a stage from which it is not unknown any more, or to the next before.
func (c *conn) settle(to stage) {
	s := c.server
	if (c.stage == greeted || c.stage == asked) && to > asked {
		from := webguard.Client(c.tc.Remote())
		if s.unknown[from]--; s.unknown[from] == 0 {
			delete(s.unknown, from)
		}
	}
	if c.stage == granted {
		n := s.named[c.grant.Client]
		if n.conns--; n.conns == 0 {
			delete(s.named, c.grant.Client)
		}
	}
	c.stage = to
}

// greet answers the opening request.
func (c *conn) greet(b []byte) (int, error) {
	s := c.server
	if c.judging {
		c.tc.Wait()
		return 0, nil
	}
	r, n, err := ws.ParseRequest(b)
	switch {
	case err != nil:
		c.refuse(err)
		return len(b), nil
	case r == nil:
		return 0, nil
	case s.cfg.Pages[r.URL.Path] != nil:
		c.page(r, s.cfg.Pages[r.URL.Path])
		return len(b), nil
	}
	var h *ws.Handshake
	events := s.isEvents(r)
	if events {
		err = c.eventsRequest(r)
	} else {
		h, err = s.terms.Accept(r)
	}
	if err != nil {
		c.refuse(err)
		return len(b), nil
	}
	g, err := c.admit(r)
	if c.judging {
		return 0, nil
	}
	if err == nil && g == nil && s.cfg.Login == nil && !events {
		err = errors.New("the client is not known")
	}
	if err == nil && g != nil {
		err = c.take(g)
	}
	if err != nil {
		s.stats.Refused++
		c.refuse(&ws.Refusal{Status: http.StatusForbidden, Reason: err.Error()})
		return len(b), nil
	}
	if events {
		if err := c.subscribeEvents(r, g != nil); err != nil {
			c.refuse(err)
		}
		return len(b), nil
	}
	if g == nil {
		c.settle(asked)
		s.await(c)
	}
	c.register(slices.Index(encodings, h.Subprotocol))
	if g != nil && g.Relay {
		c.write(h.AppendAccept(c.buffer(), GatewayHeader+": "+s.id))
	} else {
		c.write(h.AppendAccept(c.buffer()))
	}
	more, err := c.frames(b[n:])
	return n + more, err
}

// register makes the connection a client of the hub.
func (c *conn) register(encoding int) {
	s := c.server
	c.encoding = uint8(encoding)
	c.client = s.hub.Open(c, encoding)
	c.at = int32(len(s.clients))
	s.clients = append(s.clients, c)
	c.since = s.loop.Clock().Mono()
	// A client that does not read its answers sends no more commands. An empty connection takes any message.
	c.tc.SetLimits(64<<10, 1<<20+s.cfg.Publishing.frame(s.cfg.MaxCommand))
}

// take lets a client in.
func (c *conn) take(g *Grant) error {
	s := c.server
	n := s.named[g.Client]
	if n == nil {
		n = &named{grant: g}
		s.named[g.Client] = n
	}
	if n.conns >= s.cfg.MaxOfOne {
		return fmt.Errorf("%w: connections of %.80q are %d, allowed: at most %d", fanout.ErrLimit, g.Client, n.conns+1, s.cfg.MaxOfOne)
	}
	c.settle(granted)
	if n.conns++; g.Identity == nil || g.Identity != n.grant.Identity {
		n.grant = g
	}
	c.grant = n.grant // connections of a client share it
	if c.publishes() {
		c.decoder.Limits = &s.limits[1]
		c.tc.SetFrameTime(s.cfg.WriteStall)
	}
	return nil
}

// named is the connections of one client.
type named struct {
	conns int
	grant *Grant // of one of them
}

// late ends a connection that did not do in time what it had to.
func (c *conn) late() {
	s := c.server
	s.stats.Late++
	if c.stage == greeted {
		c.refuse(&ws.Refusal{Status: http.StatusRequestTimeout, Reason: fmt.Sprintf("no request within %s", s.cfg.Handshake)})
		return
	}
	c.end(ws.StatusPolicy, fmt.Sprintf("no login within %s", s.cfg.Handshake))
}

// refuse answers over HTTP and closes.
func (c *conn) refuse(err error) {
	r, ok := errors.AsType[*ws.Refusal](err)
	if !ok {
		r = &ws.Refusal{Status: http.StatusBadRequest, Reason: err.Error()}
	}
	c.write(r.AppendRefusal(c.buffer()))
	c.tc.CloseAfterFlush(r)
}

// frames decodes what a client sent.
func (c *conn) frames(b []byte) (int, error) { return c.decode(b, c) }

// decode gives the frames of a client to a handler.
func (c *conn) decode(b []byte, to ws.Handler) (int, error) {
	if c.events != nil {
		return len(b), nil // nothing is expected of a reader of events
	}
	if c.judging {
		c.tc.Wait()
		return 0, nil
	}
	n, err := c.decoder.Decode(b, to)
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
	if c.publishes() && !c.closing {
		c.receives(b[n:])
	}
	return n, nil
}

// OnMessage implements ws.Handler. It yields behind each command.
func (c *conn) OnMessage(op ws.Opcode, payload []byte) error {
	if c.closing {
		return nil
	}
	c.tc.Spend(commandCost)
	switch {
	case c.tooLong(payload):
	case op == ws.Binary && len(payload) > 0 && payload[0] == binUser:
		c.publishBinary(payload)
	default:
		c.command(payload)
	}
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
	if c.events != nil {
		c.event("end", "", reply{Code: "closed", Error: reason})
	} else {
		c.write(ws.AppendClose(c.buffer(), code, reason))
	}
	c.closing = true
	c.tc.CloseAfterFlush(&ws.Error{Code: code, Reason: reason})
}

// Close implements fanout.Outlet: the client was too slow. What it has not taken goes with the connection if it takes none
// of it within the transport's patience.
func (c *conn) Close(reason error) { c.end(ws.StatusPolicy, reason.Error()) }

// keepAlive pings a client that is quiet, and closes one that does not answer.
func (c *conn) keepAlive(now int64) {
	if c.events != nil {
		if now-c.since > int64(c.server.cfg.Ping) && !c.closing && c.tc.Buffered() == 0 {
			c.since = now
			c.events.alive(c)
		}
		return
	}
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
		s.spare = min(s.spare, n-1)
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
	if c.events != nil {
		c.events.message(c, frame)
		return
	}
	b := c.buffer()
	at := len(b) + slot
	b = append(b, frame...)
	setNumber(b[at:], int(c.encoding), number)
	c.write(b)
}
