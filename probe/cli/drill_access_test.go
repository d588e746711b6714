package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

const drillUID = "6f1c1d0e-8a57-4a8e-9d57-0d1c5a7b9e01"

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.New(pkix.Name{CommonName: "drills"}, pki.Period{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// secureFlags are the flags of a recorder with a certificate of an authority.
func secureFlags(t *testing.T, a *pki.Authority) []string {
	t.Helper()
	f, err := a.Save(t.TempDir(), "recorder", pki.Identity{User: api.ServerName, Names: []string{api.ServerName, api.ServerNameOf(drillUID)}})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--http-cert", f.Cert, "--http-key", f.Key, "--http-ca", f.CA}
}

func trusting(t *testing.T, a *pki.Authority, uid string) *tls.Config {
	t.Helper()
	secure, err := api.Trusting(a.PEM, uid)
	if err != nil {
		t.Fatal(err)
	}
	return secure
}

// get requests like a program other than the operator: with a certificate of an authority under a
// name, or without.
func get(t *testing.T, url, token, name string, signed, trusted *pki.Authority) (status int, page string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Cert)
	secure := &tls.Config{RootCAs: roots, ServerName: api.ServerName}
	if name != "" {
		cert, key, err := signed.Issue(pki.Identity{User: name})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		// Regardless of the authorities the server accepts: a hostile client ignores them.
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(q)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestRecorderAccess: the recorder uses TLS, commands require the token, metrics the token or the
// certificate of Prometheus, and a client distinguishes the recorder of its drill from any other.
func TestRecorderAccess(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	cmd := drillCommand()
	f := drillFlags{http: "127.0.0.1:0"}
	flags := secureFlags(t, ours)
	f.secure.cert, f.secure.key, f.secure.ca = flags[1], flags[3], flags[5]
	l, err := f.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{flags[0], flags[2], flags[4]} {
		if cmd.Flags().Lookup(strings.TrimPrefix(name, "--")) == nil {
			t.Errorf("order-probe drill has no %s", name)
		}
	}
	r, err := recorder.New(recorder.Config{Endpoints: []string{"127.0.0.1:1"}, Replicas: 2, Probes: 1, Rate: 1, Sessions: 1, FIX: fixorder.FIX42, Timeout: time.Second,
		Patience: time.Second, GapLimit: time.Second, MaxOrders: 1000, Token: "secret", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := r.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	at := l.Addr().String()

	if s, err := api.NewClient("https://"+at, "secret", trusting(t, ours, drillUID)).State(t.Context()); err != nil || s.Phase != api.Preparing {
		t.Errorf("the operator: %+v, %v", s, err)
	}
	for name, c := range map[string]struct {
		client *api.Client
		says   string
	}{
		"another drill's client":                 {api.NewClient("https://"+at, "secret", trusting(t, ours, "0"+drillUID[1:])), "certificate is valid for"},
		"the client of another operator's drill": {api.NewClient("https://"+at, "secret", trusting(t, other, drillUID)), "certificate"},
		"another token":                          {api.NewClient("https://"+at, "other", trusting(t, ours, drillUID)), "401"},
		"plain HTTP":                             {api.NewClient("http://"+at, "secret", nil), "HTTP request to an HTTPS server"},
	} {
		if s, err := c.client.State(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, s, err, c.says)
		}
	}
	const phase = `ordergrid_drill_recorder_phase{phase="Preparing"} 1`
	for _, c := range []struct {
		name, path, token, cert string
		signed, trusted         *pki.Authority
		status                  int
		says                    string
	}{
		{"Prometheus", "/metrics", "", api.MetricsReader, ours, ours, 200, phase},
		{"the token", "/metrics", "secret", "", nil, ours, 200, phase},
		{"no account", "/metrics", "", "", nil, ours, 401, "are for the certificate " + api.MetricsReader},
		{"another token", "/metrics", "secre", "", nil, ours, 401, "are for the certificate"},
		{"another recorder", "/metrics", "", api.ServerName, ours, ours, 401, "are for the certificate"},
		{"the name, by another authority", "/metrics", "", api.MetricsReader, other, ours, 0, "tls: "},
		{"Prometheus gives no orders", api.PathState, "", api.MetricsReader, ours, ours, 401, "token of the drill"},
		{"Prometheus does not take another's certificate", "/metrics", "", api.MetricsReader, ours, other, 0, "certificate"},
	} {
		if status, page := get(t, "https://"+at+c.path, c.token, c.cert, c.signed, c.trusted); status != c.status || !strings.Contains(page, c.says) {
			t.Errorf("%s: status %d, %.200s; want %d, %s", c.name, status, page, c.status, c.says)
		}
	}
}

// TestRecorderListens: without a certificate on this machine only; an invalid certificate is
// reported.
func TestRecorderListens(t *testing.T) {
	dir := t.TempDir()
	if err := pki.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := secureFlags(t, newAuthority(t))
	for _, c := range []struct{ http, cert, key, ca, says string }{
		{"127.0.0.1:0", "", "", "", ""},
		{"[::1]:0", "", "", "", ""},
		{":0", good[1], good[3], "", ""},
		{":0", "", "", "", "--http :0 is reachable from other machines"},
		{"0.0.0.0:0", "", "", "", "give --http-cert and --http-key"},
		{":0", good[1], "", "", `--http-key ""`},
		{":0", "", "", good[5], `--http-cert ""`},
		{":0", good[1], good[3], filepath.Join(dir, "none"), "--http-ca: "},
		{":0", good[1], good[3], filepath.Join(dir, "empty"), "there is no certificate in PEM"},
	} {
		f := drillFlags{http: c.http}
		f.secure.cert, f.secure.key, f.secure.ca = c.cert, c.key, c.ca
		l, err := f.listen(context.Background())
		if l != nil {
			_ = l.Close()
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
