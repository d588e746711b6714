package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// desk is a grid that authenticates clients, and the clients.
type desk struct {
	*grid
	ca    *pki.Authority
	desks *pki.Authority // an authority of clients only
	dir   string
	log   logged
	api   *registrar
	rules string // path
}

// registrar stands in for the API server: it knows tokens by their last part. The real one
// is tested in grid-node/arbiter/kube.
type registrar struct {
	mu   sync.Mutex
	err  error
	gone map[string]bool
}

func (r *registrar) Review(_ context.Context, token string) (*access.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := token[strings.LastIndexByte(token, '.')+1:]
	switch {
	case r.err != nil:
		return nil, r.err
	case r.gone[name], strings.HasPrefix(name, "forged"):
		return nil, fmt.Errorf("%w: the API server does not know it", access.ErrRefused)
	}
	name = strings.TrimSuffix(name, "_secret")
	if user, ok := strings.CutPrefix(name, "user="); ok { // of an OpenID provider, a member of the group of that name
		return &access.Identity{User: user, Groups: []string{user}}, nil
	}
	return &access.Identity{User: "system:serviceaccount:trading:" + name}, nil
}

func (r *registrar) away(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.err = err }

func (r *registrar) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = map[string]bool{name: true}
}

// token of a service account; its last part is what no log may contain.
func token(account string, lives time.Duration) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none"}`)) + "." + enc(fmt.Appendf(nil, `{"aud":["ordergrid.dev"],"exp":%d}`, time.Now().Add(lives).Unix())) + "." + account + "_secret"
}

const deskRules = `{"rules": [
	{"subjects": [{"kind": "User", "name": "gateway"}, {"kind": "ServiceAccount", "namespace": "trading", "name": "gateway"}], "permissions": ["Submit", "Read"]},
	{"subjects": [{"kind": "Group", "name": "surveillance"}, {"kind": "ServiceAccount", "namespace": "trading", "name": "reader"}], "permissions": ["Read"]},
	{"subjects": [{"kind": "User", "name": "operations"}], "permissions": ["Submit", "Read", "Admin", "Watch", "Sink", "Link", "Query", "Risk"]},
	{"subjects": [{"kind": "User", "name": "watcher"}], "permissions": ["Watch"]}, {"subjects": [{"kind": "User", "name": "writer"}], "permissions": ["Sink"]}]}`

func newDesk(t *testing.T, nodes int, limits access.Limits, change ...func(*Config)) *desk {
	t.Helper()
	d := &desk{grid: newGrid(t, nodes, 1), dir: t.TempDir(), api: &registrar{}}
	var err error
	if d.ca, err = pki.Load(filepath.Join(d.dir, "authority"), "test"); err != nil {
		t.Fatal(err)
	}
	if d.desks, err = pki.Load(filepath.Join(d.dir, "desks"), "desks"); err != nil {
		t.Fatal(err)
	}
	d.rules = filepath.Join(d.dir, "rules.json")
	d.rule(deskRules)
	files := d.certificate(pki.Identity{User: "node", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, secure.NoClientCert)
	files.ClientCA = filepath.Join(d.dir, "desks", "ca.crt")
	d.base.TLS = identityOf(t, files)
	d.base.Log = slog.New(slog.NewTextHandler(&d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d.base.Access = &Access{Rules: access.Open(d.rules), Tokens: access.NewTokens(d.api, "ordergrid.dev", limits)}
	for _, f := range change {
		f(&d.base)
	}
	d.up()
	t.Cleanup(func() {
		if d.log.has("_secret") {
			t.Error("a token stands in the log")
		}
		if t.Failed() {
			t.Log(d.log.b.String())
		}
	})
	return d
}

// rule replaces the file of rules as a whole.
func (d *desk) rule(text string) {
	d.t.Helper()
	if err := errors.Join(os.WriteFile(d.rules+".new", []byte(text), 0o600), os.Rename(d.rules+".new", d.rules)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) certificate(id pki.Identity, auth secure.ClientAuth) secure.Files {
	d.t.Helper()
	f, err := d.ca.Save(d.dir, id.User+strings.Join(id.Groups, ""), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: auth}
}

// as is the configuration of a client with a certificate.
func (d *desk) as(user string, groups ...string) client.Config {
	d.t.Helper()
	return d.config(client.TLSFiles(d.certificate(pki.Identity{User: user, Groups: groups, ClientOnly: true}, "")))
}

// of is the configuration of a client whose certificate ca has signed.
func (d *desk) of(ca *pki.Authority, id pki.Identity) client.Config {
	d.t.Helper()
	return d.config(client.TLSConfig(&tls.Config{RootCAs: d.roots(), GetClientCertificate: leaf(d.t, ca, id)}))
}

func (d *desk) config(how client.TLS) client.Config {
	return client.Config{Endpoints: d.addrs, Grid: "g", DialTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second, IO: client.IONet, TLS: how}
}

// withToken is the configuration of a client that has no certificate.
func (d *desk) withToken(token func() (string, error)) client.Config {
	d.t.Helper()
	cfg := d.config(client.TLSConfig(&tls.Config{RootCAs: d.roots()}))
	cfg.Token = token
	return cfg
}

func fixed(token string) func() (string, error) { return func() (string, error) { return token, nil } }

// tried are the permissions that can finds out: it has no FIX session and
// no region.
const tried = access.All &^ access.Gateway &^ access.Write

// can tries every request of a client and returns what was permitted; a rejection must be
// for lack of a permission.
func (d *desk) can(cfg client.Config, id string) (access.Permissions, error) {
	d.t.Helper()
	c, err := client.Dial(d.t.Context(), cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	var may access.Permissions
	try := func(p access.Permissions, err error) {
		d.t.Helper()
		switch {
		case err == nil, errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrSinkUnreadable), errors.Is(err, client.ErrReaderUnknown):
			may |= p
		case !errors.Is(err, client.ErrNotPermitted) || !strings.Contains(err.Error(), `on grid "g"`) || !strings.Contains(err.Error(), p.String()):
			d.t.Errorf("%s: %v, want a refusal that names grid and permission", p, err)
		}
	}
	_, err = c.Submit(d.t.Context(), fix(id))
	try(access.Submit, err)
	_, err = c.GetByClOrdID(d.t.Context(), id)
	try(access.Read, err)
	part := c.Table()[0].ID
	_, err = c.SinkFiles(d.t.Context(), part, d.addrs[0])
	try(access.Admin, err)
	_, err = c.ReadLog(d.t.Context(), part, d.addrs[0], 1, func(client.LogEntry) error { return nil })
	try(access.Admin, err)
	_, err = followOnce(d.t, c, client.FollowOptions{Partition: part, AtEnd: true})
	try(access.Watch, err)
	f, err := c.Follow(d.t.Context(), client.FollowOptions{Partition: part, Name: "kafka"})
	if err == nil {
		defer func() { _ = f.Close() }()
		_ = f.Advance(1, 1)
		err = f.Flush(d.t.Context())
	}
	try(access.Sink, err)
	_, err = c.Site(d.t.Context(), part)
	try(access.Link, err)
	_, err = c.Limits(d.t.Context())
	try(access.Risk, err)
	_, err = c.Query(d.t.Context(), client.Query{Query: query.Query{Limit: 1}})
	if err != nil && strings.Contains(err.Error(), "this node keeps no views") {
		err = nil
	}
	try(access.Query, err)
	return may, nil
}

// A node tells a program who the holder of a token is.
func TestIdentify(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	id, err := client.Identify(t.Context(), d.withToken(fixed(token("gateway", time.Hour))))
	if err != nil || id.User != "system:serviceaccount:trading:gateway" || id.Permissions != wire.MaySubmit|wire.MayRead || id.For == 0 {
		t.Errorf("%+v, %v", id, err)
	}
	for name, want := range map[string]error{"mallory": client.ErrNotPermitted, "forged": client.ErrUnauthenticated} {
		if id, err := client.Identify(t.Context(), d.withToken(fixed(token(name, time.Hour)))); !errors.Is(err, want) || strings.Contains(err.Error(), "_secret") {
			t.Errorf("%s: %+v, %v, want %v", name, id, err, want)
		}
	}
	if _, err := client.Identify(t.Context(), d.as("gateway")); err == nil {
		t.Error("a client without a token is identified")
	}
}

// Permissions by kind of proof, and the errors of the others.
func TestWhoMayDoWhat(t *testing.T) {
	d := newDesk(t, 2, access.Limits{})
	stranger, err := pki.Load(t.TempDir(), "another")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name string
		cfg  client.Config
		may  access.Permissions
		err  error  // of Dial, where nothing is let through
		says string // and its text
	}{
		{"gateway's certificate", d.as("gateway"), access.Submit | access.Read, nil, ""},
		{"certificate of a group", d.as("alice", "surveillance"), access.Read, nil, ""},
		{"operations' certificate", d.as("operations"), tried, nil, ""},
		{"watcher's certificate", d.as("watcher"), access.Watch, nil, ""},
		{"writer's certificate", d.as("writer"), access.Sink, nil, ""},
		{"certificate not in the rules", d.as("mallory"), 0, client.ErrNotPermitted, `user "mallory" has no permission on grid "g"`},
		{"certificate that calls itself a service account", d.as("system:serviceaccount:trading:gateway"), 0, client.ErrUnauthenticated, "authenticates clients"},
		{"neither certificate nor token", d.withToken(nil), 0, client.ErrUnauthenticated, `with a token for audience "ordergrid.dev"`},
		{"certificate of another authority", d.config(client.TLSConfig(&tls.Config{RootCAs: d.roots(), GetClientCertificate: leaf(t, stranger, pki.Identity{User: "gateway"})})), 0, client.ErrTLS, "authority"},
		{"gateway's token", d.withToken(fixed(token("gateway", time.Hour))), access.Submit | access.Read, nil, ""},
		{"reader's token", d.withToken(fixed(token("reader", time.Hour))), access.Read, nil, ""},
		{"token not in the rules", d.withToken(fixed(token("mallory", time.Hour))), 0, client.ErrNotPermitted, "service account trading/mallory has no permission"},
		{"forged token", d.withToken(fixed(token("forged", time.Hour))), 0, client.ErrUnauthenticated, "the API server does not know it"},
		{"expired token", d.withToken(fixed(token("gateway", -time.Minute))), 0, client.ErrUnauthenticated, "it has expired"},
		{"what is no token", d.withToken(fixed("password1_secret")), 0, client.ErrUnauthenticated, "it is not a JSON web token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			may, err := d.can(c.cfg, fmt.Sprintf("who-%d", i))
			switch {
			case may != c.may:
				t.Errorf("may %v, want %v; %v", may, c.may, err)
			case c.err == nil && err != nil, c.err != nil && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %v %q", err, c.err, c.says)
			}
			if err != nil {
				t.Log(err)
				if strings.Contains(err.Error(), "_secret") {
					t.Error("the error contains the token")
				}
			}
		})
	}
	s, err := d.nodes[0].pages.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Node.ClientsRefused[0] == 0 || s.Node.ClientsRefused[1] == 0 || s.Node.NotPermitted[access.Submit]+s.Node.NotPermitted[access.Admin] == 0 {
		t.Errorf("refusals are not counted: %v %v", s.Node.ClientsRefused, s.Node.NotPermitted)
	}
	for _, want := range []string{"a client was refused", "a request was not permitted", "trading/mallory"} {
		if !d.log.has(want) {
			t.Errorf("the log does not contain %q", want)
		}
	}
}

// leaf is presented whatever authorities the node requests.
func leaf(t *testing.T, ca *pki.Authority, id pki.Identity) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	t.Helper()
	id.ClientOnly = true
	cert, key, err := ca.Issue(id)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
}

// Changed rules apply to open connections, without a restart.
func TestRulesChangeUnderClients(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	c, err := client.Dial(t.Context(), d.as("gateway"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	submit(t, c, "before", 5)
	d.rule(strings.Replace(deskRules, `["Submit", "Read"]`, `["Read"]`, 1))
	i := 0
	d.until(func() bool {
		i++
		_, err = c.Submit(t.Context(), fix(fmt.Sprint("narrowed-", i)))
		return err != nil
	}, "a client that lost Submit keeps submitting")
	if !errors.Is(err, client.ErrNotPermitted) {
		t.Fatal(err)
	}
	if _, err := c.GetByClOrdID(t.Context(), "before-1"); err != nil {
		t.Fatalf("a client that has Read left: %v", err)
	}
	d.rule(`{"rules": [`) // half of it is written: what was read before stays
	d.until(func() bool { return d.log.has("the previous ones stay in use") }, "the broken file is not noticed")
	if _, err := c.GetByClOrdID(t.Context(), "before-2"); err != nil {
		t.Fatalf("with a broken file: %v", err)
	}
	d.rule(`{"rules": []}`)
	d.until(func() bool {
		_, err = c.GetByClOrdID(t.Context(), "before-3")
		return err != nil
	}, "a client that lost everything keeps reading")
	if !errors.Is(err, client.ErrNotPermitted) {
		t.Fatal(err)
	}
	d.rule(deskRules)
	d.until(func() bool {
		i++
		_, err = c.Submit(t.Context(), fix(fmt.Sprint("restored-", i)))
		return err == nil
	}, "a client that got its rights back is not let in: %v", func() any { return err })
}

// A token that expires, or is withdrawn, ends its connections, and no order is lost by
// that: the next one begins with the token of that time.
func TestTokensEnd(t *testing.T) {
	d := newDesk(t, 1, access.Limits{Fresh: time.Second, Refused: 100 * time.Millisecond})
	var mu sync.Mutex
	var used int
	c, err := client.Dial(t.Context(), d.withToken(func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		used++
		return token("gateway", 5*time.Second), nil // as if the kubelet had just replaced it
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tokens := func() int { mu.Lock(); defer mu.Unlock(); return used }
	began := tokens()
	n := 0
	d.until(func() bool {
		n++
		submit(t, c, fmt.Sprint("ends-", n), 1)
		return tokens() > began+1
	}, "no new token was used")

	// The API server is unavailable: accepted tokens stay valid.
	lasting := d.withToken(fixed(token("reader", time.Hour)))
	r, err := client.Dial(t.Context(), lasting)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	d.api.away(errors.New("connection refused"))
	failed := func() uint64 { return d.base.Access.Tokens.Stats().Failed }
	before := failed()
	d.until(func() bool {
		if _, err := r.GetByClOrdID(t.Context(), "ends-1-0"); err != nil {
			t.Fatalf("while the API server is away: %v", err)
		}
		return failed() > before+1
	}, "no token was looked at again")
	short := d.withToken(fixed(token("other", time.Hour)))
	short.DialTimeout = 300 * time.Millisecond
	if _, err := client.Dial(t.Context(), short); err == nil || errors.Is(err, client.ErrUnauthenticated) || !strings.Contains(err.Error(), "tokens cannot be reviewed now") {
		t.Fatalf("a new token while the API server is away: %v, want a reason to try again", err)
	}

	// The account is deleted.
	d.api.forget("reader_secret")
	d.api.away(nil)
	d.until(func() bool {
		_, err = r.GetByClOrdID(t.Context(), "ends-1-0")
		return err != nil
	}, "a withdrawn token stays valid")
	if !errors.Is(err, client.ErrUnauthenticated) {
		t.Fatal(err)
	}
}

// An order that reaches a node during a token review does not wait.
func TestReviewsDoNotHoldTheLoop(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	c, err := client.Dial(t.Context(), d.as("gateway"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	submit(t, c, "warm", 1)
	d.api.mu.Lock() // every review hangs
	r := dialRaw(t, d.addrs[0])
	r.Conn = tls.Client(r.Conn, &tls.Config{RootCAs: d.roots(), ServerName: "127.0.0.1"})
	_, _ = r.Write(asksToCome())
	_, _ = r.Write(wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: 7, Token: []byte(token("gateway", time.Hour))}))
	if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
		t.Fatalf("%x", f)
	}
	submit(t, c, "meanwhile", 200)
	d.api.mu.Unlock()
	var m wire.Authenticated
	if err := wire.DecodeAuthenticated(r.next(), &m); err != nil || m.ReqID != 7 || m.Permissions != wire.MaySubmit|wire.MayRead || m.ForS == 0 || string(m.User) != "system:serviceaccount:trading:gateway" {
		t.Fatalf("%+v, %v", m, err)
	}
}

func asksToCome() []byte {
	return wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Grid: []byte("g"), Member: []byte("raw")})
}

// Frames of an unauthenticated client.
func TestHostileProofs(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	good := wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: 1, Token: []byte(token("gateway", time.Hour))})
	forged := wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: 1, Token: []byte(token("forged", time.Hour))})
	submit := wire.AppendSubmit(nil, 0, &wire.Submit{Epoch: 1, ClientSeq: 1, Payload: fix("x")})
	now := asksToCome()
	join := func(b ...[]byte) []byte { return bytes.Join(b, nil) }
	for name, c := range map[string]struct {
		send []byte
		code uint16
		want string
	}{
		"Submit without a proof":        {join(now, submit), wire.GoawayUnauthenticated, "authenticates clients"},
		"TableRequest without a proof":  {join(now, wire.AppendRequest(nil, wire.TypeTableRequest, &wire.Request{ReqID: 1})), wire.GoawayUnauthenticated, "authenticates clients"},
		"Submit right behind the token": {join(now, good, submit), wire.GoawayUnauthenticated, "authenticates clients"},
		"nothing more":                  {now, wire.GoawayUnauthenticated, "authenticates clients"},
		"forged token":                  {join(now, forged), wire.GoawayUnauthenticated, "does not know it"},
		"two tokens at once":            {join(now, good, good), wire.GoawayProtocol, "second Authenticate before the answer"},
		"empty token":                   {join(now, header(20, byte(wire.TypeAuthenticate)), make([]byte, 12)), wire.GoawayProtocol, "tokenLen is 0"},
		"a token's length that lies":    {join(now, header(24, byte(wire.TypeAuthenticate)), make([]byte, 8), []byte{200, 0, 0, 0}, []byte("abcd")), wire.GoawayProtocol, "tokenLen is 200"},
		"a frame too long for a token":  {join(now, header(1<<20, byte(wire.TypeAuthenticate))), wire.GoawayProtocol, "allowed: at most 16404"},
		"a Hello again":                 {join(now, now), wire.GoawayUnauthenticated, "authenticates clients"},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, d.addrs[0])
			r.Conn = tls.Client(r.Conn, &tls.Config{RootCAs: d.roots(), ServerName: "127.0.0.1"})
			if _, err := r.Write(c.send); err != nil {
				t.Fatal(err)
			}
			if m := r.last(); m == nil || m.Code != c.code || !strings.Contains(string(m.Text), c.want) {
				t.Fatalf("got %+v, want goaway %d with %q", m, c.code, c.want)
			}
		})
	}
	may, err := d.can(d.as("gateway"), "after")
	if err != nil || may != access.Submit|access.Read {
		t.Fatalf("afterwards: %v, %v", may, err)
	}
}

// A grid without authentication accepts a token without reviewing it.
func TestTokenWhereNobodyAsks(t *testing.T) {
	certs := newCertificates(t)
	g := newGrid(t, 1, 1)
	g.base.TLS = identityOf(t, certs.node)
	g.up()
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.addrs, TLS: client.TLSFiles(certs.client), Token: fixed("anything_secret"), IO: client.IONet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	submit(t, c, "free", 5)
}

func TestAccessNeedsTLS(t *testing.T) {
	cfg := Config{Grid: "g", Pod: "g-s0-0", Listen: ":0", Advertise: "127.0.0.1:1", Access: &Access{}}
	if err := cfg.fill(); err == nil || !strings.Contains(err.Error(), "--authorization: needs --tls-cert") {
		t.Fatal(err)
	}
}

// roots is what a client trusts.
func (d *desk) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(d.ca.Cert)
	return pool
}
