package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// servedMetrics runs the operator's metrics, and returns their address.
func servedMetrics(t *testing.T, o Options) string {
	t.Helper()
	o.MetricsAddress = "127.0.0.1:0"
	m, err := newMetricsServer(t.Context(), envtest.Config(t), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	return m.listener.Addr().String()
}

// account is a service account and its token. readers may get /metrics.
func account(t *testing.T, cl client.Client, namespace, name string, reader bool) string {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := cl.Create(t.Context(), sa); err != nil {
		t.Fatal(err)
	}
	if reader {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}}
		for _, o := range []client.Object{role, binding} {
			if err := cl.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cl.Delete(context.Background(), o) })
		}
	}
	ask := &authenticationv1.TokenRequest{}
	if err := cl.SubResource("token").Create(t.Context(), sa, ask); err != nil {
		t.Fatal(err)
	}
	return ask.Status.Token
}

func getPage(t *testing.T, c *http.Client, url, token string) (status int, page string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func trusting(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: roots == nil}}}
}

// TestMetricsAreForReaders: over TLS, to accounts that the API server lets get the page, and to no others.
func TestMetricsAreForReaders(t *testing.T) {
	cl := envtest.Client(t, envtest.Config(t))
	ns := envtest.Namespace(t, cl, "metrics-")
	reader, stranger := account(t, cl, ns, "prometheus", true), account(t, cl, ns, "stranger", false)
	address := servedMetrics(t, Options{})
	c := trusting(nil)
	envtest.Eventually(t, "the API server knows of the reader's role", func(context.Context) error {
		if status, page := getPage(t, trusting(nil), "https://"+servedMetrics(t, Options{})+"/metrics", reader); status != http.StatusOK {
			return errors.New(page)
		}
		return nil
	})
	for _, test := range []struct {
		name, url, token string
		status           int
		says             string
	}{
		{"the reader", "https://" + address + "/metrics", reader, 200, "go_goroutines "},
		{"the reader again, from memory", "https://" + address + "/metrics", reader, 200, "go_goroutines "},
		{"no token", "https://" + address + "/metrics", "", 401, "give a token"},
		{"an invented token", "https://" + address + "/metrics", "invented", 401, "does not know this token"},
		{"an account without the right", "https://" + address + "/metrics", stranger, 403, `bind it to a ClusterRole with nonResourceURLs ["/metrics"]`},
		{"another page", "https://" + address + "/debug/pprof/", reader, 404, ""},
	} {
		if status, page := getPage(t, c, test.url, test.token); status != test.status || !strings.Contains(page, test.says) {
			t.Errorf("%s: status %d, want %d: %.200s", test.name, status, test.status, page)
		}
	}
	if status, page := getPage(t, c, "http://"+address+"/metrics", ""); status == http.StatusOK {
		t.Errorf("plain HTTP: %.200s", page)
	}
	open := servedMetrics(t, Options{MetricsInsecure: true})
	if status, page := getPage(t, c, "http://"+open+"/metrics", ""); status != 200 || !strings.Contains(page, "go_goroutines ") {
		t.Errorf("open, as configured: status %d: %.200s", status, page)
	}
}

// TestMetricsCertificate: the server presents the certificate of a directory, which Prometheus can verify.
func TestMetricsCertificate(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.Load(filepath.Join(dir, "authority"), "test")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Identity{User: "metrics", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Cert)
	address := servedMetrics(t, Options{MetricsCertDir: dir})
	if status, page := getPage(t, trusting(roots), "https://"+address+"/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", status, page)
	}
	own := servedMetrics(t, Options{})
	if status, page := getPage(t, trusting(roots), "https://"+own+"/metrics", ""); status != 0 || !strings.Contains(page, "certificate") {
		t.Errorf("a certificate of another authority is accepted: status %d: %s", status, page)
	}
}

// TestVerdictsAreBounded: invalid tokens evict each other, not readers, and use bounded memory; so do readers.
func TestVerdictsAreBounded(t *testing.T) {
	now := time.Now()
	r := &readers{refusals: map[tokenKey]verdict{}, known: map[tokenKey]verdict{}}
	r.keep(tokenKey{1}, http.StatusOK, now)
	for i := range 10 * refusalsKept {
		r.keep(tokenKey{0, byte(i), byte(i >> 8), 1}, http.StatusUnauthorized, now.Add(time.Duration(i)*time.Second))
	}
	if len(r.refusals) > refusalsKept || r.known[tokenKey{1}].status != http.StatusOK {
		t.Errorf("%d refusals are kept, the answer to the reader is %+v", len(r.refusals), r.known[tokenKey{1}])
	}
	for i := range 10 * readersKept {
		r.keep(tokenKey{2, byte(i), byte(i >> 8)}, http.StatusOK, now.Add(time.Duration(i)*time.Second))
	}
	if last := (tokenKey{2, byte((10*readersKept - 1) & 0xff), byte((10*readersKept - 1) >> 8)}); len(r.known) > readersKept || r.known[last].status != http.StatusOK {
		t.Errorf("%d readers are kept, the answer to the last is %+v", len(r.known), r.known[last])
	}
	r.keep(tokenKey{2}, http.StatusForbidden, now)
	if _, known := r.known[tokenKey{2}]; known || r.refusals[tokenKey{2}].status != http.StatusForbidden {
		t.Error("a reader that is refused is still known")
	}
}

// turns is an exhausted budget once it is shut: callers signal that they wait, and get no turn.
type turns struct {
	shut    atomic.Bool
	waiting chan struct{}
}

func (l *turns) Wait(ctx context.Context) error {
	if !l.shut.Load() {
		return nil
	}
	l.waiting <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (l *turns) TryAccept() bool { return !l.shut.Load() }
func (l *turns) Accept()         {}
func (l *turns) Stop()           {}
func (l *turns) QPS() float32    { return 0 }

// TestReadersDoNotWaitBehindInventedTokens: during a flood of invalid tokens a reader is reviewed again when its answer
// expires; and one address has a few reviews of new tokens at a time, so that those of others are served.
func TestReadersDoNotWaitBehindInventedTokens(t *testing.T) {
	cfg := envtest.Config(t)
	cl := envtest.Client(t, cfg)
	reader := account(t, cl, envtest.Namespace(t, cl, "metrics-"), "prometheus", true)
	first := &turns{waiting: make(chan struct{}, 2*reviewsOfAddress)}
	r, err := newReaders(cfg, http.NotFoundHandler(), first, &turns{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r.now = func() time.Time { return now }
	ask := func(ctx context.Context, token, from string) int {
		return r.may(ctx, token, "/metrics", netip.MustParseAddr(from))
	}
	envtest.Eventually(t, "the API server knows of the reader's role", func(ctx context.Context) error {
		now = now.Add(keptOutFor)
		if status := ask(ctx, reader, "10.0.0.1"); status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	first.shut.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for i := range reviewsOfAddress {
		flood.Go(func() { ask(ctx, fmt.Sprint("invented ", i), "10.0.0.2") })
		<-first.waiting
	}
	now = now.Add(letInFor)
	if status := ask(t.Context(), reader, "10.0.0.1"); status != http.StatusOK {
		t.Errorf("the reader, behind the flood: status %d", status)
	}
	if status := ask(t.Context(), "one more", "10.0.0.2"); status != http.StatusTooManyRequests {
		t.Errorf("one more of the flood: status %d", status)
	}
	flood.Go(func() { ask(ctx, "new", "10.0.0.1") })
	<-first.waiting // it is in the queue
	cancel()
	flood.Wait()
	if len(r.asking) > 0 {
		t.Errorf("reviews are under way: %v", r.asking)
	}
}
