package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// TLS gives the configuration of one connection to a node; host is the host of the
// address dialled. It is called for each connection, from any goroutine.
type TLS func(host string) (*tls.Config, error)

// PEMFiles are the files of TLSFiles.
type PEMFiles = secure.Files

// TLSFiles reads certificate, key and CA from PEM files, at the first connection and
// again when they change: certificates can be replaced under a running client.
func TLSFiles(f PEMFiles) TLS {
	load := sync.OnceValues(func() (*secure.Identity, error) { return secure.Load(f) })
	return func(host string) (*tls.Config, error) {
		id, err := load()
		if err != nil {
			return nil, err
		}
		return id.Client(host), nil
	}
}

// TLSAuthority trusts the authorities of a PEM file, read anew for each connection, and presents no
// certificate: for clients that authenticate by Config.Token. name is the name in the nodes'
// certificates; "" for the host dialled.
func TLSAuthority(ca, name string) TLS {
	return func(host string) (*tls.Config, error) {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("TLS CA: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("TLS CA %s: no certificate in it, allowed: one PEM certificate or more", ca)
		}
		if name != "" {
			host = name
		}
		return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true}, nil
	}
}

// TLSConfig uses a configuration of the caller's. ServerName, if it is empty, is the
// host dialled; TLS 1.3 is the least.
func TLSConfig(c *tls.Config) TLS {
	return func(host string) (*tls.Config, error) {
		c := c.Clone()
		if c.ServerName == "" {
			c.ServerName = host
		}
		c.MinVersion = max(c.MinVersion, tls.VersionTLS13)
		return c, nil
	}
}

// ErrTLS is the failure of a connection because of TLS: only one end speaks it, or one does
// not accept the other's certificate. The text says which and what to do.
var ErrTLS = errors.New("TLS")

// tlsError is ErrTLS at an address.
type tlsError struct {
	address string
	cause   error
}

func (e *tlsError) Error() string {
	s := e.address + ": " + e.cause.Error()
	if errors.Is(e.cause, secure.ErrPlain) {
		s += "; start the nodes with --tls-cert, --tls-key and --tls-ca, or leave Config.TLS empty"
	}
	return s
}

// Is matches ErrTLS.
func (e *tlsError) Is(target error) bool { return target == ErrTLS }

// Unwrap is the cause.
func (e *tlsError) Unwrap() error { return e.cause }

// plainToTLS reports an answer to plain text that is TLS.
func plainToTLS(address string) error {
	return &tlsError{address, fmt.Errorf("%w: set Config.TLS (--tls-cert, --tls-key, --tls-ca)", secure.ErrTLS)}
}
