package charts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// warnings are the API server's warnings in its answers.
type warnings struct {
	mu       sync.Mutex
	warnings []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

// of calls f and returns the API server's warnings meanwhile.
func (w *warnings) of(do func() error) ([]string, error) {
	w.mu.Lock()
	w.warnings = nil
	w.mu.Unlock()
	err := do()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.warnings), err
}

// wantDeprecations: the API server of a cluster with the chart warns about spec.writeBehind, refuses nothing, and does
// not warn where the spec is not written.
func wantDeprecations(t *testing.T) {
	t.Helper()
	heard := &warnings{}
	cfg := rest.CopyConfig(envtest.Config(t))
	cfg.WarningHandler = heard
	cl := envtest.Client(t, cfg)
	const (
		policy = "Validation failed for ValidatingAdmissionPolicy 'og-ordergrid-deprecations' with binding 'og-ordergrid-deprecations': spec.writeBehind is deprecated: "
		file   = policy + "have the sink in spec.sinks as {name: file, type: File} with the same file; a running grid can be changed so, and no pod is replaced (docs/versions.md)"
		hold   = policy + "leave it out, a grid without spec.sinks holds orders in memory (docs/versions.md)"
	)
	grid := func(name string, spec api.OrderGridSpec) *api.OrderGrid {
		spec.Security.Insecure = api.InsecureAccept
		return &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec}
	}
	behind := api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile}}
	envtest.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		warnings, err := heard.of(func() error { return cl.Create(ctx, grid("old", behind), client.DryRunAll) })
		if err == nil && !slices.Contains(warnings, file) {
			err = fmt.Errorf("the API server warns %q", warnings)
		}
		return err
	})
	old, held := grid("old", behind), grid("held", api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindHold}})
	for _, test := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a new grid with a sink in writeBehind", func() error { return cl.Create(t.Context(), old) }, file},
		{"a new grid with Hold", func() error { return cl.Create(t.Context(), held) }, hold},
		{"a change of its spec", func() error { old.Spec.MinInSync = 2; return cl.Update(t.Context(), old) }, file},
		{"an annotation", func() error { old.Annotations = map[string]string{"desk": "emea"}; return cl.Update(t.Context(), old) }, ""},
		{"status", func() error { old.Status.Shards = 1; return cl.Status().Update(t.Context(), old) }, ""},
		{"a change of a grid with Hold", func() error { held.Spec.MinInSync = 2; return cl.Update(t.Context(), held) }, ""},
		{"the conversion", func() error {
			old.Spec.WriteBehind, old.Spec.Sinks = api.WriteBehindSpec{}, []api.SinkSpec{{Name: api.SinkNameFile, Type: api.SinkFile}}
			return cl.Update(t.Context(), old)
		}, ""},
		{"a new grid with sinks", func() error {
			return cl.Create(t.Context(), grid("new", api.OrderGridSpec{Sinks: old.Spec.Sinks}), client.DryRunAll)
		}, ""},
	} {
		if warnings, err := heard.of(test.do); err != nil || strings.Join(warnings, "\n") != test.want {
			t.Errorf("%s: the API server warns %q, %v; want %q", test.name, warnings, err, test.want)
		}
	}
	for _, g := range []*api.OrderGrid{old, held} {
		if err := cl.Delete(t.Context(), g); err != nil {
			t.Error(err)
		}
	}
}

// TestDeprecationsGoWithTheCRDs: without the chart's CRDs there is no policy either.
func TestDeprecationsGoWithTheCRDs(t *testing.T) {
	const key = "ValidatingAdmissionPolicy/og-ordergrid-deprecations"
	if render(t)[key] == nil || render(t, "crds.install=false")[key] != nil {
		t.Error("the policy does not go with the CRDs")
	}
}
