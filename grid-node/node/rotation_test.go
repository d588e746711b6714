package node

import (
	"bytes"
	"crypto/tls"
	"crypto/x509/pkix"
	"path/filepath"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// holder is one process's directory of certificates, which a kubelet brings up to date at a moment of its own.
type holder struct {
	t     *testing.T
	id    pki.Identity
	files secure.Files
}

func newHolder(t *testing.T, id pki.Identity) *holder {
	dir := t.TempDir()
	return &holder{t: t, id: id, files: secure.Files{Name: "g.test",
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}}
}

// issue writes a new certificate; trust writes who is trusted.
func (h *holder) issue(by *pki.Authority) {
	h.t.Helper()
	cert, key, err := by.Issue(h.id)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(h.files.Key, key)
	h.write(h.files.Cert, cert) // between the two a node finds a pair that does not fit
}

func (h *holder) trust(authorities ...*pki.Authority) {
	h.t.Helper()
	var bundle bytes.Buffer
	for _, a := range authorities {
		bundle.Write(a.PEM)
	}
	h.write(h.files.CA, bundle.Bytes())
}

func (h *holder) write(path string, content []byte) {
	h.t.Helper()
	if err := pki.WriteFile(path, content, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func newCA(t *testing.T, name string) *pki.Authority {
	t.Helper()
	a, err := pki.New(pkix.Name{CommonName: name}, pki.Period{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCertificatesChangeUnderOrders replaces the authority in the operator's steps while
// orders flow, with nodes and clients that learn of each step one after the other. No
// order fails, there is no drop or take-over, and a connection made with a certificate of
// the old authority stays valid after that is no longer trusted. In between a node is
// killed and joins with the present certificates.
func TestCertificatesChangeUnderOrders(t *testing.T) {
	old, next := newCA(t, "old"), newCA(t, "next")
	asNode, asClient := pki.Identity{User: "node", Names: []string{"g.test"}}, pki.Identity{User: "client", ClientOnly: true}
	holders := []*holder{newHolder(t, asNode), newHolder(t, asNode), newHolder(t, asClient)}
	stranger := newHolder(t, asClient)
	for _, h := range append(holders, stranger) {
		h.issue(old)
		h.trust(old, next) // the stranger finds the nodes good to the end
	}
	for _, h := range holders {
		h.trust(old)
	}
	g := newGrid(t, 2, 2)
	g.base.Lease, g.base.Grace = 2*time.Second, 3*time.Second // a busy machine is not to be suspected
	ids := make([]*secure.Identity, 2)
	for i := range ids {
		ids[i] = identityOf(t, holders[i].files)
		g.base.TLS = ids[i]
		g.start(i)
	}
	g.ready()
	first := g.standing(stranger)
	acked, stop := g.load(g.secureClient(client.TLSFiles(holders[2].files), client.IONet))
	flows := func() {
		t.Helper()
		before := acked.Load()
		g.until(func() bool { return acked.Load() > before+100 }, "no orders flow")
	}
	steps := []struct {
		name string
		do   func(h *holder)
		seen func(id *secure.Identity) bool
	}{
		{"another certificate", func(h *holder) { h.issue(old) }, nil},
		{"the next authority is announced", func(h *holder) { h.trust(old, next) }, func(id *secure.Identity) bool { return len(id.Authorities()) == 2 }},
		{"it signs", func(h *holder) { h.issue(next) }, func(id *secure.Identity) bool { return id.Certificate().CheckSignatureFrom(next.Cert) == nil }},
		{"the one before is retired", func(h *holder) { h.trust(next) }, func(id *secure.Identity) bool { return len(id.Authorities()) == 1 }},
	}
	for _, step := range steps {
		for i, h := range holders {
			before := ids[min(i, 1)].Certificate().SerialNumber
			step.do(h)
			if i < 2 {
				g.until(func() bool {
					if step.seen == nil {
						return ids[i].Certificate().SerialNumber.Cmp(before) != 0
					}
					return step.seen(ids[i])
				}, "%s: node %d does not read it", step.name, i)
			}
			flows()
			g.secureClient(client.TLSFiles(holders[2].files), client.IONet) // new connections to both find their way
		}
	}
	if n := g.nodes[0].alarmCounts()[string(replica.AlarmMemberDropped)] + g.nodes[1].alarmCounts()[string(replica.AlarmMemberDropped)]; n != 0 {
		t.Errorf("%d members were dropped", n)
	}
	n := stop()
	first.ping() // its certificate is of an authority no longer trusted
	over := tls.Client(dialRaw(t, g.addrs[0]).Conn, identityOf(t, stranger.files).Client("127.0.0.1"))
	_, err := over.Write(hello(wire.RoleClient, 0, "late", ""))
	if err == nil {
		_, err = over.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a new connection with a certificate of the old authority is accepted")
	}
	g.kill(1)
	g.base.TLS = ids[1]
	g.start(1)
	g.ready() // a node joins by the new ones alone
	c := g.secureClient(client.TLSFiles(holders[2].files), client.IONet)
	if o, err := c.GetByClOrdID(t.Context(), "load0-0"); err != nil || o.ClOrdID != "load0-0" {
		t.Errorf("the first of %d orders: %+v, %v", n, o, err)
	}
}

// connection of a client that stands.
type connection struct{ *raw }

// standing makes one to node 0.
func (g *grid) standing(h *holder) connection {
	g.t.Helper()
	c := connection{dialRaw(g.t, g.addrs[0])}
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	c.Conn = tls.Client(c.Conn, identityOf(g.t, h.files).Client("127.0.0.1"))
	if _, err := c.Write(hello(wire.RoleClient, 0, "standing", "")); err != nil {
		g.t.Fatal(err)
	}
	if f := c.next(); f == nil || wire.FrameType(f) != wire.TypeWelcome {
		g.t.Fatalf("no welcome: %x", f)
	}
	return c
}

// ping wants an answer.
func (c connection) ping() {
	c.t.Helper()
	if _, err := c.Write(wire.AppendRequest(nil, wire.TypePing, &wire.Request{ReqID: 7})); err != nil {
		c.t.Fatal(err)
	}
	for {
		switch f := c.next(); {
		case f == nil:
			c.t.Fatal("a connection that stood was closed")
		case wire.FrameType(f) == wire.TypePong:
			return
		}
	}
}
