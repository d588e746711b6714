package node

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

const toolsRules = `{"rules": [
	{"subjects": [{"kind": "User", "name": "ordergrid-tools"}], "permissions": ["Submit", "Read", "Admin", "Watch", "Sink"]},
	{"subjects": [{"kind": "User", "name": "gateway"}, {"kind": "Group", "name": "desk"}], "permissions": ["Read"]}]}`

// The operator's tools are identified by the common name under the grid's own authority. A
// certificate of an authority of clients, or a token, with that name does not count.
func TestToolsAreTheOperatorsOnly(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	d.rule(toolsRules)
	d.until(func() bool { return d.log.has("authorization rules changed") }, "the rules are not read")
	foreign := func(id pki.Identity) client.Config { return d.of(d.desks, id) }
	own := func(id pki.Identity) client.Config { return d.of(d.ca, id) }
	asToken := func(account string) client.Config { return d.withToken(fixed(token(account, time.Hour))) }
	for i, c := range []struct {
		name string
		cfg  client.Config
		may  access.Permissions
		err  error
	}{
		{"the operator's", own(pki.Identity{User: access.Tools, Groups: []string{"ordergrid.dev"}}), access.All &^ access.Link &^ access.Query &^ access.Gateway &^ access.Risk &^ access.Write, nil},
		{"a client of its name", foreign(pki.Identity{User: access.Tools}), 0, client.ErrUnauthenticated},
		{"a client with its URI", foreign(pki.Identity{User: "mallory", URIs: []string{access.Tools}}), 0, client.ErrNotPermitted},
		{"a client with its URI and no name", foreign(pki.Identity{URIs: []string{access.Tools}}), 0, client.ErrUnauthenticated},
		{"a client of an organization of its name", foreign(pki.Identity{User: "mallory", Groups: []string{access.Tools, "ordergrid.dev"}}), 0, client.ErrNotPermitted},
		{"a client with all of them", foreign(pki.Identity{User: access.Tools, Groups: []string{access.Tools}, URIs: []string{access.Tools}}), 0, client.ErrUnauthenticated},
		{"a client that has a right and its URI", foreign(pki.Identity{User: "gateway", URIs: []string{access.Tools}}), access.Read, nil},
		{"a client of a group that has a right", foreign(pki.Identity{User: access.Tools, Groups: []string{"desk"}}), access.Read, nil},
		{"the grid's own client with its URI", own(pki.Identity{User: "oms", URIs: []string{access.Tools}}), 0, client.ErrNotPermitted},
		{"a token's user and group", asToken("user=" + access.Tools), 0, client.ErrNotPermitted},
		{"a service account of its name", asToken(access.Tools), 0, client.ErrNotPermitted},
	} {
		may, err := d.can(c.cfg, "tools-"+string(rune('a'+i)))
		if may != c.may || !errors.Is(err, c.err) {
			t.Errorf("%s: may %v (%v), want %v (%v)", c.name, may, err, c.may, c.err)
		}
	}
}

// Nor does the name exempt a client from the limit of connections.
func TestNobodyElseHasTheToolsConnections(t *testing.T) {
	d := newDesk(t, 1, access.Limits{}, func(c *Config) { c.MaxClientConns = 2 })
	for _, id := range []pki.Identity{
		{User: access.Tools, Groups: []string{"surveillance"}},
		{User: "gateway", URIs: []string{access.Tools}},
	} {
		for n := range 3 {
			c, err := tls.Dial("tcp", d.addrs[0], &tls.Config{RootCAs: d.roots(), ServerName: "127.0.0.1", GetClientCertificate: leaf(t, d.desks, id)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.NetConn().Close() })
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			r := &raw{Conn: c, t: t}
			if _, err := r.Write(asksToCome()); err != nil {
				t.Fatal(err)
			}
			if frame := r.next(); n == 2 {
				d.mustBeRefused(frame, "has 2 connections to this node")
			} else if wire.FrameType(frame) != wire.TypeWelcome {
				t.Fatalf("connection %d: %q", n+1, frame)
			}
		}
	}
}
