package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// A client without a grant can do nothing but log in, once, in time, and with the right token.
func TestLogin(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		s, addr := start(t, kind, func(c *Config) {
			c.Handshake, c.MaxOfOne = 300*time.Millisecond, 2
			c.Admit = func(r *http.Request, _ *x509.Certificate) (*Grant, error) { return nil, nil }
			c.Login = func(token string, _ *x509.Certificate) (*Grant, error) {
				if token != "s3cret" {
					return nil, errors.New("the token is not known")
				}
				p, err := topics.ParsePattern("orders.A17.>")
				return &Grant{Client: "desk", Topics: []topics.Pattern{p}}, err
			}
			c.Status = func() []byte { return []byte(`{"ready":true}`) }
		})
		refused := func(p *peer, want string) {
			t.Helper()
			_, _, err := p.read()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want the end with %q", err, want)
			}
		}
		a := connect(t, addr, JSON)
		a.send(`{"op":"subscribe","id":1,"topics":"orders.A17.>"}`)
		a.want(`"code":"not-permitted","error":"not permitted: the client has not logged in`)
		a.send(`{"op":"status"}`)
		a.want(`"code":"not-permitted"`)
		a.send(`{"op":"login","token":"s3cret"}`)
		a.want(`{"op":"welcome","id":0,"client":"desk","topics":["orders.A17.>"]}`)
		a.send(`{"op":"login","token":"s3cret"}`)
		a.want(`logged in already`)
		a.send(`{"op":"subscribe","id":1,"topics":"orders.A17.>"}`)
		a.want(`"subscribed"`)
		a.send(`{"op":"subscribe","id":2,"topics":"orders.>"}`)
		a.want(`"code":"not-permitted"`)
		a.send(`{"op":"status"}`)
		a.want(`topics are \"grid.status\"`)
		b := connect(t, addr, JSON)
		b.send(`{"op":"login","token":"guess"}`)
		b.want(`"error":"not permitted: login: the token is not known"`)
		refused(b, "login refused")
		late := connect(t, addr, JSON)
		refused(late, "no login within 300ms")
		b = connect(t, addr, JSON)
		b.send(`{"op":"login","token":"s3cret"}`)
		b.want(`"welcome"`)
		c := connect(t, addr, JSON)
		c.send(`{"op":"login","token":"s3cret"}`)
		c.want(`connections of \"desk\" are 3, allowed: at most 2`)
		refused(c, "login refused")
		s.Review(func(*Grant) bool { return false }, "what it may read has changed")
		refused(a, "what it may read has changed")
		refused(b, "what it may read has changed")
		for {
			st, ok := s.Stats()
			if !ok || st.Transport.Conns == 0 {
				if st.Unknown != 0 || len(s.named) != 0 || st.Refused != 2 || st.Late != 1 {
					t.Errorf("all clients are gone: %+v, %v", st, s.named)
				}
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// One address has no more than its share of connections that have not logged in; those that have are not concerned.
func TestCrowd(t *testing.T) {
	_, addr := start(t, transport.KindAuto, func(c *Config) { c.MaxUnknown = 5 })
	good := connect(t, addr, JSON)
	for range 5 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close() //nolint:errcheck // nothing is written
	}
	if _, err := dial(t, addr, JSON, ">"); err == nil {
		t.Error("a sixth connection without a login is served")
	}
	good.send(`{"op":"subscribe","id":1,"topics":">"}`)
	good.want(`"subscribed"`)
}

// Pages are answered beside the streams, and nothing else is.
func TestPages(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		body := strings.Repeat("x", 200_000)
		_, addr := start(t, kind, func(c *Config) {
			c.Pages = map[string]*Page{"/": {Header: http.Header{"Content-Type": {"text/html"}, "Content-Security-Policy": {"default-src 'none'"}}, Body: []byte(body)}}
		})
		for _, c := range []struct {
			method, path string
			status, size int
		}{{"GET", "/", 200, len(body)}, {"HEAD", "/", 200, 0}, {"POST", "/", 405, -1}, {"GET", "/other", 404, -1}, {"GET", "/stream", 426, -1}} {
			r, err := http.NewRequest(c.method, "http://"+addr+c.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(a.Body)
			_ = a.Body.Close()
			if err != nil || a.StatusCode != c.status || c.size >= 0 && len(got) != c.size {
				t.Errorf("%s %s: %d with %d bytes, %v", c.method, c.path, a.StatusCode, len(got), err)
			}
			if c.status == 200 && a.Header.Get("Content-Security-Policy") == "" {
				t.Error("the header is not there")
			}
		}
	})
}

// The same over TLS, with and without a client's certificate: the records of the loop under a WebSocket of another
// implementation.
func TestOverTLS(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		dir := t.TempDir()
		authority, err := pki.Load(dir, "test")
		if err != nil {
			t.Fatal(err)
		}
		f, err := authority.Save(dir, "desk", pki.Identity{User: "desk", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		if err != nil {
			t.Fatal(err)
		}
		id, err := secure.Load(secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: secure.NoClientCert})
		if err != nil {
			t.Fatal(err)
		}
		s, addr := start(t, kind, func(c *Config) {
			c.TLS, c.Hub.RingBytes = &transport.TLS{Server: id.Server}, 16<<20
			c.Admit = func(r *http.Request, cert *x509.Certificate) (*Grant, error) {
				if cert == nil {
					return nil, errors.New("no certificate")
				}
				p, err := topics.ParsePattern(">")
				return &Grant{Client: cert.Subject.CommonName, Topics: []topics.Pattern{p}}, err
			}
		})
		open := func(cfg *tls.Config) (*peer, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c, _, err := websocket.Dial(ctx, "wss://"+addr+"/stream", &websocket.DialOptions{Subprotocols: []string{JSON},
				HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}})
			if err != nil {
				return nil, err
			}
			c.SetReadLimit(1 << 20)
			t.Cleanup(func() { _ = c.CloseNow() })
			return &peer{t, c}, nil
		}
		with := id.Client("127.0.0.1")
		without := with.Clone()
		without.GetClientCertificate = nil
		if _, err := open(without); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("a client without a certificate: %v", err)
		}
		if _, err := dial(t, addr, JSON, ">"); err == nil {
			t.Error("a client without TLS is served")
		}
		p, err := open(with)
		if err != nil {
			t.Fatal(err)
		}
		p.send(`{"op":"subscribe","id":1,"topics":">"}`)
		p.want(`"subscribed"`)
		const messages = 100
		payload := fmt.Appendf(nil, "%q", strings.Repeat("x", 70_000)) // several records each
		s.Post(func(h *fanout.Hub) {
			for i := range uint64(messages) {
				if err := h.Publish(&fanout.Message{At: fanout.Position{Seq: i + 1}, Topic: []byte("orders.A17.ACME.buy"), Payload: payload}); err != nil {
					t.Error(err)
				}
			}
		})
		next := uint64(1)
		for next <= messages {
			_, b, err := p.read()
			var m struct {
				Op, At string
				Ranges []gapRange
			}
			if err == nil {
				err = json.Unmarshal(b, &m)
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Op == "gap" {
				if _, err := fmt.Sscan(m.Ranges[0].Through, &next); err != nil {
					t.Fatal(err)
				}
			} else if m.At != fmt.Sprint(next) {
				t.Fatalf("got %.80s, want message %d", b, next)
			}
			next++
		}
	})
}
