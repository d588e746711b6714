package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// tokenOf begins the token of each client of clientsOf; its name follows.
const (
	tokenOf     = "0123456789abcdef-"
	deskToken   = tokenOf + "desk"
	readerToken = tokenOf + "reader"
	floodToken  = tokenOf + "flood"
)

// clientsOf writes a file of clients: their names, and what their entries have beside name and token.
func clientsOf(t *testing.T, entries map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	var list []string
	for name, rest := range entries {
		list = append(list, fmt.Sprintf(`{"name": %q, "tokenFile": %q, %s}`, name, filepath.Join(dir, name), rest))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(tokenOf+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "clients.json")
	if err := os.WriteFile(file, []byte(`{"clients": [`+strings.Join(list, ", ")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// topicsFiles writes the clients of the tests of topics, and the token of gateways.
func topicsFiles(t *testing.T) (clients, peers string) {
	t.Helper()
	peers = filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(peers, []byte(tokenOf+"gateways\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return clientsOf(t, map[string]string{
		"desk":   `"topics": ["user.>"], "publish": ["user.news.>", "user.ask"]`,
		"reader": `"topics": ["user.>", "orders.>"]`,
		"flood":  `"publish": ["user.flood"]`,
	}), peers
}

// freeAddr returns a loopback address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it never fails
	return l.Addr().String()
}

// talker is a client that publishes and reads.
type talker struct {
	t *testing.T
	c *websocket.Conn
}

func speak(t *testing.T, p *process, token string) *talker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+p.addr+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(4 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &talker{t, c}
}

func (k *talker) say(text string) {
	k.t.Helper()
	if err := k.c.Write(k.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		k.t.Fatal(err)
	}
}

type heard struct {
	Op, Topic, From, Reply, Code, Error string
	ID, Partition                       int
	At, Position                        string
	Data, User                          json.RawMessage
}

func (k *talker) hear() (m heard) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 30*time.Second)
	defer cancel()
	_, b, err := k.c.Read(ctx)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		k.t.Fatalf("%.200s: %v", b, err)
	}
	return m
}

// subscribed subscribes and passes over what else comes before the answer.
func (k *talker) subscribed(topics string) {
	k.t.Helper()
	k.say(fmt.Sprintf(`{"op":"subscribe","id":1,"topics":%q}`, topics))
	if m := k.hear(); m.Op != "subscribed" {
		k.t.Fatalf("%+v", m)
	}
}

// peersOf waits until a gateway has so many others, as its status and metrics say.
func peersOf(t *testing.T, p *process, want int) {
	t.Helper()
	said := ""
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://" + p.http + "/metrics")
		if err != nil {
			continue
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if said = string(b); strings.Contains(said, fmt.Sprintf("ordergrid_stream_peers_connected %d\n", want)) {
			return
		}
	}
	t.Fatalf("%s has not %d others:\n%s", p.addr, want, p.said.String())
}

// A gateway that is reached by two addresses is one: what is published there comes once.
func TestGridTopicsAtTwoAddresses(t *testing.T) {
	g := testgrid.Run(t)
	clients, token := topicsFiles(t)
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	a := startGateway(t, g, "0.0.0.0:"+port, "--websocket-clients", clients, "--websocket-peer-token", token, "--websocket-peer", "127.0.0.1:"+port)
	b := startGateway(t, g, freeAddr(t), "--websocket-clients", clients, "--websocket-peer-token", token, "--websocket-peer", "127.0.0.1:"+port+",127.0.0.2:"+port)
	peersOf(t, b, 1)
	peersOf(t, a, 0)
	reader := speak(t, b, readerToken)
	reader.subscribed("user.>")
	a.addr = "127.0.0.1:" + port
	desk := speak(t, a, deskToken)
	for n := range 100 {
		desk.say(fmt.Sprintf(`{"op":"publish","topic":"user.news.a","data":%d}`, n))
		if m := reader.hear(); m.Op != "message" || string(m.Data) != fmt.Sprint(n) {
			t.Fatalf("got %+v, want message %d, once", m, n)
		}
	}
	if said := b.metrics(t); said["ordergrid_stream_peers"] != 1 || said["ordergrid_stream_peers_connected"] != 1 {
		t.Errorf("%v gateways are known, %v connected, want 1 and 1", said["ordergrid_stream_peers"], said["ordergrid_stream_peers_connected"])
	}
}

// Two gateways: what is published at one comes to clients of both, in order; requests are answered across; when one is killed
// clients of the other are told that something may be missing, and it goes on when there is one at that address again.
func TestGridTopicsOverTwoGateways(t *testing.T) {
	g := testgrid.Run(t)
	clients, token := topicsFiles(t)
	at, bt := freeAddr(t), freeAddr(t)
	args := []string{"--websocket-clients", clients, "--websocket-peer", at + "," + bt, "--websocket-peer-token", token}
	a, b := startGateway(t, g, at, args...), startGateway(t, g, bt, args...)
	peersOf(t, a, 1)
	peersOf(t, b, 1)

	near, far := speak(t, a, readerToken), speak(t, b, readerToken)
	near.subscribed("user.>")
	far.subscribed("user.>")
	const count = 2000
	read := func(k *talker, from int) {
		t.Helper()
		for n := from; n < from+count; n++ {
			m := k.hear()
			if want := fmt.Sprint(n); m.Op != "message" || m.Topic != "user.news.a" || m.From != "desk" || string(m.Data) != want {
				t.Fatalf("got %+v, want message %s", m, want)
			}
		}
	}
	publish := func(k *talker, from int) {
		t.Helper()
		for n := from; n < from+count; n++ {
			k.say(fmt.Sprintf(`{"op":"publish","topic":"user.news.a","data":%d}`, n))
			if n%200 == 199 {
				time.Sleep(250 * time.Millisecond) // 1,000 messages a second are allowed
			}
		}
	}
	desk := speak(t, a, deskToken)
	publish(desk, 0)
	read(near, 0)
	read(far, 0)

	desk.say(`{"op":"inbox","id":5}`)
	inbox := desk.hear()
	desk.say(fmt.Sprintf(`{"op":"publish","topic":"user.ask","reply":%q,"data":"?"}`, inbox.Topic))
	m := far.hear()
	if m.Topic != "user.ask" || m.Reply != inbox.Topic {
		t.Fatalf("the request at the other gateway is %+v", m)
	}
	far.say(fmt.Sprintf(`{"op":"publish","id":6,"topic":%q,"data":"!"}`, m.Reply))
	if m := far.hear(); m.Op != "published" {
		t.Fatalf("the reply is answered with %+v", m)
	}
	if m := desk.hear(); m.ID != 5 || m.From != "reader" || string(m.Data) != `"!"` {
		t.Fatalf("the reply is %+v", m)
	}

	a.kill()
	if m := far.hear(); m.Op != "gap" || string(m.User) != "{}" {
		t.Fatalf("when the other gateway was killed: %+v", m)
	}
	peersOf(t, b, 0)
	a = startGateway(t, g, at, args...)
	peersOf(t, b, 1)
	if m := far.hear(); m.Op != "gap" {
		t.Fatalf("when it was there again: %+v", m)
	}
	publish(speak(t, a, deskToken), count)
	read(far, count)
	if !strings.Contains(b.status(t), `"peers":[{"address":"`+at+`","connected":true}]`) {
		t.Errorf("status of the gateway: %s", b.status(t))
	}
}

func (p *process) status(t *testing.T) string {
	t.Helper()
	r, err := http.Get("http://" + p.http + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), "")
}

// Over TLS a gateway takes another one that has a certificate for its name, and no other.
func TestGridTopicsOverTLS(t *testing.T) {
	g := testgrid.Run(t)
	clients, token := topicsFiles(t)
	dir := t.TempDir()
	authority, err := pki.Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	f, err := authority.Save(dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	at, bt := freeAddr(t), freeAddr(t)
	args := []string{"--websocket-clients", clients, "--websocket-peer", at + "," + bt, "--websocket-peer-token", token, "--websocket-tls-cert", f.Cert, "--websocket-tls-key", f.Key, "--websocket-tls-ca", f.CA}
	a := startGateway(t, g, at, args...)
	b := startGateway(t, g, bt, append(args, "--websocket-peer-name", "other.example.com")...)
	peersOf(t, a, 1)
	for end := time.Now().Add(20 * time.Second); !strings.Contains(b.status(t), "other.example.com"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the certificate of another name: %s", b.status(t))
		}
	}
	peersOf(t, b, 0)
}

// One that publishes as fast as it can, messages of 1 MiB, from many connections, and reads no answer, is held to its rate;
// beside it each message of another comes.
func TestGridTopicsBesideAFlood(t *testing.T) {
	g := testgrid.Run(t)
	clients, _ := topicsFiles(t)
	p := startGateway(t, g, "127.0.0.1:0", "--websocket-clients", clients)
	reader, desk := speak(t, p, readerToken), speak(t, p, deskToken)
	reader.subscribed("user.news.>")
	all := speak(t, p, readerToken)
	all.subscribed("user.>") // and never reads
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		k := speak(t, p, floodToken)
		long := binary.BigEndian.AppendUint16([]byte{2, 0, 0, 0, 1}, uint16(len("user.flood")))
		long = append(append(long, "user.flood\x01\x00\x00\x00"...), make([]byte, 1<<20)...)
		go func() {
			for k.c.Write(ctx, websocket.MessageBinary, long) == nil {
			}
		}()
		small := speak(t, p, floodToken)
		go func() {
			for small.c.Write(ctx, websocket.MessageText, []byte(`{"op":"publish","id":1,"topic":"user.flood","data":1}`)) == nil {
			}
		}()
	}
	const count = 300
	go func() {
		for n := range count {
			if desk.c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":"publish","topic":"user.news.a","data":%d}`, n)) != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	for n := range count {
		if m := reader.hear(); string(m.Data) != fmt.Sprint(n) {
			t.Fatalf("got %+v, want %d", m, n)
		}
	}
	peers := p.metrics(t)
	for name, least := range map[string]float64{`ordergrid_stream_user_refused_total{reason="limit"}`: 1, `ordergrid_stream_user_messages_total{at="here"}`: count} {
		if v := peers[name]; v < least {
			t.Errorf("%s is %v, want at least %v", name, v, least)
		}
	}
	if v := peers[`ordergrid_stream_user_messages_total{at="here"}`]; v > 20_000 {
		t.Errorf("%v messages were taken, allowed is 1,000 a second", v)
	}
}

func (p *process) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	r, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		var v float64
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if _, err := fmt.Sscan(value, &v); err == nil {
				list[name] = v
			}
		}
	}
	return list
}
