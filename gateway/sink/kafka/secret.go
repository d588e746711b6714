package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Credentials are files, read again for each connection: what is rotated is taken up.
type Credentials struct {
	Mechanism              string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	UserFile, PasswordFile string
}

// SASL returns the mechanism, nil for none.
func (c Credentials) SASL() (sasl.Mechanism, error) {
	if c == (Credentials{}) {
		return nil, nil
	}
	if c.UserFile == "" || c.PasswordFile == "" {
		return nil, fmt.Errorf("SASL %.40q with user file %q and password file %q, allowed: all three", c.Mechanism, c.UserFile, c.PasswordFile)
	}
	read := func() (user, password string, err error) {
		if user, err = secret(c.UserFile); err == nil {
			password, err = secret(c.PasswordFile)
		}
		return user, password, err
	}
	if _, _, err := read(); err != nil {
		return nil, err
	}
	scrams := func(context.Context) (scram.Auth, error) {
		user, password, err := read()
		return scram.Auth{User: user, Pass: password}, err
	}
	switch c.Mechanism {
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			user, password, err := read()
			return plain.Auth{User: user, Pass: password}, err
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(scrams), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(scrams), nil
	}
	return nil, fmt.Errorf("SASL mechanism is %.40q, allowed: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", c.Mechanism)
}

// secret is a file's content without the line end.
func secret(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if b = bytes.TrimRight(b, "\r\n"); len(b) == 0 {
		return "", fmt.Errorf("%s is empty, allowed: a line", file)
	}
	return string(b), nil
}

// TLSFiles are PEM files. CA empty: no TLS, unless System.
type TLSFiles struct {
	CA, Cert, Key string
	Name          string // in the brokers' certificates; "" is the host that is dialled
	System        bool   // the authorities of the machine are trusted
}

// Config returns nil for no TLS. A client certificate is read again for each connection.
func (f TLSFiles) Config() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("certificate file %q and key file %q, allowed: both or none", f.Cert, f.Key)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.Name}
	switch {
	case f.CA != "":
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate, allowed: a PEM file with one or more", f.CA)
		}
	case !f.System:
		return nil, fmt.Errorf("TLS without a file of authorities, allowed: a PEM file, or those of the machine")
	}
	if f.Cert == "" {
		return cfg, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		return &pair, err
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return cfg, nil
}
