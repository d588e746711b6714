package node

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// certificates of one authority, for the nodes and for a client.
type certificates struct{ node, client secure.Files }

func newCertificates(t *testing.T) certificates {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Load(filepath.Join(dir, "authority"), "test")
	if err != nil {
		t.Fatal(err)
	}
	save := func(name string, id pki.Identity) secure.Files {
		f, err := ca.Save(dir, name, id)
		if err != nil {
			t.Fatal(err)
		}
		return secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA}
	}
	return certificates{
		node:   save("node", pki.Identity{User: "node", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}),
		client: save("client", pki.Identity{User: "client", ClientOnly: true}),
	}
}

func identityOf(t *testing.T, f secure.Files) *secure.Identity {
	t.Helper()
	id, err := secure.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A grid over TLS replicates, has its heartbeats, and survives the loss of its primary.
func TestGridOverTLS(t *testing.T) {
	certs := newCertificates(t)
	g := newGrid(t, 2, 1)
	g.base.TLS = identityOf(t, certs.node)
	g.up()
	for _, io := range []client.IO{client.IONet, client.IOBlocking, client.IOPinned} {
		c := g.secureClient(client.TLSFiles(certs.client), io)
		for i := range 200 {
			if _, err := c.Submit(t.Context(), fix(fmt.Sprintf("%v-%d", io, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.until(func() bool { return g.nodes[0].live.links[byTLS].Load() > 0 && g.nodes[1].live.links[byTLS].Load() > 0 }, "no heartbeats")
	c := g.secureClient(client.TLSFiles(certs.client), client.IONet)
	g.kill(0)
	if r, err := c.Submit(t.Context(), fix("after")); err != nil || r.Copies != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	g.start(0)
	g.ready()
	if o, err := c.GetByClOrdID(t.Context(), "blocking-7"); err != nil || o.ClOrdID != "blocking-7" {
		t.Fatalf("%+v, %v", o, err)
	}
}

func (g *grid) secureClient(how client.TLS, io client.IO) *client.Client {
	g.t.Helper()
	c, err := client.Dial(g.t.Context(), client.Config{Endpoints: g.addrs, Grid: "g", DialTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second, IO: io, TLS: how})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// A client's certificate is valid for orders only: with it there is no peer, feed or
// heartbeat connection.
func TestClientsCertificateIsNoNodes(t *testing.T) {
	certs := newCertificates(t)
	g := newGrid(t, 1, 1)
	g.base.TLS = identityOf(t, certs.node)
	g.up()
	asClient, asNode := identityOf(t, certs.client), identityOf(t, certs.node)
	for _, role := range []wire.Role{wire.RolePeer, wire.RoleBulk, wire.RoleLiveness} {
		for _, c := range []struct {
			id      *secure.Identity
			address string
			refused string
		}{
			{asClient, "127.0.0.1:1", "not accepted as a node"},
			{asNode, "127.0.0.2:1", "not accepted as a node"}, // claims an address its certificate is not for
			{asNode, "nonsense", "allowed: host:port"},
			{asNode, "127.0.0.1:1", ""},
		} {
			raw := dialRaw(t, g.addrs[0])
			over := tls.Client(raw.Conn, c.id.Client("127.0.0.1"))
			raw.Conn = over
			if _, err := over.Write(hello(role, 0xbad, "g-s0-9/0000000000000bad", c.address)); err != nil {
				t.Fatal(err)
			}
			if c.refused == "" {
				if f := raw.next(); f == nil || wire.FrameType(f) != wire.TypeWelcome {
					t.Errorf("role %d of a node: %x", role, f)
				}
				_ = raw.Close()
				continue
			}
			if m := raw.last(); m == nil || m.Code != wire.GoawayRole || !strings.Contains(string(m.Text), c.refused) {
				t.Errorf("role %d as %s at %s: %+v", role, c.id.Expires(), c.address, m)
			}
		}
	}
}

// logged collects what a node logs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), s)
}

// Only one end speaks TLS: each end gets the error, clients and nodes.
func TestOneEndSpeaksTLS(t *testing.T) {
	certs := newCertificates(t)
	for _, nodeTLS := range []bool{true, false} {
		var log logged
		g := newGrid(t, 1, 1)
		g.base.Log = slog.New(slog.NewTextHandler(io.MultiWriter(&log, io.Discard), nil))
		cfg := client.Config{Grid: "g", DialTimeout: time.Hour, Endpoints: g.addrs, IO: client.IONet}
		wantClient, wantNode := "", ""
		if nodeTLS {
			g.base.TLS = identityOf(t, certs.node)
			wantClient, wantNode = "set Config.TLS", "does not speak TLS"
		} else {
			cfg.TLS = client.TLSFiles(certs.client)
			wantClient, wantNode = "start the nodes with --tls-cert", "speaks TLS to this port"
		}
		g.up()
		_, err := client.Dial(t.Context(), cfg) // not after DialTimeout: that is longer than this test may take
		if err == nil || !strings.Contains(err.Error(), wantClient) {
			t.Errorf("node with TLS %v: the client returns %v, want %q at once", nodeTLS, err, wantClient)
		}
		g.until(func() bool { return log.has(wantNode) }, "the node does not log %q", wantNode)
	}
}

// A node that speaks TLS and one that does not never form a shard, and both log why.
func TestNodesDisagreeAboutTLS(t *testing.T) {
	certs := newCertificates(t)
	g := newGrid(t, 2, 1)
	g.base.Peers = g.addrs
	var secured, plain logged
	g.base.Log = slog.New(slog.NewTextHandler(&plain, nil))
	g.start(0)
	g.base.TLS, g.base.Log = identityOf(t, certs.node), slog.New(slog.NewTextHandler(&secured, nil))
	g.start(1)
	for _, log := range []*logged{&secured, &plain} {
		g.until(func() bool { return log.has("a node cannot be connected to") }, "it is not logged why the nodes cannot talk")
	}
}
