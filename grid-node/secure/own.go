package secure

import (
	"crypto/x509"
	"fmt"
)

// Own checks whether an authority of nodes, one of Files.CA, signed the certificate that
// is the first of the chain. The handshake has verified that one of them did or, with
// Files.ClientCA, an authority for clients only.
func (i *Identity) Own(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errNoCertificate
	}
	if i.files.ClientCA == "" {
		return nil
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: i.current().roots, Intermediates: pool(chain[1:]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fmt.Errorf("certificate of %q is not of an authority that signs nodes: %w", chain[0].Subject.CommonName, err)
	}
	return nil
}
