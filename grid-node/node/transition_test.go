package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// stream submits orders one after the other until it is stopped; every one has to be acknowledged.
type stream struct {
	t      *testing.T
	client *client.Client
	name   string
	n      atomic.Int64
	stop   chan struct{}
	done   sync.WaitGroup
}

func (g *grid) stream(name string, how client.TLS) *stream {
	g.t.Helper()
	c, err := client.Dial(g.t.Context(), client.Config{Endpoints: g.addrs, Grid: "g", Name: name, DialTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second, IO: client.IONet, TLS: how})
	if err != nil {
		g.t.Fatal(err)
	}
	s := &stream{t: g.t, client: c, name: name, stop: make(chan struct{})}
	s.done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-s.stop:
				return
			default:
			}
			if _, err := c.Submit(g.t.Context(), fix(fmt.Sprintf("%s-%d", name, i))); err != nil {
				g.t.Errorf("order %d of %s: %v", i, name, err)
				return
			}
			s.n.Add(1)
		}
	})
	return s
}

// end stops the stream and returns how many orders were acknowledged.
func (s *stream) end() int64 {
	close(s.stop)
	s.done.Wait()
	_ = s.client.Close()
	return s.n.Load()
}

// flows waits until some more of the stream's orders are acknowledged.
func (s *stream) flows(g *grid) {
	g.t.Helper()
	before := s.n.Load()
	g.until(func() bool { return s.n.Load() > before+20 || g.t.Failed() }, "the orders of %s do not flow", s.name)
}

// replace ends node i in order, as an update does, and starts it as base is now.
func (g *grid) replace(i int) {
	g.t.Helper()
	r := g.nodes[i]
	r.cancel()
	await(g.t, r.done)
	if r.err != nil {
		g.t.Fatalf("node %d: %v", i, r.err)
	}
	g.start(i)
	g.ready()
}

func (g *grid) tls(i int) *nodestatus.TLS {
	g.t.Helper()
	_, body := g.nodes[i].get("/status")
	var s nodestatus.Node
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		g.t.Fatal(err)
	}
	return s.TLS
}

// TestTLSUnderClients turns TLS on and off again for a serving grid, one node at a time,
// while a plain client, and once allowed a client with TLS, submit orders: none fails, and
// all copies have them in the end.
func TestTLSUnderClients(t *testing.T) {
	certs := newCertificates(t)
	g := newGrid(t, 2, 2)
	g.base.Peers = g.addrs
	g.up()
	id := identityOf(t, certs.node)
	stage := func(tls *secure.Identity, transition TLSTransition, streams ...*stream) {
		t.Helper()
		g.base.TLS, g.base.TLSTransition = tls, transition
		for i := range g.nodes {
			g.replace(i)
			for _, s := range streams { // beside a node of the stage before
				s.flows(g)
			}
		}
	}
	plain := g.stream("plain", nil)
	plain.flows(g)
	stage(id, TLSAccept, plain)
	secured := g.stream("secured", client.TLSFiles(certs.client))
	stage(id, TLSDial, plain, secured)
	count := func() (n int, names string) {
		for i := range g.nodes {
			p := g.tls(i).PlainClients
			if p == nil {
				t.Fatalf("node %d does not list plain clients", i)
			}
			n += p.Connections
			for _, c := range p.Some {
				names += c.Name + "@" + c.Host + " "
			}
		}
		return n, names
	}
	if n, names := count(); n == 0 || !strings.Contains(names, "plain@127.0.0.1") || strings.Contains(names, "secured") {
		t.Errorf("%d plain connections of clients, of %s", n, names)
	}
	orders := plain.end()
	g.until(func() bool { n, _ := count(); return n == 0 }, "a closed plain client is counted")
	stage(id, TLSOnly, secured)
	if _, err := client.Dial(t.Context(), client.Config{Endpoints: g.addrs, Grid: "g", DialTimeout: 20 * time.Second, IO: client.IONet}); !errors.Is(err, client.ErrTLS) {
		t.Errorf("a plain client at the end: %v", err)
	}
	stage(id, TLSDial, secured)
	late := g.stream("late", nil)
	stage(id, TLSAccept, secured, late)
	orders += secured.end()
	stage(nil, TLSOnly, late)
	orders += late.end()
	if r := g.verify(""); int64(r.Orders) != orders {
		t.Errorf("%d orders are there, %d were acknowledged", r.Orders, orders)
	}
	t.Logf("%d orders", orders)
}

// TestTransitionWithoutSense: incompatible settings are rejected.
func TestTransitionWithoutSense(t *testing.T) {
	id := identityOf(t, newCertificates(t).node)
	for want, change := range map[string]func(*Config){
		`--tls-transition: value "dial", allowed: nothing without --tls-cert`:     func(c *Config) { c.TLSTransition = TLSDial },
		`--tls-transition: value "accept", allowed: nothing with --authorization`: func(c *Config) { c.TLS, c.TLSTransition, c.Access = id, TLSAccept, &Access{} },
		`--tls-transition: value "both", allowed: accept, dial, or nothing`:       func(c *Config) { c.TLS, c.TLSTransition = id, "both" },
	} {
		cfg := Config{Grid: "g", Pod: "g-s0-0", Listen: ":0", Advertise: "127.0.0.1:1"}
		change(&cfg)
		if err := cfg.fill(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
