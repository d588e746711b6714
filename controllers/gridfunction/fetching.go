package gridfunction

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/gridfunction/fetch"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	// Fetches are slow where a server is: they take at most half of the workers, and of these one for a namespace.
	workers     = 4
	maxFetches  = workers / 2
	fetchBusy   = 2 * time.Second // to ask again for one of them
	firstRetry  = lookAgain
	longestWait = 10 * time.Minute
	// moduleKey in the ConfigMap of a module that was fetched.
	moduleKey = "module.wasm"
)

// errBusy is that others fetch.
var errBusy = errors.New("other modules are being fetched")

// fetches are those under way, and the failures of those before. It is for all workers.
type fetches struct {
	mu     sync.Mutex
	open   map[string]bool // by namespace
	failed map[types.NamespacedName]*failure
}

// failure is why the module of a generation was not fetched, and when it is tried again.
type failure struct {
	uid        types.UID
	generation int64
	times      int
	next       time.Time
	problem    *Problem
}

// begin takes a place, or reports why the fetch before failed, while it is not to be repeated yet.
func (s *fetches) begin(f *api.GridFunction, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.failed[client.ObjectKeyFromObject(f)]; x != nil && x.uid == f.UID && x.generation == f.Generation && now.Before(x.next) {
		p := *x.problem
		p.Again = x.next.Sub(now)
		return &p
	}
	if s.open[f.Namespace] || len(s.open) >= maxFetches {
		return errBusy
	}
	if s.open == nil {
		s.open = map[string]bool{}
	}
	s.open[f.Namespace] = true
	return nil
}

// end gives the place back. A problem doubles the pause before the next try.
func (s *fetches) end(f *api.GridFunction, now time.Time, p *Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, f.Namespace)
	name := client.ObjectKeyFromObject(f)
	if p == nil || !p.Passing {
		delete(s.failed, name)
		return
	}
	if s.failed == nil {
		s.failed = map[types.NamespacedName]*failure{}
	}
	x := s.failed[name]
	if x == nil || x.uid != f.UID || x.generation != f.Generation {
		x = &failure{uid: f.UID, generation: f.Generation}
		s.failed[name] = x
	}
	p.Again = min(firstRetry<<min(x.times, 10), longestWait)
	x.times, x.next, x.problem = x.times+1, now.Add(p.Again), p
}

// forget drops what is known of a function that is gone.
func (s *fetches) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, name)
}

// fetched makes sure that a ConfigMap of the function has its module, if it comes from outside. An error is a *Problem,
// errBusy, or one of the API server.
func (r *Reconciler) fetched(ctx context.Context, f *api.GridFunction) error {
	if !f.Spec.Module.Fetched() {
		return nil
	}
	there, err := r.kept(ctx, f)
	if err != nil || there {
		return err
	}
	if err := r.fetches.begin(f, r.Clock.Now()); err != nil {
		return err
	}
	var problem *Problem
	module, err := r.fetch(ctx, f)
	errors.As(err, &problem)
	r.fetches.end(f, r.Clock.Now(), problem)
	fetchMetrics.WithLabelValues(sourceOf(&f.Spec.Module), fetchResult(err)).Inc()
	if err != nil {
		return err
	}
	return r.keep(ctx, f, module)
}

func sourceOf(m *api.FunctionModule) string {
	if m.OCI != nil {
		return "oci"
	}
	return "http"
}

func fetchResult(err error) string {
	var p *Problem
	switch {
	case err == nil:
		return "fetched"
	case errors.As(err, &p) && !p.Passing:
		return "refused"
	}
	return "failed"
}

// fetch reads the module from where it is, and compares its digest.
func (r *Reconciler) fetch(ctx context.Context, f *api.GridFunction) ([]byte, error) {
	c := &fetch.Client{Allowed: r.Sources.In(f.Namespace), MaxBytes: maxModule(f.Spec.Kind)}
	var module []byte
	var err error
	what, from := "", ""
	if o := f.Spec.Module.OCI; o != nil {
		what, from, c.Insecure = "spec.module.oci", o.Reference, o.Insecure == api.InsecureAccept
		if c.Roots, err = r.roots(ctx, f, what, o.CABundle); err != nil {
			return nil, err
		}
		credentials, err := r.credentials(ctx, f.Namespace, o)
		if err != nil {
			return nil, err
		}
		module, err = c.OCI(ctx, o.Reference, credentials)
		if err != nil {
			return nil, fetchProblem(what, err)
		}
	} else {
		h := f.Spec.Module.HTTP
		what, from, c.Insecure = "spec.module.http", h.URL, h.Insecure == api.InsecureAccept
		if c.Roots, err = r.roots(ctx, f, what, h.CABundle); err != nil {
			return nil, err
		}
		if module, err = c.HTTP(ctx, h.URL); err != nil {
			return nil, fetchProblem(what, err)
		}
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(module)); got != f.Spec.Module.SHA256 {
		return nil, &Problem{Reason: reasonDigestDiffers, Text: fmt.Sprintf("%s: the module of %s has sha256 %s, allowed: %s; put the file there that is named, or name the one that is there", what, from, got, f.Spec.Module.SHA256), Passing: true}
	}
	return module, nil
}

// fetchProblem is a Problem for an error of a fetch.
func fetchProblem(what string, err error) error {
	var e *fetch.Error
	if !errors.As(err, &e) {
		return err
	}
	p := &Problem{Text: what + ": " + e.Text}
	switch e.Kind {
	case fetch.NotAllowed:
		p.Reason, p.Passing = reasonNotAllowed, true
	case fetch.TooLarge:
		p.Reason = reasonTooLarge
	case fetch.NoModule:
		p.Reason = reasonNoModule
	default:
		p.Reason, p.Passing = reasonFetchFailed, true
	}
	return p
}

// roots reads the authorities of a server; nil: those of the system.
func (r *Reconciler) roots(ctx context.Context, f *api.GridFunction, what string, file *api.ConfigMapFile) (*x509.CertPool, error) {
	if file == nil {
		return nil, nil //nolint:nilnil // as crypto/tls has it
	}
	text, err := readKey(ctx, r.Live, f.Namespace, what+".caBundle", file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, &Problem{Reason: reasonFetchFailed, Text: fmt.Sprintf("%s.caBundle: key %s of ConfigMap %s has no certificate in PEM form", what, file.Key, file.Name), Passing: true}
	}
	return pool, nil
}

// kept reports whether the module was fetched already.
func (r *Reconciler) kept(ctx context.Context, f *api.GridFunction) (bool, error) {
	name := types.NamespacedName{Namespace: f.Namespace, Name: api.FunctionModuleConfigMap(f.Name, f.Spec.Module.SHA256)}
	for _, from := range []client.Reader{r.Client, r.Live} { // the cache may be behind
		m := &corev1.ConfigMap{}
		switch err := from.Get(ctx, name, m); {
		case err == nil && metav1.IsControlledBy(m, f):
			return m.DeletionTimestamp == nil, nil
		case err == nil:
			return false, &Problem{Reason: reasonFetchFailed, Text: fmt.Sprintf("ConfigMap %s, where the module is to be kept, is not of this function; delete it", name.Name), Passing: true}
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
		}
	}
	return false, nil
}

// keep makes the ConfigMap of a module. It goes with the function, and never changes: it is named by its digest.
func (r *Reconciler) keep(ctx context.Context, f *api.GridFunction, module []byte) error {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: api.FunctionModuleConfigMap(f.Name, f.Spec.Module.SHA256), Labels: objects.Labels(objects.Function, f.Name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "GridFunction", Name: f.Name, UID: f.UID, Controller: ptr.To(true)}}},
		Immutable: ptr.To(true), BinaryData: map[string][]byte{moduleKey: module},
	}
	switch err := r.Client.Create(ctx, m, client.FieldOwner(apply.FieldOwner)); {
	case apierrors.IsAlreadyExists(err):
		return errBusy // it is being deleted, or is another's: the next pass tells
	case err != nil:
		return fmt.Errorf("create ConfigMap %s: %w", m.Name, err)
	}
	kindMetrics.CountWrite("ConfigMap", apply.Created)
	return nil
}

// drop deletes modules that were fetched for what spec said before.
func (r *Reconciler) drop(ctx context.Context, f *api.GridFunction) error {
	var all corev1.ConfigMapList
	if err := r.Client.List(ctx, &all, client.InNamespace(f.Namespace), client.MatchingLabels(objects.Labels(objects.Function, f.Name))); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	want := ""
	if f.Spec.Module.Fetched() {
		want = api.FunctionModuleConfigMap(f.Name, f.Spec.Module.SHA256)
	}
	for i := range all.Items {
		m := &all.Items[i]
		if m.Name == want || !metav1.IsControlledBy(m, f) || m.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ConfigMap %s: %w", m.Name, err)
		}
	}
	return nil
}
