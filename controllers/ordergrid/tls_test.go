package ordergrid

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

func securedSpec(tls api.TLSSpec) api.OrderGridSpec {
	return api.OrderGridSpec{Security: api.SecuritySpec{TLS: &tls}}
}

func (b *bench) secret(name string) *corev1.Secret {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	b.get(s)
	return s
}

func (b *bench) wantTLS(grid *api.OrderGrid, status metav1.ConditionStatus, reason, text string) {
	b.t.Helper()
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionTLSReady)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		b.t.Fatalf("TLSReady is %+v, want %s %s with %q", c, status, reason, text)
	}
}

// presents makes a pod answer with the certificate and the authorities of the nodes' present Secret.
func (f *fakeNodes) presents(grid *api.OrderGrid, ordinal int32, s *corev1.Secret) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &nodestatus.Node{Grid: grid.Name, Pod: api.PodName(grid.Name, 0, ordinal), BootID: "0123456789abcdef", TLS: &nodestatus.TLS{}}
	n.TLS.Serial = secure.ParseCertificates(s.Data["tls.crt"])[0].SerialNumber.Text(16)
	for _, cert := range secure.ParseCertificates(s.Data["ca.crt"]) {
		n.TLS.Authorities = append(n.TLS.Authorities, secure.Fingerprint(cert))
	}
	f.answers[podIP(0, ordinal)+":9400"] = n
}

// begin starts the containers of a pod, which can be queried from then on.
func (b *bench) begin(pod string) {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: b.namespace}}
	b.get(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if err := b.client.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

// TestOwnAuthority goes through the life of a grid's certificates on a real API server: created, renewed, the authority
// replaced in three steps that wait for the nodes, and none of it changes the pods.
func TestOwnAuthority(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", securedSpec(api.TLSSpec{Clients: []string{"oms"}}))
	b.run(grid)
	template := b.podTemplate(grid)
	for _, want := range []string{"--tls-name rtd-client." + b.namespace + ".svc", "rtd.tls-nodes", "/etc/ordergrid/tls"} {
		if !strings.Contains(strings.ReplaceAll(template, `","`, " "), want) {
			t.Errorf("the pods have no %s", want)
		}
	}
	b.wantTLS(grid, metav1.ConditionTrue, "CertificatesValid", "2026-04-02")
	if s := grid.Status.TLS; s == nil || s.Expires == nil || s.AuthorityExpires == nil || s.Renews == nil || s.Serial == "" {
		t.Errorf("status.tls is %+v", s)
	}
	for _, name := range []string{"rtd.tls-nodes", "rtd.tls-tools", "rtd.tls-client-oms"} {
		s := b.secret(name)
		if _, err := certificates.Check(s.Data, name == "rtd.tls-nodes", api.TLSName("rtd", b.namespace), b.clock.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !owned(grid, s) || s.Labels[api.LabelGrid] != "rtd" {
			t.Errorf("%s: %v %v", name, s.OwnerReferences, s.Labels)
		}
	}
	if writes := b.run(grid); len(writes) > 0 {
		t.Errorf("a pass without anything to do wrote %v", writes)
	}
	if b.again <= 0 || b.again > tlsLook {
		t.Errorf("reconciles again after %s", b.again)
	}
	b.play(grid)
	b.begin("rtd-s0-0")
	b.begin("rtd-s0-1")

	// Renewal: the same authority, another certificate, the same pods.
	first := b.secret("rtd.tls-nodes")
	b.pass(60*24*time.Hour + time.Second)
	b.run(grid)
	second := b.secret("rtd.tls-nodes")
	if bytes.Equal(first.Data["tls.crt"], second.Data["tls.crt"]) || !bytes.Equal(first.Data["ca.crt"], second.Data["ca.crt"]) {
		t.Error("it is not renewed, or the authority has changed")
	}

	// Another authority.
	b.ask(grid, api.AnnotationRenewAuthority, "1")
	b.run(grid)
	b.wantTLS(grid, metav1.ConditionTrue, "AuthorityChanging", "the next one is trusted since")
	announced := b.secret("rtd.tls-nodes")
	if !bytes.Equal(announced.Data["tls.crt"], second.Data["tls.crt"]) || len(secure.ParseCertificates(announced.Data["ca.crt"])) != 2 {
		t.Fatal("the next authority is not trusted, or signs already")
	}
	b.nodes.presents(grid, 0, announced)
	b.nodes.presents(grid, 1, second) // its kubelet is late
	b.pass(24*time.Hour + time.Second)
	b.run(grid)
	if got := b.secret("rtd.tls-nodes"); !bytes.Equal(got.Data["tls.crt"], second.Data["tls.crt"]) {
		t.Fatal("the next authority signs although a node does not trust it")
	}
	b.nodes.presents(grid, 1, announced)
	b.pass(tlsLookTrouble)
	b.run(grid)
	signed := b.secret("rtd.tls-nodes")
	trusted := secure.ParseCertificates(signed.Data["ca.crt"])
	leaf := secure.ParseCertificates(signed.Data["tls.crt"])[0]
	if len(trusted) != 2 || !slices.ContainsFunc(trusted, func(a *x509.Certificate) bool { return leaf.CheckSignatureFrom(a) == nil }) || leaf.CheckSignatureFrom(secure.ParseCertificates(first.Data["ca.crt"])[0]) == nil {
		t.Fatal("the next authority does not sign")
	}
	b.nodes.presents(grid, 0, signed)
	b.nodes.presents(grid, 1, announced)
	b.pass(24*time.Hour + time.Second)
	b.run(grid)
	if len(secure.ParseCertificates(b.secret("rtd.tls-nodes").Data["ca.crt"])) != 2 {
		t.Fatal("the authority of a certificate in use is not trusted any more")
	}
	b.nodes.presents(grid, 1, signed)
	b.pass(tlsLookTrouble)
	b.run(grid)
	if got := secure.ParseCertificates(b.secret("rtd.tls-nodes").Data["ca.crt"]); len(got) != 1 || leaf.CheckSignatureFrom(got[0]) != nil {
		t.Errorf("%d authorities are trusted in the end", len(got))
	}
	b.run(grid)
	b.wantTLS(grid, metav1.ConditionTrue, "CertificatesValid", "valid until")
	if b.podTemplate(grid) != template {
		t.Error("the pods' template has changed, and pods would be replaced")
	}
	b.wantEvents("AuthorityCreated", "CertificateIssued", "AuthorityAnnounced", "AuthoritySigns", "AuthorityRetired")
}

// pass advances the clock.
func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

func (b *bench) ask(grid *api.OrderGrid, key, value string) {
	b.t.Helper()
	before := grid.DeepCopy()
	metav1.SetMetaDataAnnotation(&grid.ObjectMeta, key, value)
	if err := b.client.Patch(b.t.Context(), grid, client.MergeFrom(before)); err != nil {
		b.t.Fatal(err)
	}
}

func statefulSetOf(b *bench, grid *api.OrderGrid) *appsv1.StatefulSet {
	b.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: grid.Namespace, Name: api.ShardName(grid.Name, 0)}}
	b.get(set)
	return set
}

func (b *bench) podTemplate(grid *api.OrderGrid) string {
	b.t.Helper()
	set := statefulSetOf(b, grid)
	text, err := json.Marshal(set.Spec.Template)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) wantEvents(reasons ...string) {
	b.t.Helper()
	all := b.drainEvents()
	for _, reason := range reasons {
		if !strings.Contains(all, reason) {
			b.t.Errorf("no event %s in\n%s", reason, all)
		}
	}
}

func (b *bench) drainEvents() string {
	var all strings.Builder
	for {
		select {
		case e := <-b.events:
			all.WriteString(e + "\n")
		default:
			return all.String()
		}
	}
}

// TestNoSecretIsDisclosed: for all states of a grid's Secrets, no key is in logs, events, status or the API server's
// requests for anything but a Secret.
func TestNoSecretIsDisclosed(t *testing.T) {
	b := newBench(t)
	var logs strings.Builder
	logger := funcr.New(func(prefix, args string) { logs.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 9})
	reconcile := func(grid *api.OrderGrid) {
		t.Helper()
		if _, err := b.reconcile.Reconcile(ctrl.LoggerInto(t.Context(), logger), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(grid)}); err != nil {
			fmt.Fprintln(&logs, err)
		}
		b.get(grid)
	}
	var keys []string
	remember := func(s *corev1.Secret) {
		for _, key := range []string{"tls.key", "next.key"} {
			if lines := strings.Split(string(s.Data[key]), "\n"); len(lines) > 2 {
				keys = append(keys, lines[1], lines[1][:20])
			}
		}
	}
	grid := b.create("rtd", securedSpec(api.TLSSpec{Clients: []string{"oms"}}))
	reconcile(grid)
	for _, name := range []string{"rtd.tls-ca", "rtd.tls-nodes", "rtd.tls-tools", "rtd.tls-client-oms"} {
		remember(b.secret(name))
	}
	const treasure = "c2VjcmV0LXRyZWFzdXJl"
	keys = append(keys, treasure)

	// The authority is corrupted: nothing is written over it, and its content is not reported.
	ca := b.secret("rtd.tls-ca")
	good := ca.DeepCopy()
	ca.Data["tls.key"] = []byte("-----BEGIN " + treasure + "-----\n" + treasure + "\n-----END " + treasure + "-----\n")
	b.write(ca)
	b.pass(tlsLook)
	reconcile(grid)
	b.wantTLS(grid, metav1.ConditionFalse, "AuthorityUnreadable", "Secret rtd.tls-ca: keys tls.crt and tls.key")
	if got := b.secret("rtd.tls-ca"); !bytes.Equal(got.Data["tls.key"], ca.Data["tls.key"]) {
		t.Error("the corrupted Secret was overwritten")
	}
	// Deleted, it is recreated without interrupting clients.
	if err := b.client.Delete(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	b.pass(tlsLookTrouble)
	reconcile(grid)
	b.wantTLS(grid, metav1.ConditionTrue, "AuthorityChanging", "The key of the authority is lost")
	remember(b.secret("rtd.tls-ca"))
	if n := b.secret("rtd.tls-nodes"); len(secure.ParseCertificates(n.Data["ca.crt"])) != 2 || certificates.ReadLeaf(n.Data).CheckSignatureFrom(secure.ParseCertificates(good.Data["tls.crt"])[0]) != nil {
		t.Error("the nodes' certificate has changed, or its authority is not trusted")
	}
	// A corrupted certificate is the operator's own, and is reissued, but only with a signing key.
	nodes := b.secret("rtd.tls-tools")
	nodes.Data["tls.key"] = []byte(treasure)
	b.write(nodes)
	b.pass(tlsLook)
	reconcile(grid)
	b.wantTLS(grid, metav1.ConditionFalse, "CertificateNotReady", "rtd.tls-tools")
	b.pass(25 * time.Hour)
	reconcile(grid)
	b.pass(tlsLookSoon)
	reconcile(grid)
	b.wantTLS(grid, metav1.ConditionTrue, "AuthorityChanging", "was replaced at")
	if certificates.ReadLeaf(b.secret("rtd.tls-tools").Data) == nil {
		t.Error("it is not issued anew")
	}
	remember(b.secret("rtd.tls-ca"))
	remember(b.secret("rtd.tls-tools"))

	status, err := json.Marshal(grid)
	if err != nil {
		t.Fatal(err)
	}
	output := logs.String() + b.drainEvents() + string(status)
	for _, key := range keys {
		if strings.Contains(output, key) {
			t.Fatalf("%q of a Secret is in logs, events or the grid:\n%s", key, output)
		}
	}
	if len(keys) < 10 || !strings.Contains(output, "CertificateIssued") {
		t.Errorf("%d keys were looked for in %d bytes", len(keys), len(output))
	}
}

func (b *bench) write(o client.Object) {
	b.t.Helper()
	if err := b.client.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// TestIssuerSecret: issuer Secret, and the possible problems of the Secrets.
func TestIssuerSecret(t *testing.T) {
	b := newBench(t)
	maker := b.create("maker", securedSpec(api.TLSSpec{})) // certificates for the other
	b.run(maker)
	spec := securedSpec(api.TLSSpec{
		Issuer: api.IssuerSecret, Secrets: &api.TLSSecretsSpec{Nodes: "mine", Tools: "mine-tools"}, ClientAuthorities: &api.ConfigMapReference{Name: "desk-ca"},
	})
	spec.Security.Authorization = &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}
	grid := b.create("rtd", spec)
	b.run(grid)
	b.wantTLS(grid, metav1.ConditionFalse, "ClientAuthoritiesInvalid", "ConfigMap desk-ca of spec.security.tls.clientAuthorities does not exist")
	own := b.secret("maker.tls-nodes")
	authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "desk-ca"}, Data: map[string]string{"ca.crt": "x"}}
	b.mustCreate(authorities)
	look := func() { b.pass(tlsLookTrouble); b.run(grid) }
	look()
	b.wantTLS(grid, metav1.ConditionFalse, "ClientAuthoritiesInvalid", "holds no certificate")
	authorities.Data["ca.crt"] = string(own.Data["ca.crt"])
	b.write(authorities)
	look()
	b.wantTLS(grid, metav1.ConditionFalse, "SecretMissing", "Secret mine of spec.security.tls.secrets")
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "mine"}, Data: own.Data}
	b.mustCreate(mine)
	look()
	b.wantTLS(grid, metav1.ConditionFalse, "SecretInvalid", "not for the DNS name rtd-client.")
	if s := b.secret("mine"); len(s.OwnerReferences) > 0 {
		t.Error("a foreign Secret was taken over")
	}
	args := strings.Join(statefulSetOf(b, grid).Spec.Template.Spec.Containers[0].Args, " ")
	if !strings.Contains(args, "--tls-client-ca /etc/ordergrid/tls/client-ca.crt") {
		t.Errorf("arguments %s", args)
	}
}

func (b *bench) mustCreate(o client.Object) {
	b.t.Helper()
	if err := b.client.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// TestCertManagerAbsent: the condition has the remedy.
func TestCertManagerAbsent(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", securedSpec(api.TLSSpec{Issuer: api.IssuerCertManager, CertManager: &api.CertManagerSpec{IssuerRef: api.IssuerReference{Name: "desk"}}}))
	b.run(grid)
	b.wantTLS(grid, metav1.ConditionFalse, "CertManagerMissing", "install cert-manager")
	if b.again > tlsLookTrouble {
		t.Errorf("reconciles again after %s", b.again)
	}
	if statefulSetOf(b, grid).Name == "" {
		t.Error("the rest of the grid is not made")
	}
}

// A name that is taken, and a missing permission, are reported.
func TestCertificatesRefused(t *testing.T) {
	b := newBench(t)
	b.mustCreate(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd.tls-ca"}})
	grid := b.create("rtd", securedSpec(api.TLSSpec{}))
	b.run(grid)
	b.wantTLS(grid, metav1.ConditionFalse, "NameTaken", "Secret rtd.tls-ca exists already")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "rtd.tls-ca", fmt.Errorf("no"))
	if v := verdictOf(fmt.Errorf("read: %w", forbidden), grid); v.reason != "RightsMissing" || !strings.Contains(v.message, "certificates.namespaces") {
		t.Errorf("%+v", v)
	}
}
