package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/controllers/certificates"
)

// secure configures the connection to a grid with spec.security.tls: with the given files, or with the certificate of
// the grid's tools, which requires permission to read that Secret. It does nothing for other grids.
func (f *reachFlags) secure(ctx context.Context, c *cluster, name string, cfg *client.Config) error {
	grid, err := c.grid(ctx, name)
	if err != nil || !grid.TakesTLS() {
		return err
	}
	f.tls.DefaultName(v1alpha1.TLSName(grid.Name, grid.Namespace))
	if cfg.TLS, err = f.tls.Client(); err != nil || cfg.TLS != nil {
		return err
	}
	secret := certificates.ToolsSecret(grid)
	var s corev1.Secret
	if err := c.core.Get().Namespace(c.namespace).Resource("secrets").Name(secret).Do(ctx).Into(&s); err != nil {
		return fmt.Errorf("the grid uses TLS, and the certificate of its tools cannot be read; give --tls-cert, --tls-key and --tls-ca, or permission to read Secret %s: %w", secret, err)
	}
	pair, err := tls.X509KeyPair(s.Data[certificates.KeyCert], s.Data[certificates.KeyKey])
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(s.Data[certificates.KeyCA]) {
		// The content is not quoted: it may be part of the key.
		return fmt.Errorf("secret %s holds no certificate with its key and authorities in %s, %s and %s; see condition TLSReady of the grid", secret, certificates.KeyCert, certificates.KeyKey, certificates.KeyCA)
	}
	cfg.TLS = client.TLSConfig(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: v1alpha1.TLSName(grid.Name, grid.Namespace),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	})
	return nil
}
