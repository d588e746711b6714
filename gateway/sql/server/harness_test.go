package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/pki"
)

const orders = 1500

const rules = `{"rules": [
	{"subjects": [{"kind": "User", "name": "loader"}], "permissions": ["Submit", "Read", "Query", "Write"]},
	{"subjects": [{"kind": "User", "name": "writer"}, {"kind": "User", "name": "will"}], "permissions": ["Submit", "Read", "Query", "Write"]},
	{"subjects": [{"kind": "User", "name": "wes"}], "permissions": ["Query", "Write"]},
	{"subjects": [{"kind": "User", "name": "trader"}], "permissions": ["Submit"]},
	{"subjects": [{"kind": "User", "name": "asker"}, {"kind": "User", "name": "sue"}], "permissions": ["Query"]},
	{"subjects": [{"kind": "User", "name": "reader"}, {"kind": "User", "name": "pat"}], "permissions": ["Read", "Query"]}]}`

// grid is one of TLS and rules, with orders, and the certificates of its clients.
type grid struct {
	*testgrid.Grid
	dir    string
	rules  *access.Rules
	loader *client.Client
	files  map[string]pki.Files
}

func newGrid(t *testing.T) *grid {
	t.Helper()
	g := &grid{dir: t.TempDir(), files: map[string]pki.Files{}}
	own := authority(t)
	for _, user := range []string{"loader", "trader", "reader", "asker", "writer"} {
		g.save(t, own, user, pki.Identity{User: user, ClientOnly: true})
	}
	g.save(t, own, "listener", pki.Identity{User: "listener", Names: []string{"localhost"}, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	file := filepath.Join(g.dir, "rules.json")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	regions := filepath.Join(g.dir, "regions.yaml")
	if err := os.WriteFile(regions, []byte(regionsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.rules, err = access.Parse([]byte(rules)); err != nil {
		t.Fatal(err)
	}
	g.Grid = testgrid.Start(t, testgrid.Options{MemoryMiB: 768, Args: []string{"--tls", "--views", "256Mi", "--view-rows", "65536", "--log-level", "error",
		"--", "--authorization", file, "--tls-client-auth", "none", "--tls-client-ca", g.files["loader"].CA, "--regions", regions}})
	g.loader = g.dial(t, "loader")
	done := make(chan error, orders)
	for n := range orders {
		order := testgrid.Order(fmt.Sprintf("C%06d", n), 200)
		for g.loader.SubmitAsync(order, func(_ client.Receipt, err error) { done <- err }) != nil {
			time.Sleep(time.Millisecond) // the window is full
		}
	}
	for range orders {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.Load(t.TempDir(), "clients")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (g *grid) save(t *testing.T, a *pki.Authority, name string, id pki.Identity) {
	t.Helper()
	dir := filepath.Join(g.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := a.Save(dir, name, id)
	if err != nil {
		t.Fatal(err)
	}
	g.files[name] = f
}

// config of a client of the grid with the certificate of a user, or none.
func (g *grid) config(user string) client.Config {
	cfg := client.Config{Endpoints: g.Endpoints, TLS: client.TLSAuthority(g.TLS.CA, "")}
	if f, ok := g.files[user]; ok {
		cfg.TLS = client.TLSFiles(client.PEMFiles{Cert: f.Cert, Key: f.Key, CA: g.TLS.CA})
	}
	return cfg
}

func (g *grid) dial(t *testing.T, user string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), g.config(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serve runs a server; its address.
func serve(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// open is a server that lets everybody in.
func (g *grid) open(t *testing.T, l Limits) *Server {
	t.Helper()
	return serve(t, Config{Open: true, Grid: g.loader, Limits: l})
}

// closed is a server with TLS, passwords and tokens. A token is "token of" a user here, with whose
// certificate the grid is asked: it judges the users, as it does with tokens of Kubernetes.
func (g *grid) closed(t *testing.T) *Server {
	t.Helper()
	return g.closedOf(t, g.loader)
}

// closedOf is one that asks with the certificate of a client of the grid.
func (g *grid) closedOf(t *testing.T, own *client.Client) *Server {
	t.Helper()
	f := g.files["listener"]
	id, err := secure.Load(secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: secure.NoClientCert})
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]Verifier{}
	for _, name := range []string{"pat", "sam", "sue", "wes", "will"} {
		if users[name], err = NewVerifier("secret of " + name); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, Config{TLS: id.Server, Grid: own, Rules: func() *access.Rules { return g.rules }, Users: func() map[string]Verifier { return users },
		Dial: func(ctx context.Context, token string) (Connected, error) {
			user := ""
			_, _ = fmt.Sscanf(token, "token-of-%s", &user)
			return client.Dial(ctx, g.config(user))
		}})
}

func connect(t *testing.T, s *Server, dsn string, change ...func(*pgconn.Config)) (*pgconn.PgConn, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%s dbname=grid %s", host, port, dsn))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := pgconn.ConnectConfig(ctx, cfg)
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.Close(ctx)
		})
	}
	return c, err
}

func mustConnect(t *testing.T, s *Server) *pgconn.PgConn {
	t.Helper()
	c, err := connect(t, s, "user=desk sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// code is the SQLSTATE of an error.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func rowsOf(t *testing.T, c *pgconn.PgConn, text string) ([][][]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all, err := c.Exec(ctx, text).ReadAll()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[len(all)-1].Rows, nil
}

func withCertificate(t *testing.T, f pki.Files) func(*pgconn.Config) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *pgconn.Config) { c.TLSConfig.Certificates = []tls.Certificate{pair} }
}
