package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// start serves on loopback until the test ends. Header X-Topics, or topics of the query, is what a client may read.
func start(t *testing.T, kind transport.Kind, change func(*Config)) (*Server, string) {
	t.Helper()
	cfg := Config{
		Hub:     fanout.Config{Lineage: 3, Partitions: 2, RingBytes: 1 << 20},
		Streams: map[string][]topics.Field{"orders": {{Name: "account", Type: topics.Text}, {Name: "price", Type: topics.Decimal}}},
		Kind:    kind,
		Admit: func(r *http.Request, _ *x509.Certificate) (*Grant, error) {
			text := cmp.Or(r.Header.Get("X-Topics"), r.URL.Query().Get("topics"))
			if text == "" {
				return nil, errors.New("no token, allowed: one of the grid")
			}
			p, err := topics.ParsePattern(text)
			return &Grant{Client: "test", Topics: []topics.Pattern{p}}, err
		},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, serve(t, s)
}

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run() }()
	t.Cleanup(func() {
		s.Stop("the test ends")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return addr.String()
}

// peer is a client of github.com/coder/websocket.
type peer struct {
	t *testing.T
	c *websocket.Conn
}

func dial(t *testing.T, addr, protocol, allowed string) (*peer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+addr+"/stream", &websocket.DialOptions{Subprotocols: []string{protocol}, HTTPHeader: http.Header{"X-Topics": {allowed}}})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &peer{t, c}, nil
}

func connect(t *testing.T, addr, protocol string) *peer {
	t.Helper()
	p, err := dial(t, addr, protocol, ">")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *peer) send(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() (websocket.MessageType, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return p.c.Read(ctx)
}

// want reads the next message, which has to be that text but for spaces.
func (p *peer) want(text string) {
	p.t.Helper()
	_, b, err := p.read()
	if err != nil {
		p.t.Fatalf("%v, want %s", err, text)
	}
	if !json.Valid(b) {
		p.t.Errorf("%s is not JSON", b)
	}
	if got := strings.ReplaceAll(string(b), " ", ""); !strings.Contains(got, strings.ReplaceAll(text, " ", "")) {
		p.t.Fatalf("got %s, want %s", b, text)
	}
}

func publish(t *testing.T, s *Server, partition int, seq uint64, topic, account, price string) {
	t.Helper()
	done := make(chan error, 1)
	if !s.Post(func(h *fanout.Hub) {
		v, _ := topics.DecimalValue([]byte(price))
		done <- h.Publish(&fanout.Message{Partition: partition, At: fanout.Position{Seq: seq}, Topic: []byte(topic),
			Fields: []topics.Value{topics.TextValue([]byte(account)), v}, Payload: []byte(fmt.Sprintf(`{"price":%q}`, price))})
	}) {
		t.Fatal("the server ended")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func kinds(t *testing.T, test func(*testing.T, transport.Kind)) {
	for _, kind := range []transport.Kind{transport.KindEpoll, transport.KindNet} {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

func TestSubscribeReadAndResume(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		s, addr := start(t, kind, nil)
		a := connect(t, addr, JSON)
		a.send(`{"op":"subscribe","id":4294967295,"topics":"orders.*.ACME.>","filter":[{"field":"price","min":"100"}]}`)
		a.want(`{"op":"subscribed","id":4294967295,"position":"3.p0:0,p1:0"}`)
		publish(t, s, 0, 7, "orders.A17.ACME.buy", "A17", "101.5")
		publish(t, s, 0, 8, "orders.A17.ACME.buy", "A17", "99.5")
		publish(t, s, 0, 9, "orders.A17.OTHER.buy", "A17", "101.5")
		publish(t, s, 1, 3, "orders.B.ACME.sell", "B", "100.0")
		a.want(`{"op":"message","id":4294967295,"partition":0,"at":"7","topic":"orders.A17.ACME.buy","data":{"price":"101.5"}}`)
		a.want(`{"op":"message","id":4294967295,"partition":1,"at":"3","topic":"orders.B.ACME.sell","data":{"price":"100.0"}}`)
		a.send(`{"op":"position","id":4294967295}`)
		a.want(`{"op":"position","id":4294967295,"position":"3.p0:9,p1:3"}`)
		if err := a.c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}

		publish(t, s, 0, 10, "orders.A17.ACME.buy", "A17", "200")
		b := connect(t, addr, Binary)
		b.send(`{"op":"subscribe","id":5,"topics":"orders.>","resume":"3.p0:9,p1:3"}`)
		b.want(`{"op":"subscribed","id":5,"position":"3.p0:9,p1:3"}`)
		typ, m, err := b.read()
		if err != nil || typ != websocket.MessageBinary {
			t.Fatal(typ, err)
		}
		n := int(binary.BigEndian.Uint16(m[21:]))
		if m[0] != 1 || binary.BigEndian.Uint32(m[1:]) != 5 || binary.BigEndian.Uint32(m[5:]) != 0 || binary.BigEndian.Uint64(m[9:]) != 10 ||
			string(m[23:23+n]) != "orders.A17.ACME.buy" || string(m[23+n:]) != `{"price":"200"}` {
			t.Errorf("message %q", m)
		}
		b.send(`{"op":"unsubscribe","id":5}`)
		b.want(`{"op":"unsubscribed","id":5,"position":"3.p0:10,p1:3"}`)
		publish(t, s, 0, 11, "orders.A17.ACME.buy", "A17", "200")
		b.send(`{"op":"position","id":5}`)
		b.want(`"code":"invalid"`)
	})
}

func TestCommandsThatAreRefused(t *testing.T) {
	_, addr := start(t, transport.KindAuto, nil)
	p, err := dial(t, addr, JSON, "orders.A17.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{`{`, `"code":"invalid"`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>"}{}`, `more behind the object`},
		{`{"op":"jump"}`, `op is \"jump\", allowed: subscribe, unsubscribe, position, publish, inbox, login, status`},
		{`{"op":"subscribe","colour":1}`, `unknown field`},
		{`{"op":"subscribe","id":1,"topics":"orders..x"}`, `token 2 of pattern`},
		{`{"op":"subscribe","id":1,"topics":"orders.>"}`, `"code":"not-permitted","error":"not permitted: topics are \"orders.>\", allowed: within [orders.A17.>]"`},
		{`{"op":"subscribe","id":1,"topics":">"}`, `"code":"not-permitted"`},
		{`{"op":"subscribe","id":1,"topics":"*.A17.>"}`, `"code":"not-permitted"`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","filter":[{"field":"colour","equal":"red"}]}`, `allowed: account, price`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","policy":"wait"}`, `policy is \"wait\", allowed: drop`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","flush_ms":60001}`, `flush_ms is 60001, allowed: 0 to 60000`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","flush_ms":9223372036854775807}`, `allowed: 0 to 60000`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","resume":"x"}`, `resume token is \"x\"`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","resume":"2.p0:1"}`, `"code":"lineage"`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>","resume":"3.p0:1"}`, `"code":"ahead"`},
		{`{"op":"unsubscribe","id":1}`, `id of unsubscribe is 1`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>"}`, `"op":"subscribed"`},
		{`{"op":"subscribe","id":1,"topics":"orders.A17.>"}`, `allowed: another number`},
	} {
		p.send(c.command)
		p.want(c.want)
	}
	if _, err := dial(t, addr, JSON, ""); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a client that is not admitted: %v", err)
	}
	if _, err := dial(t, addr, "chat", ">"); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("another subprotocol: %v", err)
	}
}

// A client that does not read gets a gap that says what it missed; another one does not notice.
func TestSlowClient(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		s, addr := start(t, kind, func(c *Config) {
			c.Hub.Limits.Buffered, c.Hub.Limits.Queued, c.SendBuffer = 64<<10, 256<<10, 8<<10
		})
		slow, fast := connect(t, addr, JSON), connect(t, addr, JSON)
		for _, p := range []*peer{slow, fast} {
			p.send(`{"op":"subscribe","id":1,"topics":"orders.>"}`)
			p.want(`"subscribed"`)
		}
		const messages = 2_000 // of 8 KiB: more than the kernel holds of one connection
		seq, payload := uint64(0), fmt.Appendf(nil, "%q", strings.Repeat("x", 8<<10))
		for range messages / 20 {
			from := seq
			seq += 20
			s.Post(func(h *fanout.Hub) {
				for i := from; i < from+20; i++ {
					if err := h.Publish(&fanout.Message{At: fanout.Position{Seq: i + 1}, Topic: []byte("orders.A17.ACME.buy"), Payload: payload}); err != nil {
						t.Error(err)
					}
				}
			})
			for i := range uint64(20) {
				fast.want(fmt.Sprintf(`"at":"%d"`, seq-19+i))
			}
		}
		next, gaps := uint64(1), 0
		for next <= messages {
			_, b, err := slow.read()
			if err != nil {
				t.Fatalf("behind %d: %v", next-1, err)
			}
			var m struct {
				Op     string
				At     string
				Ranges []gapRange
			}
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			if m.Op == "gap" {
				r := m.Ranges[0]
				var through uint64
				if _, err := fmt.Sscan(r.Through, &through); err != nil || r.After != fmt.Sprint(next-1) || r.Count != through-next+1 {
					t.Fatalf("gap %+v behind %d", r, next-1)
				}
				next = through + 1
				gaps++
				continue
			}
			if m.At != fmt.Sprint(next) {
				t.Fatalf("got %s, want %d", m.At, next)
			}
			next++
		}
		if gaps == 0 {
			t.Error("a client that read nothing missed nothing; the test shows nothing")
		}
	})
}

// What a hostile client sends byte by byte, or not at all, costs it its connection, and no other client anything.
func TestHostileBytes(t *testing.T) {
	_, addr := start(t, transport.KindAuto, func(c *Config) { c.Handshake = 300 * time.Millisecond })
	good := connect(t, addr, JSON)
	upgrade := "GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: " + JSON + "\r\nX-Topics: >\r\n\r\n"
	for _, c := range []struct{ name, send, want string }{
		{"nothing", "", "HTTP/1.1 408 "},
		{"half a request", "GET /stream HT", "HTTP/1.1 408 "},
		{"no HTTP", "\x16\x03\x01\r\n\r\n", "HTTP/1.1 400 "},
		{"an endless head", "GET /stream HTTP/1.1\r\nX: " + strings.Repeat("x", 9000), "HTTP/1.1 431 "},
		{"not masked", upgrade + "\x81\x01a", "\x03\xeaa frame is not masked"},
		{"a compressed frame", upgrade + "\xc1\x81\x00\x00\x00\x00a", "\x03\xeareserved bits are 100"},
		{"a fragmented ping", upgrade + "\x09\x80\x00\x00\x00\x00", "\x03\xeaa control frame"},
		{"a length of 2^40", upgrade + "\x82\xff\x00\x00\x01\x00\x00\x00\x00\x00", "\x03\xf1a message has more than 65536 bytes"},
		{"bad UTF-8", upgrade + "\x81\x81\x00\x00\x00\x00\xff", "\x03\xefa text message is not valid UTF-8"},
	} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(c.send) {
			if _, err := nc.Write([]byte{c.send[i]}); err != nil {
				break // answered and closed already
			}
		}
		_ = nc.SetReadDeadline(time.Now().Add(20 * time.Second))
		var got []byte
		for b := make([]byte, 4096); ; {
			n, err := nc.Read(b)
			if got = append(got, b[:n]...); err != nil {
				break
			}
		}
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		_ = nc.Close()
	}
	good.send(`{"op":"subscribe","id":1,"topics":">"}`)
	good.want(`"subscribed"`)
}
