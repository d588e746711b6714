// Package pki is a certificate authority: ECDSA P-256, PEM. The operator keeps one per
// grid in a Secret; the local cluster, `grid-node dev --tls`, benchmarks and tests keep
// theirs in a directory.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// life is longer than any run with these certificates.
const life = 5 * 365 * 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
	PEM  []byte // of Cert
}

// Identity is the subject of a certificate: a client by user and groups, a server by its names and
// addresses.
type Identity struct {
	User   string   // common name
	Groups []string // organizations
	Names  []string // DNS names
	URIs   []string // URI names
	Addrs  []netip.Addr
	// ClientOnly omits the server usage.
	ClientOnly bool
	// Life is the validity from now; 0 is five years.
	Life time.Duration
	// Valid is the validity, instead of Life.
	Valid Period
}

// Period of time.
type Period struct{ From, To time.Time }

// Load reads the authority kept in dir (ca.crt, ca.key), or creates it under that name.
func Load(dir, name string) (*Authority, error) {
	certPath, keyPath := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if _, err := os.Stat(certPath); errors.Is(err, os.ErrNotExist) {
		if err := create(certPath, keyPath, name); err != nil {
			return nil, err
		}
	}
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	a, err := Parse(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, or take the cluster down and up again", dir, err)
	}
	return a, nil
}

// Parse reads an authority from PEM. Errors do not quote the input.
func Parse(certPEM, keyPEM []byte) (*Authority, error) {
	cert, key, err := ParsePair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA || !cert.BasicConstraintsValid {
		return nil, errors.New("the certificate is not a CA certificate")
	}
	return &Authority{Cert: cert, Key: key, PEM: EncodeCert(cert)}, nil
}

// ParsePair reads a certificate, the first of the text, and the ECDSA key that belongs to it.
func ParsePair(certPEM, keyPEM []byte) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certBlock, _ := pem.Decode(certPEM)
	if certBlock == nil || certBlock.Type != "CERTIFICATE" {
		return nil, nil, errors.New("there is no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, errors.New("the certificate cannot be read")
	}
	keyBlock, _ := pem.Decode(keyPEM)
	if keyBlock == nil {
		return nil, nil, errors.New("there is no private key in PEM")
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, errors.New("the private key cannot be read, allowed: ECDSA, as EC PRIVATE KEY")
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(&key.PublicKey) {
		return nil, nil, errors.New("the private key does not belong to the certificate")
	}
	return cert, key, nil
}

// New creates an authority.
func New(subject pkix.Name, valid Period) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return Of(key, subject, valid)
}

// Of creates the authority of a key. Authorities of the same key and name trust each other's
// signatures.
func Of(key *ecdsa.PrivateKey, subject pkix.Name, valid Period) (*Authority, error) {
	template := newTemplate(subject)
	if !valid.To.IsZero() {
		template.NotBefore, template.NotAfter = valid.From, valid.To
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{Cert: cert, Key: key, PEM: EncodeCert(cert)}, nil
}

func create(certPath, keyPath, name string) error {
	a, err := New(pkix.Name{CommonName: name}, Period{})
	if err != nil {
		return err
	}
	keyPEM, err := EncodeKey(a.Key)
	if err != nil {
		return err
	}
	// The certificate last: its presence means both exist.
	if err := WriteFile(keyPath, keyPEM, 0o600); err != nil {
		return err
	}
	return WriteFile(certPath, a.PEM, 0o644)
}

// Issue signs a certificate, usable as client and (unless ClientOnly) as server.
func (a *Authority) Issue(id Identity) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := newTemplate(pkix.Name{CommonName: id.User, Organization: id.Groups})
	if id.Life != 0 {
		template.NotAfter = time.Now().Add(id.Life)
	}
	if !id.Valid.To.IsZero() {
		template.NotBefore, template.NotAfter = id.Valid.From, id.Valid.To
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if !id.ClientOnly {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	template.DNSNames = id.Names
	for _, addr := range id.Addrs {
		template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
	}
	for _, name := range id.URIs {
		u, err := url.Parse(name)
		if err != nil {
			return nil, nil, err
		}
		template.URIs = append(template.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, &key.PublicKey, a.Key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = EncodeKey(key)
	return encode(der), keyPEM, err
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail on Linux
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour), // tolerate a clock stepped back
		NotAfter:     time.Now().Add(life),
	}
}

// EncodeCert is the certificate in PEM.
func EncodeCert(cert *x509.Certificate) []byte { return encode(cert.Raw) }

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// EncodeKey is the key in PEM.
func EncodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// Files are the names of Save's files.
type Files struct{ Cert, Key, CA string }

// Save issues a certificate and writes name.crt, name.key and ca.crt into dir.
func (a *Authority) Save(dir, name string, id Identity) (Files, error) {
	f := Files{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"), CA: filepath.Join(dir, "ca.crt")}
	cert, key, err := a.Issue(id)
	if err != nil {
		return f, err
	}
	return f, errors.Join(WriteFile(f.Key, key, 0o600), WriteFile(f.Cert, cert, 0o644), WriteFile(f.CA, a.PEM, 0o644))
}

// WriteFile replaces a file atomically; its directory is created.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, content, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
