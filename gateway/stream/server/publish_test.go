package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// publishers admits a client by the headers X-Name and X-Topics, to publish within X-Publish.
func publishers(change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Admit = func(r *http.Request, _ *x509.Certificate) (*Grant, error) {
			g := &Grant{Client: cmp.Or(r.Header.Get("X-Name"), "test")}
			for name, to := range map[string]*[]topics.Pattern{"X-Topics": &g.Topics, "X-Publish": &g.Publish} {
				if text := r.Header.Get(name); text != "" {
					p, err := topics.ParsePattern(text)
					if err != nil {
						return nil, err
					}
					*to = append(*to, p)
				}
			}
			return g, nil
		}
		if change != nil {
			change(c)
		}
	}
}

func publisher(t *testing.T, addr, protocol, name, may string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+addr+"/stream", &websocket.DialOptions{Subprotocols: []string{protocol},
		HTTPHeader: http.Header{"X-Topics": {">"}, "X-Name": {name}, "X-Publish": {may}}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(4 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &peer{t, c}
}

func (p *peer) sendBytes(b []byte) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.c.Write(ctx, websocket.MessageBinary, b); err != nil {
		p.t.Fatal(err)
	}
}

// binaryPublish is a message in the binary form, written by hand.
func binaryPublish(id uint32, topic string, flags byte, reply, data string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{2}, id)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(topic))), topic...)
	b = append(b, flags, 0)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(reply))), reply...)
	return append(b, data...)
}

// What is published as JSON and as bytes comes to clients of both subprotocols, with the name of who published.
func TestPublish(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		s, addr := start(t, kind, publishers(nil))
		desk := publisher(t, addr, JSON, `de"sk`, "user.news.>")
		text, raw := publisher(t, addr, JSON, "a", ""), publisher(t, addr, Binary, "b", "")
		for _, p := range []*peer{text, raw} {
			p.send(`{"op":"subscribe","id":7,"topics":"user.news.*"}`)
			p.want(`{"op":"subscribed","id":7,"position":"3.p0:0,p1:0"}`)
		}
		desk.send(`{"op":"publish","id":3,"topic":"user.news.a","data":{"text":"open <b>"}}`)
		desk.want(`{"op":"published","id":3}`)
		text.want(`{"op":"message","id":7,"topic":"user.news.a","from":"de\"sk","data":{"text":"open <b>"}}`)
		desk.send(`{"op":"publish","topic":"user.news.b","base64":"AAEC/w=="}`)
		text.want(`{"op":"message","id":7,"topic":"user.news.b","from":"de\"sk","base64":"AAEC/w=="}`)
		desk.sendBytes(binaryPublish(4, "user.news.c", 1, "", "\x00\x01"))
		desk.want(`{"op":"published","id":4}`)
		text.want(`"base64":"AAE="`)
		desk.sendBytes(binaryPublish(5, "user.news.d", 0, "", `[1, 2]`))
		desk.want(`{"op":"published","id":5}`)
		text.want(`{"op":"message","id":7,"topic":"user.news.d","from":"de\"sk","data":[1,2]}`)
		for _, want := range []string{"user.news.a\x00\x05de\"sk\x00\x00{\"text\":\"open <b>\"}", "user.news.b\x01\x05de\"sk\x00\x00\x00\x01\x02\xff"} {
			kind, b, err := raw.read()
			if err != nil || kind != websocket.MessageBinary || b[0] != 2 || binary.BigEndian.Uint32(b[1:]) != 7 || binary.BigEndian.Uint16(b[5:]) != 11 || string(b[7:]) != want {
				t.Fatalf("got %s %q, %v, want %q", kind, b, err, want)
			}
		}
		if st, _ := s.Stats(); st.Publish.Published != 4 || st.Hub.Published != 0 {
			t.Errorf("counted are %+v, and %d messages of the log", st.Publish, st.Hub.Published)
		}
	})
}

func TestPublishRefused(t *testing.T) {
	s, addr := start(t, transport.KindAuto, publishers(func(c *Config) { c.Publishing.Message = 1000 }))
	reader, desk := publisher(t, addr, JSON, "reader", ""), publisher(t, addr, JSON, "desk", "user.news.>")
	for _, c := range []struct {
		p          *peer
		text, want string
	}{
		{reader, `{"op":"publish","id":1,"topic":"user.news.a","data":1}`, `"code":"not-permitted","error":"not permitted: topic of publish is \"user.news.a\", allowed: none: the client may not publish"`},
		{desk, `{"op":"publish","id":1,"topic":"user.other","data":1}`, `"code":"not-permitted","error":"not permitted: topic of publish is \"user.other\", allowed: within [user.news.>]"`},
		{desk, `{"op":"publish","id":1,"topic":"orders.A.ACME.buy","data":1}`, `"code":"not-permitted"`},
		{desk, `{"op":"publish","id":1,"topic":"user.news.*","data":1}`, `"code":"invalid","error":"topic is \"user.news.*\", allowed:`},
		{desk, `{"op":"publish","id":1,"topic":"user.news.a"}`, `"code":"invalid","error":"data and base64: both or none is there`},
		{desk, `{"op":"publish","id":1,"topic":"user.news.a","base64":"?"}`, `"code":"invalid","error":"base64 is not valid`},
		{desk, `{"op":"publish","id":1,"topic":"user.news.a","data":"` + strings.Repeat("x", 999) + `"}`, `"code":"limit","error":"over a limit of the client: data of a message has 1001 bytes, allowed: at most 1000"`},
		{desk, `{"op":"subscribe","id":1,"topics":"user.>","last":3}`, `allowed: 0`},
		{desk, `{"op":"subscribe","id":1,"topics":"user.>","filter":[{"field":"x","equal":"1"}]}`, `allowed: no field`},
	} {
		c.p.send(c.text)
		c.p.want(c.want)
	}
	for _, b := range [][]byte{{2}, {2, 0, 0, 0, 1, 0, 9}, binaryPublish(1, "user.news.a", 4, "", "1"), binaryPublish(1, "user.news.a", 0, "", "{")} {
		desk.sendBytes(b)
		desk.want(`"code":"invalid"`)
	}
	// JSON with bytes that are no UTF-8 would be sent to readers in a text message, which ends their connection.
	for _, b := range []string{string(binaryPublish(1, "user.news.a", 0, "", "\"\xff\"")), "{\"op\":\"publish\",\"id\":1,\"topic\":\"user.news.a\",\"data\":\"\xff\"}"} {
		desk.sendBytes([]byte(b))
		desk.want(`"code":"invalid","error":"data is not valid JSON in UTF-8`)
	}
	desk.sendBytes(append(binaryPublish(1, "user.news.a", 0, "", "")[:19], 4, 'm', 'e', 'm', 'e', 0, 0, '1'))
	desk.want(`"error":"from is \"meme\"`)
	if st, _ := s.Stats(); st.Publish.NotPermitted != 3 || st.Publish.OverLimit != 1 || st.Publish.Invalid != 10 || st.Publish.Published != 0 {
		t.Errorf("counted are %+v", st.Publish)
	}
	// A reader has no room for a long message.
	reader.send(`{"op":"publish","topic":"` + strings.Repeat("x", 64<<10) + `"}`)
	if _, _, err := reader.read(); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a long message of one who may not publish: %v", err)
	}
}

// A message of 1 MiB is published, and one of a byte more is refused.
func TestPublishLong(t *testing.T) {
	_, addr := start(t, transport.KindAuto, publishers(nil))
	desk, text := publisher(t, addr, JSON, "desk", "user.>"), publisher(t, addr, JSON, "a", "")
	text.send(`{"op":"subscribe","id":7,"topics":"user.>"}`)
	text.want(`subscribed`)
	long := strings.Repeat("\xff", 1<<20)
	desk.sendBytes(binaryPublish(1, "user.a", 1, "", long))
	desk.want(`{"op":"published","id":1}`)
	text.want(`"base64":"` + base64.StdEncoding.EncodeToString([]byte(long)) + `"`)
	desk.send(`{"op":"publish","id":2,"topic":"user.a","base64":"` + base64.StdEncoding.EncodeToString([]byte(long)) + `"}`)
	desk.want(`{"op":"published","id":2}`)
	text.want(`"base64"`)
	desk.sendBytes(binaryPublish(3, "user.a", 1, "", long+"x"))
	desk.want(`allowed: at most 1048576`)
	_ = desk.c.Write(t.Context(), websocket.MessageBinary, make([]byte, 2<<20)) // it is refused before its end
	if _, _, err := desk.read(); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a message of 2 MiB: %v", err)
	}
}

// The rate is that of a client, however many connections it has, and another one has its own.
func TestPublishRate(t *testing.T) {
	_, addr := start(t, transport.KindAuto, publishers(func(c *Config) { c.Publishing.Messages, c.Publishing.Bytes = 3, 1000 }))
	a, b, other := publisher(t, addr, JSON, "desk", "user.>"), publisher(t, addr, JSON, "desk", "user.>"), publisher(t, addr, JSON, "other", "user.>")
	const one = `{"op":"publish","id":1,"topic":"user.a","data":1}`
	for _, p := range []*peer{a, b, a} {
		p.send(one)
		p.want("published")
	}
	for range 20 { // some may be allowed again where this takes long
		b.send(one)
		if _, m, err := b.read(); err != nil || !strings.Contains(string(m), "published") {
			break
		}
	}
	b.send(one)
	b.want(`"code":"limit","error":"over a limit of the client: messages of \"desk\" in a second are more than 3, allowed: 3`)
	other.send(`{"op":"publish","id":1,"topic":"user.a","data":"` + strings.Repeat("x", 2000) + `"}`)
	other.want("published") // a long one is taken at once, and then it is waited
	other.send(one)
	other.want(`bytes published by \"other\" in a second are more than 1000`)
	other.send(`{"op":"publish","id":1,"topic":"user.a","data":"` + strings.Repeat("x", 70<<10) + `"}`)
	other.want(`{"op":"error","id":0,"code":"limit","error":"over a limit of the client: bytes published by \"other\"`) // it was not read
	time.Sleep(500 * time.Millisecond)
	a.send(one)
	a.want("published")
}

// Long messages that are begun and not sent to their end take no more than is allowed, and do not keep others from it.
func TestPublishHeld(t *testing.T) {
	s, addr := start(t, transport.KindAuto, publishers(func(c *Config) { c.Publishing.LargeHeld = 8 << 20 }))
	begin := func(name string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		frame := ws.AppendHeader(nil, ws.Binary, 1<<20)
		frame[1] |= 0x80
		_, err = fmt.Fprintf(c, "GET /stream HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: %s\r\nX-Name: %s\r\nX-Publish: user.>\r\n\r\n%s\x00\x00\x00\x00%s",
			addr, Binary, name, frame, strings.Repeat("x", 100<<10))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	held := func(want int) {
		t.Helper()
		now := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if s.Do(func(*fanout.Hub) { now = s.large }); now == want {
				return
			}
		}
		t.Fatalf("%d bytes of long messages are held, want %d", now, want)
	}
	var conns []net.Conn
	for range 5 {
		conns = append(conns, begin("hostile"))
	}
	held(1 << 20) // one of a client always, then an eighth of the bound
	control := publisher(t, addr, JSON, "control", "user.>")
	control.sendBytes(binaryPublish(1, "user.a", 1, "", strings.Repeat("y", 1<<20)))
	control.want("published")
	for i := range 9 {
		conns = append(conns, begin(fmt.Sprint("other", i)))
	}
	held(8 << 20)
	for _, c := range conns {
		_ = c.Close()
	}
	held(0)
	s.Do(func(*fanout.Hub) {
		if len(s.largeOf) != 0 {
			t.Errorf("held are %v", s.largeOf)
		}
	})
}
