package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Files are PEM files. All are required but Name.
type Files struct {
	Cert string // certificate, with intermediate ones behind it
	Key  string // its private key
	CA   string // the authorities that the other end's certificate may be of
	// Name is what the certificates of nodes are for. "": the address dialled.
	Name string
}

// recheck is how long files are believed to be unchanged.
const recheck = time.Second

// Identity is what a process presents and whom it trusts. It is safe for
// concurrent use. Files that changed are read again at the next handshake; if that
// fails, what was read before stays in use and Err says why.
type Identity struct {
	files Files

	mu      sync.Mutex
	now     func() time.Time
	checked time.Time
	stamps  [3]stamp
	cert    *tls.Certificate
	roots   *x509.CertPool
	err     error
}

// stamp tells one state of a file from the next.
type stamp struct {
	info os.FileInfo
}

func (s stamp) same(t stamp) bool {
	return s.info != nil && t.info != nil && os.SameFile(s.info, t.info) && s.info.ModTime().Equal(t.info.ModTime()) && s.info.Size() == t.info.Size()
}

// Load reads the files. The error says which one is wrong.
func Load(f Files) (*Identity, error) {
	i := &Identity{files: f, now: time.Now}
	for _, p := range []struct{ what, path string }{{"certificate", f.Cert}, {"key", f.Key}, {"CA", f.CA}} {
		if p.path == "" {
			return nil, fmt.Errorf("TLS %s: no file is given, allowed: PEM files for certificate, key and CA, all three", p.what)
		}
	}
	i.refresh()
	return i, i.err
}

// current is the certificate and the trust of this moment.
func (i *Identity) current() (*tls.Certificate, *x509.CertPool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := i.now(); now.Sub(i.checked) >= recheck {
		i.refresh()
	}
	return i.cert, i.roots
}

// refresh reads the files if they are not those read last.
func (i *Identity) refresh() {
	i.checked = i.now()
	var stamps [3]stamp
	changed := i.cert == nil
	for n, path := range []string{i.files.Cert, i.files.Key, i.files.CA} {
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
	cert, roots, err := read(i.files)
	if err != nil {
		i.err = err // perhaps half of them are written: they are looked at again
		return
	}
	i.cert, i.roots, i.stamps, i.err = cert, roots, stamps, nil
}

func read(f Files) (*tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS certificate %s with key %s: %w; allowed: PEM, the key that belongs to the certificate", f.Cert, f.Key, err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return nil, nil, fmt.Errorf("TLS certificate %s: %w", f.Cert, err)
		}
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("TLS CA %s: no certificate in it, allowed: one PEM certificate or more", f.CA)
	}
	return &cert, roots, nil
}

// Err is why the files could not be read when they last changed; nil if they
// could.
func (i *Identity) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// Expires is when the certificate in use ends.
func (i *Identity) Expires() time.Time {
	cert, _ := i.current()
	return cert.Leaf.NotAfter
}

// Server is the configuration of one accepted connection.
func (i *Identity) Server() *tls.Config {
	cert, roots := i.current()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
		// A session that is resumed would skip the look at the certificate.
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
}

// Client is the configuration of one connection dialled to host.
func (i *Identity) Client(host string) *tls.Config {
	cert, roots := i.current()
	if i.files.Name != "" {
		host = i.files.Name
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: host, DynamicRecordSizingDisabled: true,
		// Always this one: without it the other end says what is missing, with a list
		// of authorities that it does not match Go would send none.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil },
	}
}

var errNoCertificate = errors.New("no certificate was presented")

// CheckNode says whether the presenter of cert may speak as the node at host: its
// certificate has to be a server's, of Files.Name or else of host. The chain was
// verified by the handshake.
func (i *Identity) CheckNode(cert *x509.Certificate, host string) error {
	if cert == nil {
		return errNoCertificate
	}
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
	return fmt.Errorf("certificate of %q is no server's: allowed for a node: extended key usage serverAuth and clientAuth", cert.Subject.CommonName)
}
