package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Grant is what a client may do.
type Grant struct {
	Client  string           // its name, for bounds and logs
	Topics  []topics.Pattern // what it may read
	Publish []topics.Pattern // and publish to, see CheckPublish
	Relay   bool             // it is another gateway of the deployment
	// Identity is of the side that granted it, for Server.Review. It is comparable; two grants of a client with the same one,
	// if it is not nil, allow the same.
	Identity any
}

// StatusTopic is the topic that a client has to be allowed to read for the command status. Nothing is published there.
const StatusTopic = "grid.status"

// allows returns why a client may not read all topics of a pattern, or nil.
func (g *Grant) allows(p topics.Pattern) error {
	if g == nil {
		return fmt.Errorf("%w: the client has not logged in, allowed: the command login", errNotPermitted)
	}
	for _, allowed := range g.Topics {
		if allowed.Covers(p) {
			return nil
		}
	}
	return fmt.Errorf("%w: topics are %.80q, allowed: within %s", errNotPermitted, p, g.Topics)
}

// login handles the command. A token that is refused ends the connection: the next try costs a new one.
func (c *conn) login(token string) error {
	s := c.server
	switch {
	case c.grant != nil:
		return errors.New("the client has logged in already, allowed: once for each connection")
	case s.cfg.Login == nil:
		return fmt.Errorf("%w: this listener knows no tokens, allowed: a certificate", errNotPermitted)
	}
	g, err := s.cfg.Login(token, c.tc.Certificate())
	if errors.Is(err, ErrUndecided) && c.ask(token, c.loggedIn) {
		return nil
	}
	if errors.Is(err, ErrUndecided) {
		err = errBusy
	}
	return c.finishLogin(g, err)
}

// loggedIn is called when the login was decided about elsewhere.
func (c *conn) loggedIn(g *Grant, err error) {
	if err := c.finishLogin(g, err); err != nil {
		c.fail(0, err)
	}
}

func (c *conn) finishLogin(g *Grant, err error) error {
	if err == nil {
		err = c.take(g)
	}
	if err != nil {
		c.server.stats.Refused++
		return fmt.Errorf("%w: %w", errLogin, err)
	}
	r := reply{Op: "welcome", Client: g.Client}
	for _, p := range g.Topics {
		r.Topics = append(r.Topics, p.String())
	}
	for _, p := range g.Publish {
		r.Publish = append(r.Publish, p.String())
	}
	c.reply(&r)
	return nil
}

var errLogin = fmt.Errorf("%w: login", errNotPermitted)

// Stats count since the start; Unknown is a gauge.
type Stats struct {
	Hub       fanout.Stats
	Transport transport.Stats
	Unknown   int    // connections without a grant
	Refused   uint64 // clients, by Admit, Login or MaxOfOne
	Late      uint64 // connections without a request or login in time
	Crowded   uint64 // connections by MaxUnknown
	Pages     uint64 // answered
	Publish   PublishStats
}

// Stats returns counters, false: the server ended.
func (s *Server) Stats() (st Stats, ok bool) {
	ok = s.Do(func(h *fanout.Hub) {
		st = s.stats
		st.Hub, st.Transport = h.Stats(), s.loop.Stats()
		for _, n := range s.unknown {
			st.Unknown += n
		}
	})
	return st, ok
}

// Page is a file that is served beside the streams.
type Page struct {
	Header http.Header
	Body   []byte
}

// page answers a GET or HEAD and closes.
func (c *conn) page(r *http.Request, p *Page) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.refuse(refused(http.StatusMethodNotAllowed, "method is %.20s, allowed: GET, HEAD", r.Method))
		return
	}
	c.server.stats.Pages++
	b := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n", len(p.Body))
	for name, values := range p.Header {
		for _, v := range values {
			b = fmt.Appendf(b, "%s: %s\r\n", name, v)
		}
	}
	b = append(b, "\r\n"...)
	if r.Method == http.MethodGet {
		b = append(b, p.Body...)
	}
	c.tc.SetOut(append(c.tc.Out(), b...))
	c.tc.CloseAfterFlush(errPage)
}

func refused(status int, format string, args ...any) *ws.Refusal {
	return &ws.Refusal{Status: status, Reason: fmt.Sprintf(format, args...)}
}

var errPage = errors.New("a page was sent")
