package envtest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is a client without a cache, so that a test sees its own writes. It has OrderGrid's kinds,
// Kubernetes' own, and those added by more.
func Client(t testing.TB, cfg *rest.Config, more ...func(*runtime.Scheme) error) client.Client {
	t.Helper()
	scheme := Scheme()
	for _, add := range more {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// Operate starts f, such as a manager, until its context ends. stop waits for its end, and may be
// called again.
func Operate(t testing.TB, operator interface{ Start(context.Context) error }) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- operator.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("operator: %v", err)
		}
	})
}

// Namespace creates a namespace with the prefix, and returns its name.
func Namespace(t testing.TB, cl client.Client, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := cl.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// Requests records requests to the API server, as "METHOD /path", in order. The zero value records
// everything.
type Requests struct {
	// Keep filters requests; nil: all.
	Keep func(*http.Request) bool

	mu   sync.Mutex
	list []string
}

// Writes records the requests that may change something.
func Writes() *Requests {
	return &Requests{Keep: func(req *http.Request) bool { return req.Method != http.MethodGet }}
}

// Of records the requests of clients of the returned configuration. cfg does not change.
func (r *Requests) Of(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return recording{next, r} })
	return cfg
}

// All are the requests since the last Forget.
func (r *Requests) All() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Forget starts over.
func (r *Requests) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

type recording struct {
	next http.RoundTripper
	into *Requests
}

func (r recording) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.into.Keep == nil || r.into.Keep(req) {
		r.into.mu.Lock()
		r.into.list = append(r.into.list, req.Method+" "+req.URL.Path)
		r.into.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

// WantEvent reads from a fake recorder up to an event that begins with prefix, such as "Warning
// Broken"; it fails the test if there is none.
func WantEvent(t testing.TB, events <-chan string, prefix string) {
	t.Helper()
	var seen []string
	for {
		select {
		case e := <-events:
			if strings.HasPrefix(e, prefix) {
				return
			}
			seen = append(seen, e)
		default:
			t.Errorf("no event %q; there were:\n%s", prefix, strings.Join(seen, "\n"))
			return
		}
	}
}
