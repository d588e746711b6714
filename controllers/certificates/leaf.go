package certificates

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// Leaf is the desired certificate.
type Leaf struct {
	// Name is its common name, Groups its organizations.
	Name   string
	Groups []string
	// DNS names of a server; none for clients.
	DNS []string
}

// Why returns why the certificate in use has to be replaced; "" if it is good. cert is nil if there is none that can be
// read.
func (l Leaf) Why(cert *x509.Certificate, t *Trust, now time.Time, p Policy) string {
	switch {
	case cert == nil:
		return "there is none"
	case !now.Before(cert.NotAfter):
		return "it expired at " + cert.NotAfter.UTC().Format(time.RFC3339)
	case t.Signing != nil && cert.CheckSignatureFrom(t.Signing.Cert) != nil:
		return "another authority signs now"
	case cert.Subject.CommonName != l.Name || !slices.Equal(cert.Subject.Organization, l.Groups) || !slices.Equal(cert.DNSNames, l.DNS) || !l.usages(cert):
		return "it is for another name or purpose"
	case !now.Before(RenewAt(cert, p)):
		return "it expires at " + cert.NotAfter.UTC().Format(time.RFC3339)
	}
	return ""
}

func (l Leaf) usages(cert *x509.Certificate) bool {
	server := slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	return slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) && server == (len(l.DNS) > 0)
}

// RenewAt is when a certificate is replaced: RenewBefore before it expires. One that was cut short because its
// authority expires sooner is replaced in its last third, so that it is not renewed in a loop.
func RenewAt(cert *x509.Certificate, p Policy) time.Time {
	third := cert.NotAfter.Sub(cert.NotBefore) / 3
	if p.RenewBefore < p.Duration && cert.NotAfter.Sub(cert.NotBefore) >= p.Duration {
		third = p.RenewBefore
	}
	return cert.NotAfter.Add(-third)
}

// Issue signs the certificate. It never outlives its authority.
func (l Leaf) Issue(t *Trust, now time.Time, p Policy) (certPEM, keyPEM []byte, err error) {
	if t.Signing == nil {
		return nil, nil, fmt.Errorf("the key of the authority is lost; the next authority signs from %s on", t.NextSince.Add(p.Overlap).UTC().Format(time.RFC3339))
	}
	end := now.Add(p.Duration)
	if authority := t.Signing.Cert.NotAfter; authority.Before(end) {
		end = authority
	}
	return t.Signing.Issue(pki.Identity{
		User: l.Name, Groups: l.Groups, Names: l.DNS, ClientOnly: len(l.DNS) == 0,
		Valid: pki.Period{From: now.Add(-backdate), To: end},
	})
}
