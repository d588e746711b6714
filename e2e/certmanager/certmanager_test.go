package certmanager

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestIssuesAndRenews: an OrderGrid asks, cert-manager issues, what is in the Secrets works in nodes and tools, and continues
// to work when cert-manager renews it. The authority is a root, or one that a root has signed.
func TestIssuesAndRenews(t *testing.T) {
	for _, issuer := range []string{"root", "desk"} {
		t.Run(issuer, func(t *testing.T) {
			w := newWorld(t)
			g := w.grid(issuer)
			w.says(g, metav1.ConditionFalse, "CertificateNotReady", "rtd.tls-nodes is not ready")
			w.authorities()
			name := api.TLSName(g.Name, g.Namespace)
			nodes, tools, oms := w.mounted("rtd.tls-nodes", name), w.mounted("rtd.tls-tools", name), w.mounted("rtd.tls-client-oms", name)
			w.says(g, metav1.ConditionTrue, "CertificatesValid", "cert-manager has issued")
			w.describes(g, nodes)
			checkLeaf(t, nodes.Certificate(), name)
			talk(t, nodes, name, nodes, tools, oms)

			w.quietAfter(g)
			first, authorities := nodes.Certificate(), nodes.Authorities()
			w.renew("rtd.tls-nodes")
			w.mount(w.ready("rtd.tls-nodes"), nodes) // as the kubelet does
			envtest.Eventually(t, "the node has read the new certificate", func(context.Context) error {
				if nodes.Certificate().SerialNumber.Cmp(first.SerialNumber) == 0 {
					return fmt.Errorf("it has the one before: %w", errors.Join(nodes.Err(), errUnchanged))
				}
				return nil
			})
			if !slices.EqualFunc(authorities, nodes.Authorities(), (*x509.Certificate).Equal) {
				t.Error("the authority has changed")
			}
			if bytes.Equal(first.RawSubjectPublicKeyInfo, nodes.Certificate().RawSubjectPublicKeyInfo) {
				t.Error("the renewed certificate has the key of the one before")
			}
			talk(t, nodes, name, nodes, tools, oms)
			w.look(g, "2")
			w.describes(g, nodes)
			w.says(g, metav1.ConditionTrue, "CertificatesValid", "cert-manager has issued")
		})
	}
}

var errUnchanged = errors.New("unchanged")

// TestSelfSignedIssuer: each certificate is its own authority, so nodes would reject all others. TLSReady reports it.
func TestSelfSignedIssuer(t *testing.T) {
	w := newWorld(t)
	w.authorities()
	g := w.grid("selfsigned")
	name := api.TLSName(g.Name, g.Namespace)
	nodes, tools := w.mounted("rtd.tls-nodes", name), w.mounted("rtd.tls-tools", name)
	if handshake(nodes.Server(), tools.Client(name)) == nil {
		t.Fatal("a node takes a certificate of another authority")
	}
	w.says(g, metav1.ConditionFalse, "SecretInvalid", "rtd.tls-tools")
}

// TestAuthorityReplaced: cert-manager leaves certificates of the authority before as they are, each until it is renewed. In
// between nodes refuse tools, and TLSReady reports what to renew.
func TestAuthorityReplaced(t *testing.T) {
	w := newWorld(t)
	w.authorities()
	g := w.grid("root")
	name := api.TLSName(g.Name, g.Namespace)
	tools := w.mounted("rtd.tls-tools", name)
	w.mounted("rtd.tls-client-oms", name)
	w.says(g, metav1.ConditionTrue, "CertificatesValid", "")
	w.renew("root")
	w.renew("rtd.tls-nodes")
	nodes := w.mounted("rtd.tls-nodes", name)
	if handshake(nodes.Server(), tools.Client(name)) == nil {
		t.Fatal("the authority is not replaced: nodes take a certificate of before")
	}
	w.look(g, "1")
	w.says(g, metav1.ConditionFalse, "SecretInvalid", "cmctl renew -n "+w.ns+" rtd.tls-nodes rtd.tls-tools")
	for _, rest := range []string{"rtd.tls-tools", "rtd.tls-client-oms"} {
		w.renew(rest)
	}
	w.look(g, "2")
	w.says(g, metav1.ConditionTrue, "CertificatesValid", "")
	talk(t, nodes, name, nodes, w.mounted("rtd.tls-tools", name), w.mounted("rtd.tls-client-oms", name))
}

// held is an identity in files, as a pod has it.
type held struct {
	*secure.Identity
	dir string
}

// mounted is the Secret of a Certificate that is ready, read with the node's code.
func (w *world) mounted(certificate, name string) *held {
	w.t.Helper()
	envtest.Eventually(w.t, "the operator asks for "+certificate, func(ctx context.Context) error {
		u := w.object("Certificate", certificate, nil)
		return w.client.Get(ctx, client.ObjectKeyFromObject(u), u)
	})
	h := &held{dir: w.t.TempDir()}
	w.mount(w.ready(certificate), h)
	file := func(key string) string { return filepath.Join(h.dir, key) }
	var err error
	h.Identity, err = secure.Load(secure.Files{Cert: file("tls.crt"), Key: file("tls.key"), CA: file("ca.crt"), Name: name})
	w.must(err)
	return h
}

func (w *world) mount(s *corev1.Secret, h *held) {
	w.t.Helper()
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if len(s.Data[key]) == 0 {
			w.t.Fatalf("Secret %s has no %s", s.Name, key)
		}
		w.must(os.WriteFile(filepath.Join(h.dir, key), s.Data[key], 0o600))
	}
}

// renew asks cert-manager for it as `cmctl renew` does.
func (w *world) renew(certificate string) {
	w.t.Helper()
	u := w.object("Certificate", certificate, nil)
	w.get(u)
	revision, _, _ := unstructured.NestedInt64(u.Object, "status", "revision")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = append(conditions, map[string]any{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "a test asks",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": u.GetGeneration()})
	w.must(unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"))
	w.must(w.client.Status().Update(w.t.Context(), u))
	envtest.Eventually(w.t, "cert-manager renews", func(context.Context) error {
		w.get(u)
		if now, _, _ := unstructured.NestedInt64(u.Object, "status", "revision"); now != revision+1 {
			return fmt.Errorf("revision %d after %d", now, revision)
		}
		return nil
	})
}

// describes waits until status.tls is of the nodes' certificate.
func (w *world) describes(g *api.OrderGrid, nodes *held) {
	w.t.Helper()
	cert := nodes.Certificate()
	envtest.Eventually(w.t, "status.tls is of the nodes' certificate", func(context.Context) error {
		w.get(g)
		s := g.Status.TLS
		switch renews := cert.NotAfter.Add(-g.Spec.Security.TLS.RenewBefore.Duration); {
		case s == nil || s.Expires == nil || s.Renews == nil:
			return fmt.Errorf("it is %+v", s)
		case !s.Expires.Time.Equal(cert.NotAfter) || !s.Renews.Time.Equal(renews) || s.Serial != cert.SerialNumber.Text(16):
			return fmt.Errorf("it is expires %s, renews %s, serial %q; want %s, %s, %x", s.Expires, s.Renews, s.Serial, cert.NotAfter, renews, cert.SerialNumber)
		}
		return nil
	})
}

func checkLeaf(t *testing.T, cert *x509.Certificate, name string) {
	t.Helper()
	if !slices.Equal(cert.DNSNames, []string{name}) || cert.Subject.CommonName != "rtd" || !slices.Equal(cert.Subject.Organization, []string{"ordergrid.dev:nodes"}) {
		t.Errorf("the nodes' certificate is of %s for %s", cert.Subject, cert.DNSNames)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		if !slices.Contains(cert.ExtKeyUsage, usage) {
			t.Errorf("the nodes' certificate has the usages %v", cert.ExtKeyUsage)
		}
	}
	if got := cert.NotAfter.Sub(cert.NotBefore); got != 90*24*time.Hour {
		t.Errorf("the nodes' certificate is good for %s", got)
	}
}

// talk has each end connect to a node. Only the first may be taken for a node.
func talk(t *testing.T, server *held, name string, clients ...*held) {
	t.Helper()
	for i, c := range clients {
		if err := handshake(server.Server(), c.Client(name)); err != nil {
			t.Errorf("client %d (%s): %v", i, c.Certificate().Subject, err)
		}
		chain := secure.ParseCertificates(read(t, filepath.Join(c.dir, "tls.crt")))
		if err := server.CheckNode(chain, name); (err == nil) != (i == 0) {
			t.Errorf("%s as a node: %v", c.Certificate().Subject, err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// handshake is nil if both ends are content with the other.
func handshake(server, dialling *tls.Config) error {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x")) // the dialling end has not been judged before it reads
		}
		_ = a.Close()
		done <- err
	}()
	c := tls.Client(b, dialling)
	_, err := c.Read(make([]byte, 1))
	_ = b.Close()
	return errors.Join(err, <-done)
}

// quietAfter has the operator reconcile an unchanged state: it writes nothing of cert-manager's.
func (w *world) quietAfter(g *api.OrderGrid) {
	w.t.Helper()
	u := w.object("Certificate", "rtd.tls-nodes", nil)
	w.get(u)
	before := u.GetGeneration()
	w.writes.Forget()
	// The missing one is written last, and shows that the pass is over.
	w.must(w.client.Delete(w.t.Context(), w.object("Certificate", "rtd.tls-client-oms", nil)))
	w.look(g, "1")
	w.mounted("rtd.tls-client-oms", "")
	var wrote []string
	for _, request := range w.writes.All() {
		if strings.Contains(request, "cert-manager.io") && !strings.Contains(request, "rtd.tls-client-oms") {
			wrote = append(wrote, request)
		}
	}
	w.get(u)
	if len(wrote) > 0 || u.GetGeneration() != before {
		w.t.Errorf("a look at good certificates wrote %v, generation %d after %d", wrote, u.GetGeneration(), before)
	}
}
