package secure

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// authority with files of one certificate.
func authority(t *testing.T, dir, name string, id pki.Identity) (*pki.Authority, Files) {
	t.Helper()
	ca, err := pki.Load(filepath.Join(dir, "authority-"+name), name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "cert", id)
	if err != nil {
		t.Fatal(err)
	}
	return ca, Files{Cert: f.Cert, Key: f.Key, CA: f.CA}
}

var node = pki.Identity{User: "node", Names: []string{"grid.test"}, Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}

func load(t *testing.T, f Files) *Identity {
	t.Helper()
	id, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sockets are the two ends of a TCP connection: a pipe would block an end that
// writes while the other one does too.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	_ = a.SetDeadline(time.Now().Add(20 * time.Second))
	_ = b.SetDeadline(time.Now().Add(20 * time.Second))
	return a, b
}

// meet makes a handshake and returns each end's error.
func meet(t *testing.T, client, server *tls.Config) (state tls.ConnectionState, atClient, atServer error) {
	t.Helper()
	a, b := sockets(t)
	c, s := tls.Client(a, client), tls.Server(b, server)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		done <- err
	}()
	atClient = c.Handshake()
	if atClient == nil {
		_, atClient = c.Read(make([]byte, 1))
	}
	atServer = <-done
	return c.ConnectionState(), atClient, atServer
}

func TestBothEndsAreVerified(t *testing.T) {
	_, files := authority(t, t.TempDir(), "one", node)
	own := load(t, files)
	_, other := authority(t, t.TempDir(), "two", node)
	stranger := load(t, other)
	byName := files
	byName.Name = "grid.test"
	wrongName := files
	wrongName.Name = "other.test"
	bare := own.Client("10.0.0.1")
	bare.GetClientCertificate = nil
	old := own.Client("10.0.0.1")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]struct {
		client           *tls.Config
		server           *tls.Config
		client1, server1 string // part of the explanation; "" is success
	}{
		"by address":             {own.Client("10.0.0.1"), own.Server(), "", ""},
		"by name":                {load(t, byName).Client("10.9.9.9"), own.Server(), "", ""},
		"wrong address":          {own.Client("10.0.0.2"), own.Server(), "for another name", "does not accept"},
		"wrong name":             {load(t, wrongName).Client("10.0.0.1"), own.Server(), "for another name", "does not accept"},
		"client of another CA":   {mixed(own, stranger), own.Server(), "compare the CA files", "authority that the CA file does not have"},
		"server of another CA":   {own.Client("10.0.0.1"), stranger.Server(), "authority that the CA file does not have", "does not accept"},
		"client without":         {bare, own.Server(), "demands a certificate", "handshake failed"},
		"client of TLS 1.2 only": {old, own.Server(), "does not speak TLS 1.3", "handshake failed"},
	} {
		state, atClient, atServer := meet(t, c.client, c.server)
		for _, x := range []struct {
			end  string
			err  error
			want string
		}{{"client", atClient, c.client1}, {"server", atServer, c.server1}} {
			if x.want == "" && x.err != nil || x.want != "" && (x.err == nil || !strings.Contains(Explain(x.err).Error(), x.want)) {
				t.Errorf("%s: the %s returns %v, want %q", name, x.end, Explain(x.err), x.want)
			}
		}
		if c.client1 == "" && state.Version != tls.VersionTLS13 {
			t.Errorf("%s: version %x", name, state.Version)
		}
	}
}

// mixed trusts like the one and presents the certificate of the other.
func mixed(trusts, presents *Identity) *tls.Config {
	c := trusts.Client("10.0.0.1")
	c.GetClientCertificate = presents.Client("").GetClientCertificate
	return c
}

func TestCheckNode(t *testing.T) {
	dir := t.TempDir()
	ca, files := authority(t, dir, "one", node)
	named := files
	named.Name = "grid.test"
	leaf := func(id pki.Identity) *x509.Certificate {
		f, err := ca.Save(t.TempDir(), "x", id)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf
	}
	clientOnly := node
	clientOnly.ClientOnly = true
	nameless := pki.Identity{User: "nameless"}
	for name, c := range map[string]struct {
		files Files
		cert  *x509.Certificate
		host  string
		want  string
	}{
		"its address":         {files, leaf(node), "10.0.0.1", ""},
		"another address":     {files, leaf(node), "10.0.0.2", "10.0.0.2"},
		"the name":            {named, leaf(node), "10.0.0.2", ""},
		"no name in it":       {named, leaf(nameless), "10.0.0.1", "nameless"},
		"a client's":          {named, leaf(clientOnly), "10.0.0.1", "not for a server"},
		"a client's, no name": {files, leaf(clientOnly), "10.0.0.1", "not for a server"},
		"none":                {files, nil, "10.0.0.1", "no certificate"},
	} {
		var chain []*x509.Certificate
		if c.cert != nil {
			chain = append(chain, c.cert)
		}
		err := load(t, c.files).CheckNode(chain, c.host)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	_, good := authority(t, dir, "one", node)
	_, other := authority(t, t.TempDir(), "two", node)
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f    Files
		want string
	}{
		"no certificate": {Files{Key: good.Key, CA: good.CA}, "TLS certificate: no file"},
		"no key":         {Files{Cert: good.Cert, CA: good.CA}, "TLS key: no file"},
		"no CA":          {Files{Cert: good.Cert, Key: good.Key}, "TLS CA: no file"},
		"missing file":   {Files{Cert: good.Cert + "x", Key: good.Key, CA: good.CA}, good.Cert + "x"},
		"junk CA":        {Files{Cert: good.Cert, Key: good.Key, CA: junk}, junk},
		"junk key":       {Files{Cert: good.Cert, Key: junk, CA: good.CA}, junk},
		"another's key":  {Files{Cert: good.Cert, Key: other.Key, CA: good.CA}, "the key that belongs to the certificate"},
	} {
		if _, err := Load(c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

// Certificates are replaced under a running process: new handshakes use the new ones, a
// half-written pair changes nothing.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	ca, files := authority(t, dir, "one", node)
	id := load(t, files)
	clock := time.Now()
	id.now = func() time.Time { return clock }
	name := func() string {
		clock = clock.Add(2 * recheck)
		return id.Certificate().Subject.CommonName
	}
	if got := name(); got != "node" {
		t.Fatal(got)
	}
	key, err := os.ReadFile(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	second := node
	second.User = "second"
	if _, err := ca.Save(dir, "cert", second); err != nil {
		t.Fatal(err)
	}
	next, err := os.ReadFile(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		t.Helper()
		if err := pki.WriteFile(files.Key, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(key) // the old key with the new certificate
	if got := name(); got != "node" || id.Err() == nil {
		t.Errorf("half of a rotation: %q, %v", got, id.Err())
	}
	write(next)
	if got := name(); got != "second" || id.Err() != nil {
		t.Errorf("after the rotation: %q, %v", got, id.Err())
	}
	// Another authority: clients with a certificate of the old one are rejected from now
	// on.
	_, before := authority(t, t.TempDir(), "before", node)
	authority(t, dir, "two", second)
	name()
	if _, _, atServer := meet(t, mixed(id, load(t, before)), id.Server()); atServer == nil {
		t.Error("a certificate of a removed authority was accepted")
	}
	if _, atClient, atServer := meet(t, id.Client("10.0.0.1"), id.Server()); atClient != nil || atServer != nil {
		t.Errorf("with the new authority: %v, %v", atClient, atServer)
	}
	_ = os.Remove(files.CA)
	if got := name(); got != "second" || id.Err() == nil {
		t.Errorf("a file that is gone: %q, %v", got, id.Err())
	}
}

func TestLooksLikeTLS(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want bool
	}{
		{[]byte{22, 3, 1, 2, 0}, true}, {[]byte{22, 3, 3}, true}, {[]byte{21, 3, 3, 0, 2}, true},
		{[]byte{22, 3}, false}, {nil, false}, {[]byte{22, 0, 0, 0, 1}, false}, {[]byte("GET / HTTP"), false}, {[]byte{22, 3, 16, 0}, false}, {[]byte{22, 3, 0, 0, 1}, false}, // a Hello of 790 bytes

	} {
		if got := LooksLikeTLS(c.b); got != c.want {
			t.Errorf("% x: %v", c.b, got)
		}
	}
}
