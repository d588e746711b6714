package certmanager

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// wanted is set by make certmanager: the build takes minutes.
const wanted = "ORDERGRID_CERTMANAGER"

var exe string // cert-manager's controllers

func TestMain(m *testing.M) {
	if os.Getenv(wanted) == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	var err error
	exe, err = Ensure(ctx, envtest.Root(), func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	crds, err := CRDs(ctx, envtest.Root())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(envtest.Run(m, envtest.WithCRDsIn(crds)))
}

// world is a namespace with cert-manager and OrderGrid's operator at work.
type world struct {
	t      *testing.T
	client client.Client
	ns     string
	writes *envtest.Requests // the operator's
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if exe == "" {
		t.Skip("builds cert-manager: make certmanager, or " + wanted + "=1")
	}
	cfg := envtest.Config(t)
	w := &world{t: t, client: envtest.Client(t, cfg), writes: envtest.Writes()}
	w.ns = envtest.Namespace(t, w.client, "certmanager-")
	w.certManager()
	mgr, err := ctrl.NewManager(w.writes.Of(cfg), ctrl.Options{
		Scheme: envtest.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.ns: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	nowhere := nodestatus.NewClient(time.Second, func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED })
	r := &ordergrid.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("operator"),
		Clock: clock.RealClock{}, Nodes: nowhere, Defaults: ordergrid.Defaults{Image: "grid-node:test"}}
	w.must(r.SetupWithManager(mgr, 1))
	t.Cleanup(envtest.Operate(t, mgr))
	return w
}

// certManager runs cert-manager for the namespace until the test ends.
func (w *world) certManager() {
	log, err := os.Create(filepath.Join(w.t.TempDir(), "cert-manager.log"))
	w.must(err)
	cmd := exec.Command(exe, "-kubeconfig", envtest.Kubeconfig(w.t), "-namespace", w.ns, "-v", "2")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.must(cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if text, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("cert-manager:\n%s", text)
		}
		_ = log.Close()
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// object is one of cert-manager's.
func (w *world) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": kind}}
	u.SetNamespace(w.ns)
	u.SetName(name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	w.must(w.client.Create(w.t.Context(), o))
}

func (w *world) get(o client.Object) {
	w.t.Helper()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
}

// authorities makes the issuers selfsigned, root (whose authority is its own) and desk (whose authority root has signed, as a
// bank's are).
func (w *world) authorities() {
	w.t.Helper()
	w.create(w.object("Issuer", "selfsigned", map[string]any{"selfSigned": map[string]any{}}))
	for _, a := range []struct{ name, signer string }{{"root", "selfsigned"}, {"desk", "root"}} {
		w.create(w.object("Certificate", a.name, map[string]any{
			"isCA": true, "commonName": a.name, "secretName": a.name + "-authority", "duration": "26280h",
			"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256)},
			"issuerRef":  map[string]any{"name": a.signer, "kind": "Issuer", "group": "cert-manager.io"},
		}))
		w.create(w.object("Issuer", a.name, map[string]any{"ca": map[string]any{"secretName": a.name + "-authority"}}))
	}
}

// condition is the status and the message of a condition of one of cert-manager's objects.
func condition(u *unstructured.Unstructured, kind string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return fmt.Sprint(m["status"]), fmt.Sprint(m["message"])
		}
	}
	return "", "there is no condition " + kind
}

// ready waits until cert-manager has issued a Certificate, and gives its Secret.
func (w *world) ready(name string) *corev1.Secret {
	w.t.Helper()
	u := w.object("Certificate", name, nil)
	envtest.Eventually(w.t, "Certificate "+name+" is ready", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		issuing, _ := condition(u, "Issuing")
		if status, message := condition(u, "Ready"); status != "True" || issuing == "True" {
			return fmt.Errorf("ready %q, issuing %q: %s", status, issuing, message)
		}
		return nil
	})
	secret, _, _ := unstructured.NestedString(u.Object, "spec", "secretName")
	return w.secret(secret)
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	w.get(s)
	return s
}

// grid makes an OrderGrid with certificates of that issuer.
func (w *world) grid(issuer string) *api.OrderGrid {
	w.t.Helper()
	g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "rtd"}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{TLS: &api.TLSSpec{
		Issuer: api.IssuerCertManager, CertManager: &api.CertManagerSpec{IssuerRef: api.IssuerReference{Name: issuer}}, Clients: []string{"oms"},
	}}}}
	w.create(g)
	return g
}

// says waits until TLSReady of the grid is as given.
func (w *world) says(g *api.OrderGrid, status metav1.ConditionStatus, reason, text string) {
	w.t.Helper()
	envtest.Eventually(w.t, fmt.Sprintf("TLSReady is %s with %q", status, text), func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		c := meta.FindStatusCondition(g.Status.Conditions, api.ConditionTLSReady)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

// look has the operator look at the grid's certificates now, not in ten minutes.
func (w *world) look(g *api.OrderGrid, wish string) {
	w.t.Helper()
	before := g.DeepCopy()
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, api.AnnotationRenewCertificates, wish)
	w.must(w.client.Patch(w.t.Context(), g, client.MergeFrom(before)))
}
