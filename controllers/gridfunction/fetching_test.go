package gridfunction

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/gridfunction/fetch/fetchtest"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// fetchBench is a bench whose function names a server, with a clock that the test moves.
type fetchBench struct {
	*bench
	s     *fetchtest.Server
	clock *clocktesting.FakePassiveClock
}

func newFetchBench(t *testing.T, all http.Handler, kind api.FunctionKind, module []byte) *fetchBench {
	b := &fetchBench{bench: newBench(t, kind, module), s: fetchtest.Serve(t, all)}
	b.clock = b.r.Clock.(*clocktesting.FakePassiveClock)
	b.r.Sources = allow.List{b.f.Namespace: {b.s.Host}}
	b.must(b.cl.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.f.Namespace, Name: "authority"}, Data: map[string]string{"ca.crt": string(b.s.PEM())}}))
	return b
}

var authority = &api.ConfigMapFile{Name: "authority", Key: "ca.crt"}

// from has the function name another place of the module.
func (b *fetchBench) from(m api.FunctionModule) {
	b.Helper()
	m.SHA256 = b.f.Spec.Module.SHA256
	b.f.Spec.Module = m
	b.must(b.cl.Update(b.Context(), b.f))
}

func (b *fetchBench) kept() *corev1.ConfigMap {
	b.Helper()
	m := &corev1.ConfigMap{}
	err := b.cl.Get(b.Context(), client.ObjectKey{Namespace: b.f.Namespace, Name: api.FunctionModuleConfigMap("limit", b.f.Spec.Module.SHA256)}, m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.must(err)
	return m
}

// again runs a pass, and compares when the next one is to be.
func (b *fetchBench) again(want, text string, next time.Duration) {
	b.Helper()
	if got := b.run(api.ConditionValid, want, text); got != next {
		b.Errorf("the next pass is in %v, want %v", got, next)
	}
}

// TestFetchedByHTTP: a module is fetched once, tried again with growing pauses, kept, and fetched anew where it is lost.
func TestFetchedByHTTP(t *testing.T) {
	b := newFetchBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(examples.RestrictedList) }), api.FunctionPre, examples.RestrictedList)
	b.s.Door(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	b.from(api.FunctionModule{HTTP: &api.HTTPModule{URL: b.s.URL + "/f.wasm", CABundle: authority}})
	b.again("False/FetchFailed", "503 Service Unavailable", 10*time.Second)
	envtest.WantEvent(t, b.events, "Warning FetchFailed")
	b.clock.SetTime(b.clock.Now().Add(4 * time.Second))
	b.again("False/FetchFailed", "503", 6*time.Second)
	if n := b.s.Requests(); n != 1 {
		t.Errorf("%d requests before the pause is over, want 1", n)
	}
	for i, pause := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second} {
		b.clock.SetTime(b.clock.Now().Add(time.Hour))
		b.again("False/FetchFailed", "503", pause)
		if n := b.s.Requests(); n != 2+i {
			t.Errorf("%d requests, want %d", n, 2+i)
		}
	}
	b.s.Door(nil)
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.again("True/Loadable", "is loaded as kind Pre", 0)
	m := b.kept()
	if m == nil || m.Immutable == nil || !*m.Immutable || !metav1.IsControlledBy(m, b.f) || digest(m.BinaryData[moduleKey]) != b.f.Spec.Module.SHA256 {
		t.Fatalf("ConfigMap %+v", m)
	}
	n := b.s.Requests()
	b.writes.Forget()
	b.again("True/Loadable", "", 0)
	if w := b.writes.All(); len(w) > 0 || b.s.Requests() != n {
		t.Errorf("a second pass writes %v, and makes %d requests", w, b.s.Requests()-n)
	}
	b.must(b.cl.Delete(t.Context(), m))
	b.again("True/Loadable", "", 0)
	if b.kept() == nil || b.s.Requests() != n+1 {
		t.Errorf("after its ConfigMap is lost: %d requests, want 1 and the ConfigMap", b.s.Requests()-n)
	}
	b.s.Close()
	files, err := Read(t.Context(), b.cl, b.f)
	if err != nil || digest(files.Module) != b.f.Spec.Module.SHA256 {
		t.Errorf("without the server: %v", err)
	}
	b.configMap(examples.RestrictedList)
	b.from(api.FunctionModule{ConfigMap: &api.ConfigMapFile{Name: "modules", Key: "f.wasm"}})
	b.again("True/Loadable", "", 0)
	if b.kept() != nil {
		t.Error("what was fetched is kept though the function names a ConfigMap now")
	}
}

// TestFetchRefused: what the message says where nothing, or something else, is fetched.
func TestFetchRefused(t *testing.T) {
	b := newFetchBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other.wasm":
			_, _ = w.Write(examples.FatFinger)
		case "/large.wasm":
			_, _ = w.Write(make([]byte, maxPostModule+1))
		case "/metadata":
			http.Redirect(w, r, "https://169.254.169.254/latest/", http.StatusFound)
		}
	}), api.FunctionPost, examples.AuditTrail)
	module := func(path string, change func(*api.HTTPModule)) api.FunctionModule {
		h := &api.HTTPModule{URL: b.s.URL + path, CABundle: authority}
		if change != nil {
			change(h)
		}
		return api.FunctionModule{HTTP: h}
	}
	for _, c := range []struct {
		module api.FunctionModule
		want   string
		text   string
		next   time.Duration
	}{
		{module("/other.wasm", nil), "False/DigestDiffers", "/other.wasm has sha256 " + digest(examples.FatFinger), 10 * time.Second},
		{module("/large.wasm", nil), "False/TooLarge", fmt.Sprintf("has more than %d bytes", maxPostModule), 0},
		{module("/metadata", nil), "False/SourceNotAllowed", "host 169.254.169.254:443 is not allowed", 10 * time.Second},
		{module("/other.wasm", func(h *api.HTTPModule) { h.URL = "https://elsewhere.example/f.wasm" }), "False/SourceNotAllowed", "functions.allow", 10 * time.Second},
		{module("/other.wasm", func(h *api.HTTPModule) { h.CABundle = nil }), "False/FetchFailed", "name one in caBundle", 10 * time.Second},
		{module("/other.wasm", func(h *api.HTTPModule) { h.CABundle = &api.ConfigMapFile{Name: "none", Key: "ca.crt"} }), "False/FileNotFound", "spec.module.http.caBundle: there is no ConfigMap none", 10 * time.Second},
	} {
		b.from(c.module)
		b.again(c.want, c.text, c.next)
	}
	b.r.Sources = nil
	before := b.s.Requests()
	b.from(module("/audit.wasm", nil))
	b.again("False/SourceNotAllowed", "", 10*time.Second)
	if b.s.Requests() != before {
		t.Error("a server was asked that is not allowed")
	}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.f.Namespace, Name: api.FunctionModuleConfigMap("limit", b.f.Spec.Module.SHA256)}}
	b.must(b.cl.Create(t.Context(), foreign))
	b.again("False/FetchFailed", "is not of this function; delete it", 10*time.Second)
}

// TestFetchedFromRegistry: with the credentials of a Secret.
func TestFetchedFromRegistry(t *testing.T) {
	all := fetchtest.Registry()
	b := newFetchBench(t, all, api.FunctionPre, examples.RestrictedList)
	ref := b.s.Push(t, ocispec.MediaTypeImageManifest, fetchtest.Layer{MediaType: "application/wasm", Bytes: examples.RestrictedList})
	b.s.Door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "desk" || p != "swordfish" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		all.ServeHTTP(w, r)
	}))
	secret := func(name string, kind corev1.SecretType, host, password string) {
		b.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.f.Namespace, Name: name}, Type: kind}
		s.Data = map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("desk:"+password)))}
		b.must(b.cl.Create(t.Context(), s))
	}
	secret("opaque", corev1.SecretTypeOpaque, b.s.Host, "swordfish")
	secret("elsewhere", corev1.SecretTypeDockerConfigJson, "registry.example", "swordfish")
	secret("wrong", corev1.SecretTypeDockerConfigJson, b.s.Host, "guess")
	secret("right", corev1.SecretTypeDockerConfigJson, "https://"+b.s.Host, "swordfish")
	for _, c := range []struct {
		names []string
		want  string
		text  string
	}{
		{nil, "False/FetchFailed", "wants credentials; name a Secret"},
		{[]string{"none"}, "False/FetchFailed", "there is no Secret none in namespace " + b.f.Namespace},
		{[]string{"opaque"}, "False/FetchFailed", `Secret opaque is of type "Opaque"; allowed: kubernetes.io/dockerconfigjson`},
		{[]string{"elsewhere"}, "False/FetchFailed", "none of the Secrets has credentials for registry " + b.s.Host},
		{[]string{"wrong"}, "False/FetchFailed", "does not take the credentials"},
		{[]string{"elsewhere", "right"}, "True/Loadable", ""},
	} {
		o := &api.OCIModule{Reference: ref, CABundle: authority}
		for _, name := range c.names {
			o.ImagePullSecrets = append(o.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
		b.from(api.FunctionModule{OCI: o})
		b.run(api.ConditionValid, c.want, c.text)
		for _, condition := range b.f.Status.Conditions {
			if strings.Contains(condition.Message, "swordfish") || strings.Contains(condition.Message, "guess") {
				t.Errorf("the message has a password: %s", condition.Message)
			}
		}
	}
	if b.kept() == nil {
		t.Error("the module is not kept")
	}
	b.must(b.cl.Delete(t.Context(), b.kept()))
	b.r.Live = noSecrets{b.r.Live}
	b.run(api.ConditionValid, "False/FetchFailed", "an administrator lets it, by functions.pullSecrets of its chart with namespace "+b.f.Namespace)
}

// noSecrets reads as an operator without the right to read Secrets.
type noSecrets struct{ client.Reader }

func (r noSecrets) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*corev1.Secret); is {
		return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("no right"))
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

// TestFetchesAreFew: one of a namespace at a time, and two in all, so that others are looked at meanwhile.
func TestFetchesAreFew(t *testing.T) {
	of := func(namespace, name string) *api.GridFunction {
		return &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	now := time.Unix(1.8e9, 0)
	var s fetches
	for _, c := range []struct {
		f    *api.GridFunction
		busy bool
	}{{of("a", "x"), false}, {of("a", "y"), true}, {of("b", "x"), false}, {of("c", "x"), true}} {
		if err := s.begin(c.f, now); (err != nil) != c.busy {
			t.Errorf("%s/%s: %v, want busy: %t", c.f.Namespace, c.f.Name, err, c.busy)
		}
	}
	s.end(of("a", "x"), now, nil)
	if err := s.begin(of("a", "y"), now); err != nil {
		t.Errorf("after the first: %v", err)
	}
	for range 20 {
		s.end(of("a", "y"), now, &Problem{Reason: reasonFetchFailed, Passing: true})
	}
	if x := s.failed[client.ObjectKeyFromObject(of("a", "y"))]; x.next != now.Add(longestWait) {
		t.Errorf("after 20 failures the next try is in %v, want %v", x.next.Sub(now), longestWait)
	}
	s.forget(client.ObjectKeyFromObject(of("a", "y")))
	if err := s.begin(of("a", "y"), now); err != nil || len(s.failed) > 0 {
		t.Errorf("made anew: %v, %v", err, s.failed)
	}
}
