package server

import (
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Connections of a client share a grant of the same identity, and no other: each has the rights that it was given.
func TestGrantsOfOneIdentityAreShared(t *testing.T) {
	s, addr := start(t, transport.KindAuto, func(c *Config) {
		c.Admit = func(r *http.Request, _ *x509.Certificate) (*Grant, error) {
			p, err := topics.ParsePattern(r.URL.Query().Get("topics"))
			g := &Grant{Client: "desk", Topics: []topics.Pattern{p}}
			if id := r.URL.Query().Get("id"); id != "" {
				g.Identity = id
			}
			return g, err
		}
	})
	var shared *Grant
	for i, c := range []struct {
		id, topics string
		same       bool // as the first
	}{{"1", "orders.A.>", true}, {"1", "orders.A.>", true}, {"2", "orders.B.>", false}, {"", "orders.C.>", false}, {"", "orders.D.>", false}, {"3", "orders.E.>", false}} {
		ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/stream?topics="+c.topics+"&id="+c.id, &websocket.DialOptions{Subprotocols: []string{JSON}}) //nolint:bodyclose // the connection has it
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow() //nolint:errcheck // it may be closed
		s.Do(func(*fanout.Hub) {
			g := s.clients[len(s.clients)-1].grant
			if shared == nil {
				shared = g
			}
			if (g == shared) != c.same || len(g.Topics) != 1 || g.Topics[0].String() != c.topics {
				t.Errorf("connection %d may read %s, want %s", i, g.Topics, c.topics)
			}
		})
	}
	s.Do(func(*fanout.Hub) {
		if n := s.named["desk"]; n == nil || n.conns != 6 {
			t.Errorf("connections of the client: %+v, want 6", n)
		}
	})
}
