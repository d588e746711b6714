package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	first, err := Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if string(first.PEM) != string(again.PEM) {
		t.Error("loading made another authority")
	}
	certPEM, keyPEM, err := again.Issue(Identity{
		User: "system:node:n", Groups: []string{"system:nodes"}, Names: []string{"n"}, Addrs: []netip.Addr{netip.MustParseAddr("10.1.2.3")},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(first.Cert)
	for _, name := range []string{"n", "10.1.2.3"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			t.Errorf("as server %s: %v", name, err)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("as client: %v", err)
	}
	if leaf.Subject.CommonName != "system:node:n" || strings.Join(leaf.Subject.Organization, ",") != "system:nodes" {
		t.Errorf("subject is %s", leaf.Subject)
	}
	if info, err := os.Stat(filepath.Join(dir, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the authority's key is readable by others: %v, %v", info.Mode(), err)
	}
}

func TestDamagedAuthority(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, "test"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "test"); err == nil || !strings.Contains(err.Error(), "down and up") {
		t.Errorf("a damaged authority returned %v", err)
	}
}
