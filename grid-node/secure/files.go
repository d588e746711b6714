package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Files are PEM files. Certificate, key and CA are required.
type Files struct {
	Cert string // certificate, with intermediate ones behind it
	Key  string // its private key
	CA   string // the authorities accepted for the other end's certificate
	// Name is the name that certificates of nodes must be valid for. "": the address
	// dialled.
	Name string
	// ClientCA are further authorities accepted for clients' certificates; they do not
	// certify nodes. "": none.
	ClientCA string
	// ClientAuth is what an accepting node requires of clients.
	ClientAuth ClientAuth
}

// ClientAuth is what clients must present. Nodes always present a certificate.
type ClientAuth string

const (
	// RequireClientCert rejects clients without a certificate; "" is the same.
	RequireClientCert ClientAuth = "require"
	// NoClientCert makes the certificate optional. A presented one must be valid.
	NoClientCert ClientAuth = "none"
)

// recheck is how long files are assumed to be unchanged.
const recheck = time.Second

// Identity is the certificate of a process and the authorities it trusts. It is safe for
// concurrent use. Changed files are reread at the next handshake; if that fails, the
// previous ones stay in use and Err returns why.
type Identity struct {
	files Files

	mu      sync.Mutex
	now     func() time.Time
	checked time.Time
	stamps  [4]stamp
	trust
	err error
}

// trust is the content of the files.
type trust struct {
	cert        *tls.Certificate
	roots       *x509.CertPool      // who signs nodes
	clientRoots *x509.CertPool      // who signs those that connect: roots, and more
	authorities []*x509.Certificate // those of roots
}

// stamp identifies a state of a file.
type stamp struct {
	info os.FileInfo
}

func (s stamp) same(t stamp) bool {
	return s.info != nil && t.info != nil && os.SameFile(s.info, t.info) && s.info.ModTime().Equal(t.info.ModTime()) && s.info.Size() == t.info.Size()
}

// Load reads the files. The error names the wrong one.
func Load(f Files) (*Identity, error) {
	i := &Identity{files: f, now: time.Now}
	switch f.ClientAuth {
	case "", RequireClientCert, NoClientCert:
	default:
		return nil, fmt.Errorf("TLS client authentication: value %q, allowed: %s, %s", f.ClientAuth, RequireClientCert, NoClientCert)
	}
	for _, p := range []struct{ what, path string }{{"certificate", f.Cert}, {"key", f.Key}, {"CA", f.CA}} {
		if p.path == "" {
			return nil, fmt.Errorf("TLS %s: no file is given, allowed: PEM files for certificate, key and CA, all three", p.what)
		}
	}
	i.refresh()
	return i, i.err
}

// current returns the certificate and trust in use.
func (i *Identity) current() trust {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := i.now(); now.Sub(i.checked) >= recheck {
		i.refresh()
	}
	return i.trust
}

// refresh rereads the files if they changed.
func (i *Identity) refresh() {
	i.checked = i.now()
	var stamps [4]stamp
	changed := i.cert == nil
	for n, path := range []string{i.files.Cert, i.files.Key, i.files.CA, i.files.ClientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			i.err = fmt.Errorf("TLS: %w", err)
			return
		}
		stamps[n] = stamp{info}
		changed = changed || !stamps[n].same(i.stamps[n])
	}
	if !changed {
		return
	}
	t, err := read(i.files)
	if err != nil {
		i.err = err // they may be half written: retry
		return
	}
	i.trust, i.stamps, i.err = t, stamps, nil
}

func read(f Files) (t trust, err error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return t, fmt.Errorf("TLS certificate %s with key %s: %w; allowed: PEM, the key that belongs to the certificate", f.Cert, f.Key, err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return t, fmt.Errorf("TLS certificate %s: %w", f.Cert, err)
		}
	}
	t.cert = &cert
	if t.authorities, err = readAuthorities("CA", f.CA); err != nil {
		return t, err
	}
	t.roots = pool(t.authorities)
	t.clientRoots = t.roots
	if f.ClientCA != "" {
		more, err := readAuthorities("client CA", f.ClientCA)
		if err != nil {
			return t, err
		}
		t.clientRoots = pool(slices.Concat(t.authorities, more))
	}
	return t, nil
}

func readAuthorities(what, path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("TLS %s: %w", what, err)
	}
	list := ParseCertificates(text)
	if len(list) == 0 {
		return nil, fmt.Errorf("TLS %s %s: no certificate in it, allowed: one PEM certificate or more", what, path)
	}
	return list, nil
}

// ParseCertificates returns those of a PEM text. Other blocks are skipped, as
// x509.CertPool does.
func ParseCertificates(text []byte) (list []*x509.Certificate) {
	for len(text) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, cert)
		}
	}
	return list
}

func pool(list []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, cert := range list {
		p.AddCert(cert)
	}
	return p
}

// Err returns why the files could not be read when they last changed; nil if they could.
func (i *Identity) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// Expires returns when the certificate in use ends.
func (i *Identity) Expires() time.Time { return i.current().cert.Leaf.NotAfter }

// Certificate returns the one in use; it may not be modified.
func (i *Identity) Certificate() *x509.Certificate { return i.current().cert.Leaf }

// Authorities returns those trusted to sign nodes; they may not be modified.
func (i *Identity) Authorities() []*x509.Certificate { return i.current().authorities }

// Fingerprint returns the SHA-256 of a certificate's bytes, in hexadecimal.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Server returns the configuration of one accepted connection.
func (i *Identity) Server() *tls.Config {
	t, demand := i.current(), tls.RequireAndVerifyClientCert
	if i.files.ClientAuth == NoClientCert {
		demand = tls.VerifyClientCertIfGiven
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*t.cert},
		ClientAuth: demand, ClientCAs: t.clientRoots,
		// A resumed session would skip the check of the certificate.
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
}

// Client returns the configuration of one connection dialled to host.
func (i *Identity) Client(host string) *tls.Config {
	t := i.current()
	if i.files.Name != "" {
		host = i.files.Name
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: t.roots, ServerName: host, DynamicRecordSizingDisabled: true,
		// Always this one: otherwise, if it does not match the other end's list of
		// authorities, Go would send none and the other end's error would be misleading.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.cert, nil },
	}
}

var errNoCertificate = errors.New("no certificate was presented")

// CheckNode checks whether the presenter of a certificate, the first of the chain, may be
// the node at host: it must be a server's, for Files.Name or else host, and signed by
// Files.CA. The handshake verified only that an authority of clients or of nodes signed
// it.
func (i *Identity) CheckNode(chain []*x509.Certificate, host string) error {
	if err := i.Own(chain); err != nil {
		return err
	}
	cert := chain[0]
	if i.files.Name != "" {
		host = i.files.Name
	}
	if err := cert.VerifyHostname(host); err != nil {
		return fmt.Errorf("certificate of %q: %w", cert.Subject.CommonName, err)
	}
	for _, u := range cert.ExtKeyUsage {
		if u == x509.ExtKeyUsageServerAuth || u == x509.ExtKeyUsageAny {
			return nil
		}
	}
	return fmt.Errorf("certificate of %q is not for a server: allowed for a node: extended key usage serverAuth and clientAuth", cert.Subject.CommonName)
}
