package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// Keys of Secrets.
const (
	KeyCert = "tls.crt"
	KeyKey  = "tls.key"
	KeyCA   = "ca.crt"

	keyNextCert = "next.crt"
	keyNextKey  = "next.key"
	keyPrevious = "previous.crt"
)

// Annotations of the Secret that holds a Trust. They contain no secrets.
const (
	annotationNextSince    = "ordergrid.dev/next-since"
	annotationSigningSince = "ordergrid.dev/signing-since"
	annotationAsked        = "ordergrid.dev/authority-asked"
)

// maxAuthorities bounds the authorities read from a Secret.
const maxAuthorities = 16

// Read returns the Trust that a Secret holds, as Write wrote it. The error names the key of the Secret, never its
// content.
func Read(data map[string][]byte, annotations map[string]string) (*Trust, error) {
	t := &Trust{Asked: annotations[annotationAsked]}
	var err error
	if t.Signing, err = readAuthority(data, KeyCert, KeyKey); err != nil {
		return nil, err
	}
	if t.Next, err = readAuthority(data, keyNextCert, keyNextKey); err != nil {
		return nil, err
	}
	if text := data[keyPrevious]; len(text) > 0 {
		if t.Previous = secure.ParseCertificates(text); len(t.Previous) == 0 || len(t.Previous) > maxAuthorities {
			return nil, fmt.Errorf("key %s: %d certificates, allowed: 1 to %d", keyPrevious, len(t.Previous), maxAuthorities)
		}
	}
	if t.SigningSince, err = readTime(annotations, annotationSigningSince, t.Signing != nil); err != nil {
		return nil, err
	}
	if t.NextSince, err = readTime(annotations, annotationNextSince, t.Next != nil); err != nil {
		return nil, err
	}
	if t.Signing == nil && t.Next == nil {
		return nil, fmt.Errorf("keys %s and %s: there is no authority", KeyCert, KeyKey)
	}
	return t, nil
}

func readAuthority(data map[string][]byte, cert, key string) (*pki.Authority, error) {
	if len(data[cert]) == 0 && len(data[key]) == 0 {
		return nil, nil
	}
	a, err := pki.Parse(data[cert], data[key])
	if err != nil {
		return nil, fmt.Errorf("keys %s and %s: %w", cert, key, err)
	}
	return a, nil
}

func readTime(annotations map[string]string, name string, required bool) (time.Time, error) {
	if !required {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, annotations[name])
	if err != nil {
		return t, fmt.Errorf("annotation %s: value %.40q is not a time, allowed: as 2006-01-02T15:04:05Z", name, annotations[name])
	}
	return t, nil
}

// Write is a Trust as the content and annotations of a Secret.
func (t *Trust) Write() (data map[string][]byte, annotations map[string]string, err error) {
	data, annotations = map[string][]byte{}, map[string]string{}
	for _, x := range []struct {
		authority *pki.Authority
		cert, key string
		since     string
		at        time.Time
	}{
		{t.Signing, KeyCert, KeyKey, annotationSigningSince, t.SigningSince},
		{t.Next, keyNextCert, keyNextKey, annotationNextSince, t.NextSince},
	} {
		if x.authority == nil {
			continue
		}
		if data[x.key], err = pki.EncodeKey(x.authority.Key); err != nil {
			return nil, nil, err
		}
		data[x.cert] = x.authority.PEM
		annotations[x.since] = x.at.UTC().Format(time.RFC3339)
	}
	for _, cert := range t.Previous {
		data[keyPrevious] = append(data[keyPrevious], pki.EncodeCert(cert)...)
	}
	if t.Asked != "" {
		annotations[annotationAsked] = t.Asked
	}
	return data, annotations, nil
}

// ReadLeaf is the certificate of a Secret that the operator issued; nil if it, or its key, cannot be used.
func ReadLeaf(data map[string][]byte) *x509.Certificate {
	cert, _, err := pki.ParsePair(data[KeyCert], data[KeyKey])
	if err != nil {
		return nil
	}
	return cert
}

// Check validates a Secret that is managed externally for grid nodes (server, name is their DNS name) or clients. The
// certificate is returned if it can be read. Errors do not contain the keys' content.
func Check(data map[string][]byte, server bool, name string, now time.Time) (*x509.Certificate, error) {
	for _, key := range []string{KeyCert, KeyKey, KeyCA} {
		if len(bytes.TrimSpace(data[key])) == 0 {
			return nil, fmt.Errorf("key %s is missing or empty, needed: %s, %s and %s", key, KeyCert, KeyKey, KeyCA)
		}
	}
	chain := secure.ParseCertificates(data[KeyCert])
	if len(chain) == 0 {
		return nil, fmt.Errorf("key %s: there is no certificate in PEM", KeyCert)
	}
	cert := chain[0]
	if !belongs(data) {
		return cert, fmt.Errorf("key %s: it is not a private key in PEM that belongs to the certificate in %s", KeyKey, KeyCert)
	}
	authorities := secure.ParseCertificates(data[KeyCA])
	if len(authorities) == 0 {
		return cert, fmt.Errorf("key %s: there is no certificate in PEM", KeyCA)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if server {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	} else {
		name = ""
	}
	for _, usage := range usages { // Verify accepts any one of several usages
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return cert, fmt.Errorf("key %s: %w", KeyCert, explain(err, usage, name))
		}
	}
	return cert, nil
}

func explain(err error, usage x509.ExtKeyUsage, name string) error {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate is valid from %s to %s, which is not now", invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		word := "clientAuth"
		if usage == x509.ExtKeyUsageServerAuth {
			word = "serverAuth"
		}
		return fmt.Errorf("the certificate does not have the extended key usage %s", word)
	case errors.As(err, &unknown):
		return fmt.Errorf("no authority in %s signed the certificate", KeyCA)
	case errors.As(err, &host):
		return fmt.Errorf("the certificate is not for the DNS name %s", name)
	}
	return errors.New("the certificate cannot be verified")
}

// belongs reports whether the private key is that of the certificate. Its error may quote the Secret, so it is not
// returned.
func belongs(data map[string][]byte) bool {
	_, err := tls.X509KeyPair(data[KeyCert], data[KeyKey])
	return err == nil
}
