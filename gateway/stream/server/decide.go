package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
)

// ErrUndecided of Admit and Login: Config.Ask decides.
var ErrUndecided = errors.New("the token has to be judged elsewhere")

var errBusy = errors.New("too many tokens are being judged: try again")

// decision is what Config.Ask has decided about an opening request.
type decision struct {
	grant *Grant
	err   error
}

// ask has a token judged, and calls then on the loop. What the client sends meanwhile waits. The time for the login goes on.
func (c *conn) ask(token string, then func(*Grant, error)) bool {
	s := c.server
	if s.cfg.Ask == nil {
		return false
	}
	c.judging = true
	asked := s.cfg.Ask(token, func(g *Grant, err error) {
		s.Post(func(*fanout.Hub) {
			if c.judging = false; !c.ended && !c.closing && c.stage != gone {
				then(g, err)
			}
		})
	})
	if !asked {
		c.judging = false
	}
	return asked
}

// admit is Config.Admit, or what was decided elsewhere: then the request is read a second time. While that is awaited,
// c.judging is set.
func (c *conn) admit(r *http.Request) (*Grant, error) {
	if d := c.decided; d != nil {
		c.decided = nil
		return d.grant, d.err
	}
	g, err := c.server.cfg.Admit(r, c.tc.Certificate())
	if !errors.Is(err, ErrUndecided) {
		return g, err
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !c.ask(token, func(g *Grant, err error) { c.decided = &decision{g, err} }) {
		return nil, errBusy
	}
	c.tc.Wait()
	return nil, nil
}
