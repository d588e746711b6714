package node

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// enter opens a connection to the first node, with a certificate of user or with none,
// and returns what the node answers to Hello.
func (d *desk) enter(user string) (*raw, []byte) {
	d.t.Helper()
	how := &tls.Config{RootCAs: d.roots(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	if user != "" {
		how.GetClientCertificate = leaf(d.t, d.ca, pki.Identity{User: user})
	}
	c, err := tls.Dial("tcp", d.addrs[0], how)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.NetConn().Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	r := &raw{Conn: c, t: d.t}
	if _, err := r.Write(wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Grid: []byte("g"), Member: []byte("t")})); err != nil {
		d.t.Fatal(err)
	}
	return r, r.next()
}

func (d *desk) mustEnter(user string) *raw {
	d.t.Helper()
	r, frame := d.enter(user)
	if frame == nil || wire.FrameType(frame) != wire.TypeWelcome {
		d.t.Fatalf("%s is not let in: %q", user, frame)
	}
	return r
}

// mustBeRefused wants a Goaway that names the limit and gives advice.
func (d *desk) mustBeRefused(frame []byte, says ...string) {
	d.t.Helper()
	var m wire.Goaway
	if frame == nil || wire.DecodeGoaway(frame, &m) != nil || m.Code != wire.GoawayLimit {
		d.t.Fatalf("got %q, want a Goaway %d", frame, wire.GoawayLimit)
	}
	for _, s := range says {
		if !strings.Contains(string(m.Text), s) {
			d.t.Errorf("%q does not contain %q", m.Text, s)
		}
	}
}

func (d *desk) prove(r *raw, id uint64, account string) []byte {
	d.t.Helper()
	if _, err := r.Write(wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: id, Token: []byte(token(account, time.Hour))})); err != nil {
		d.t.Fatal(err)
	}
	return r.next()
}

func (d *desk) refusedForTheirNumber() uint64 {
	d.t.Helper()
	s, err := d.nodes[0].pages.snapshot()
	if err != nil {
		d.t.Fatal(err)
	}
	return s.Node.ClientsRefused[metrics.RefusedTooMany]
}

// A client has as many connections as allowed; others, and the operator's tools, are
// accepted nevertheless, and so is it when one of its own has ended.
func TestConnectionsOfOneClient(t *testing.T) {
	d := newDesk(t, 2, access.Limits{}, func(c *Config) { c.MaxClientConns = 3 })
	first := d.mustEnter("gateway")
	d.mustEnter("gateway")
	d.mustEnter("gateway")
	for range 2 {
		_, frame := d.enter("gateway")
		d.mustBeRefused(frame, `user "gateway" has 3 connections`, "--max-connections-per-client allows 3", "an identity of its own")
	}
	if n := d.refusedForTheirNumber(); n != 2 {
		t.Errorf("%d refusals are counted, want 2", n)
	}
	for range 5 {
		d.mustEnter(access.Tools)
	}
	if may, err := d.can(d.as("operations"), "other"); may != tried || err != nil {
		t.Errorf("operations may %v, %v", may, err)
	}
	if _, err := first.Write(wire.AppendGoaway(nil, &wire.Goaway{Text: []byte("bye")})); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	d.until(func() bool { _, frame := d.enter("gateway"); return wire.FrameType(frame) == wire.TypeWelcome }, "a connection that ended counts on")
}

// The same with tokens; a connection counts for the identity of its last token.
func TestConnectionsOfOneServiceAccount(t *testing.T) {
	d := newDesk(t, 1, access.Limits{}, func(c *Config) { c.MaxClientConns = 2 })
	var in []*raw
	for range 2 {
		r := d.mustEnter("")
		if f := d.prove(r, 1, "gateway"); wire.FrameType(f) != wire.TypeAuthenticated {
			t.Fatalf("got %q", f)
		}
		in = append(in, r)
	}
	d.mustEnter("gateway") // the certificate of that name is another identity
	third := d.mustEnter("")
	d.mustBeRefused(d.prove(third, 1, "gateway"), "service account trading/gateway has 2 connections")
	for id := range uint64(3) { // the same again is no further connection
		if f := d.prove(in[0], 2+id, "gateway"); wire.FrameType(f) != wire.TypeAuthenticated {
			t.Fatalf("got %q", f)
		}
	}
	if f := d.prove(in[0], 9, "reader"); wire.FrameType(f) != wire.TypeAuthenticated {
		t.Fatalf("got %q", f)
	}
	again := d.mustEnter("")
	if f := d.prove(again, 1, "gateway"); wire.FrameType(f) != wire.TypeAuthenticated {
		t.Fatalf("got %q", f)
	}
	d.mustBeRefused(d.prove(in[0], 10, "gateway"), "has 2 connections") // not by the back door
	var counted map[string]int
	d.until(func() bool {
		counted = map[string]int{}
		_ = d.nodes[0].onLoop(func() {
			for k, v := range d.nodes[0].data.clients.connsOf {
				counted[k] = v
			}
		})
		return len(counted) == 2
	}, "what has ended counts on")
	for _, n := range counted {
		if n > 2 {
			t.Errorf("counted: %v", counted)
		}
	}
}

// Clients that have taken all they may take leave room for administrators and nodes.
func TestLastConnectionsAreNotForClients(t *testing.T) {
	d := newDesk(t, 2, access.Limits{}, func(c *Config) { c.MaxConns = 40 })
	for range 40 - minReserved {
		d.mustEnter("gateway")
	}
	_, frame := d.enter("gateway")
	d.mustBeRefused(frame, "of 40 (--max-connections)", "Admin", "try another node")
	if d.refusedForTheirNumber() != 1 {
		t.Error("it is not counted")
	}
	d.mustEnter("operations")
}

// A silent client takes no place from the others.
func TestUndecidedConnectionsTakeNoRoom(t *testing.T) {
	const most = 10
	d := newDesk(t, 2, access.Limits{}, func(c *Config) { c.MaxConns = most * undecidedPart })
	silent := func() {
		c, err := tls.Dial("tcp", d.addrs[0], &tls.Config{RootCAs: d.roots(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.NetConn().Close() })
	}
	for range 5 * most * undecidedPart {
		silent()
	}
	s, err := d.nodes[0].pages.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Transport.Refused != 0 || s.Node.HelloTimeouts == 0 {
		t.Errorf("%d connections were refused at accept, %d had to go; want 0 and most of them", s.Transport.Refused, s.Node.HelloTimeouts)
	}
	_ = d.nodes[0].onLoop(func() {
		if n := len(d.nodes[0].data.listeners.undecided); n > most {
			t.Errorf("%d connections are not identified, allowed: %d", n, most)
		}
	})
	c, err := client.Dial(t.Context(), d.as("gateway"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	submit(t, c, "beside", 5)
}
