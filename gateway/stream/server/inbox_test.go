package server

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// answer reads a message into v.
func (p *peer) answer(v any) {
	p.t.Helper()
	_, b, err := p.read()
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", b, err)
	}
}

// A request has the inbox of who asks; who got it replies, without a right to publish, and no other client reads the reply.
func TestRequestAndReply(t *testing.T) {
	s, addr := start(t, transport.KindAuto, publishers(nil))
	asks, answers, curious := publisher(t, addr, JSON, "asks", "user.prices.>"), publisher(t, addr, JSON, "answers", ""), publisher(t, addr, JSON, "curious", "user.prices.>")
	for _, p := range []*peer{answers, curious} {
		p.send(`{"op":"subscribe","id":1,"topics":">"}`)
		p.want("subscribed")
	}
	answers.send(`{"op":"inbox","id":2}`)
	answers.want(`"code":"not-permitted","error":"not permitted: the client may not publish`)
	asks.send(`{"op":"inbox","id":9}`)
	var inbox struct{ Op, Topic string }
	if asks.answer(&inbox); inbox.Op != "inbox" || len(inbox.Topic) != len("inbox.")+2*26+1 || !strings.HasPrefix(inbox.Topic, "inbox."+s.ID()+".") {
		t.Fatalf("inbox is %+v", inbox)
	}
	asks.send(`{"op":"publish","topic":"user.prices.ACME","reply":"` + inbox.Topic + `","data":"?"}`)
	answers.want(`{"op":"message","id":1,"topic":"user.prices.ACME","from":"asks","reply":"` + inbox.Topic + `","data":"?"}`)
	answers.send(`{"op":"publish","id":3,"topic":"` + inbox.Topic + `","data":125.20}`)
	answers.want(`{"op":"published","id":3}`)
	asks.want(`{"op":"message","id":9,"topic":"` + inbox.Topic + `","from":"answers","data":125.20}`)

	curious.want(`"reply"`)
	for text, want := range map[string]string{
		`{"op":"subscribe","id":2,"topics":"inbox.>"}`:                                           `"code":"not-permitted"`,
		`{"op":"subscribe","id":2,"topics":"` + inbox.Topic + `"}`:                               `"code":"not-permitted"`,
		`{"op":"publish","id":2,"topic":"user.prices.A","data":1,"reply":"` + inbox.Topic + `"}`: `allowed: a topic that the command inbox of this connection`,
		`{"op":"publish","id":2,"topic":"inbox.` + s.ID() + `.A","data":1}`:                      `"code":"gone"`,
		`{"op":"publish","id":2,"topic":"inbox.OTHER.A","data":1}`:                               `"code":"gone"`,
		`{"op":"subscribe","id":2,"topics":"user.>","gateway":"G"}`:                              `"code":"not-permitted","error":"not permitted: gateway is \"G\", allowed: none: the client is no gateway"`,
	} {
		curious.send(text)
		curious.want(want) // and nothing of the reply before it
	}
	asks.send(`{"op":"unsubscribe","id":9}`)
	asks.want("unsubscribed")
	answers.send(`{"op":"publish","id":4,"topic":"` + inbox.Topic + `","data":1}`)
	answers.want(`"code":"gone","error":"the inbox is not there`)
	for i := range 3 {
		asks.send(fmt.Sprintf(`{"op":"inbox","id":%d}`, i))
		asks.want("inbox")
	}
	_ = asks.c.CloseNow()
	curious.until(s, func() bool { return len(s.inboxes) == 0 })
}

// until waits for something on the loop of a server.
func (p *peer) until(s *Server, done func() bool) {
	p.t.Helper()
	for range 1000 {
		ok := false
		if s.Do(func(*fanout.Hub) { ok = done() }); ok {
			return
		}
		p.send(`{"op":"subscribe","id":99,"topics":"orders.none"}`)
		p.want("subscribed")
		p.send(`{"op":"unsubscribe","id":99}`)
		p.want("unsubscribed")
	}
	p.t.Fatal("it was waited for in vain")
}

// Another gateway gets what was published here, once, and replies to its inboxes; what it sends comes to clients here, and
// not back.
func TestRelay(t *testing.T) {
	s, addr := start(t, transport.KindAuto, func(c *Config) {
		publishers(nil)(c)
		admit := c.Admit
		c.Admit = func(r *http.Request, cert *x509.Certificate) (*Grant, error) {
			g, err := admit(r, cert)
			if err == nil && g.Client == "gateway" {
				g.Relay, g.Topics = true, []topics.Pattern{mustPattern(t, "user.>")}
			}
			return g, err
		}
	})
	desk, other := publisher(t, addr, JSON, "desk", "user.>"), publisher(t, addr, JSON, "gateway", "")
	for _, a := range []struct{ text, want string }{ // in this order: a connection that is subscribed keeps its gateway
		{`{"op":"subscribe","id":1,"topics":"user.a","gateway":"G"}`, `allowed: user.>`},
		{`{"op":"subscribe","id":1,"topics":"user.>","gateway":"` + s.ID() + `"}`, `"code":"self"`},
		{`{"op":"subscribe","id":1,"topics":"user.>","gateway":"A.B"}`, `allowed: a token of a topic`},
		{`{"op":"subscribe","id":1,"topics":"user.>","gateway":"G"}`, `subscribed`},
		{`{"op":"subscribe","id":2,"topics":"user.>","gateway":"H"}`, `allowed: G, as before on this connection`},
	} {
		other.send(a.text)
		other.want(a.want)
	}
	desk.send(`{"op":"subscribe","id":1,"topics":"user.>"}`)
	desk.want("subscribed")
	if err, ok := s.Relay(binaryPublish(0, "user.a", 0, "", "1")); err != nil || !ok {
		t.Fatal(err, ok)
	}
	desk.want(`{"op":"message","id":1,"topic":"user.a","from":"","data":1}`)
	desk.send(`{"op":"publish","id":2,"topic":"inbox.G.SECRET","data":2}`)
	desk.want("published")
	other.want(`"topic":"inbox.G.SECRET","from":"desk","data":2`) // the message that it sent itself is not before it
	desk.send(`{"op":"publish","topic":"user.b","data":3}`)
	desk.want(`"data":3`)
	other.want(`"topic":"user.b","from":"desk","data":3`)
	s.RelayLost()
	desk.want(`{"op":"gap","id":1,"user":{}}`)
	for _, b := range [][]byte{{1}, binaryPublish(0, "orders.a", 0, "", "1"), binaryPublish(0, "user.*", 0, "", "1")} {
		if err, _ := s.Relay(b); err == nil {
			t.Errorf("%q of another gateway is taken", b)
		}
	}
	_ = other.c.CloseNow()
	desk.until(s, func() bool { return len(s.relays) == 0 })
}

func mustPattern(t *testing.T, text string) topics.Pattern {
	t.Helper()
	p, err := topics.ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
