package failoverdrill

import (
	"bytes"
	"crypto/x509"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/internal/pki"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// TestAuthorityIsMadeAnew: another process of the operator with the same key trusts the same recorders, and one with
// another key does not; a certificate is for one drill, and not for reading metrics.
func TestAuthorityIsMadeAnew(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, keyBytes), bytes.Repeat([]byte{2}, keyBytes)
	d := under("").drill
	d.UID = "6f1c1d0e-8a57-4a8e-9d57-0d1c5a7b9e01"
	id, err := identity(d, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _, err := pki.ParsePair(id[certificates.KeyCert], id[certificates.KeyKey])
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key   []byte
		name  string
		holds bool
	}{
		{key, recorder.ServerNameOf(string(d.UID)), true},
		{key, recorder.ServerName, true},
		{key, recorder.ServerNameOf("another"), false},
		{other, recorder.ServerName, false},
	} {
		a, err := authority(test.key)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(a.Cert)
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: test.name, Roots: roots}); (err == nil) != test.holds {
			t.Errorf("key %d, name %s: %v", test.key[0], test.name, err)
		}
	}
	if cert.Subject.CommonName == recorder.MetricsReader {
		t.Error("a recorder may read the metrics of others")
	}
}

// TestMetricsSecret: Prometheus has a certificate before the first drill, keeps it while the key is the same, and gets another
// with another key.
func TestMetricsSecret(t *testing.T) {
	b := newBench(t)
	keys := b.rec.Keys.(StoredKey)
	read := func() *x509.Certificate {
		t.Helper()
		if err := keys.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: MetricsSecret}, s); err != nil {
			t.Fatal(err)
		}
		cert, _, err := pki.ParsePair(s.Data[certificates.KeyCert], s.Data[certificates.KeyKey])
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(s.Data[certificates.KeyCA]) {
			t.Fatal("the Secret has no authority")
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || cert.Subject.CommonName != recorder.MetricsReader {
			t.Errorf("%s: %v", cert.Subject, err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
			t.Error("the metrics certificate is accepted for a recorder")
		}
		return cert
	}
	first := read()
	if again := read(); !again.Equal(first) {
		t.Error("the certificate changed although the key is the same")
	}
	if err := b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: KeySecret}}); err != nil {
		t.Fatal(err)
	}
	if then := read(); then.Equal(first) {
		t.Error("the certificate is of the old key")
	}
}
