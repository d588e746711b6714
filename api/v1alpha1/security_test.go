package v1alpha1_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestTLSOfARunningGrid: TLS can be enabled, but not removed from pods that dial each other with it.
func TestTLSOfARunningGrid(t *testing.T) {
	cl := newClient(t)
	namespace := envtest.Namespace(t, cl, "tls-")
	grid := func(name string, tls *api.TLSSpec) *api.OrderGrid {
		g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		if g.Spec.Security.TLS = tls; tls == nil {
			g.Spec.Security.Insecure = api.InsecureAccept
		}
		if err := cl.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	plain, secured := grid("plain", nil), grid("secured", &api.TLSSpec{})
	if s := secured.Spec.Security.TLS; s.Issuer != api.IssuerOperator || s.ClientAuth != api.ClientAuthRequire || s.Duration.Hours() != 2160 || s.RenewBefore.Hours() != 720 {
		t.Errorf("defaults are %+v", s)
	}
	if n := plain.Spec.Security.PolicyType(); n != api.NetworkPolicyNone {
		t.Errorf("without TLS the default of networkPolicy.type is %q", n)
	}
	if n := secured.Spec.Security.PolicyType(); n != api.NetworkPolicyRestricted {
		t.Errorf("with TLS the default of networkPolicy.type is %q", n)
	}
	for name, c := range map[string]struct {
		grid   *api.OrderGrid
		change func(*api.OrderGrid)
		want   string
	}{
		"on":         {plain, func(g *api.OrderGrid) { g.Spec.Security.TLS = &api.TLSSpec{} }, ""},
		"on at once": {plain, func(g *api.OrderGrid) { g.Spec.Security = api.SecuritySpec{TLS: &api.TLSSpec{}} }, "spec.security.networkPolicy: Invalid value: type is missing: the default changes from None to Restricted"},
		"on, and named": {plain, func(g *api.OrderGrid) {
			g.Spec.Security = api.SecuritySpec{TLS: &api.TLSSpec{}, NetworkPolicy: api.NetworkPolicySpec{Type: api.NetworkPolicyNone}}
		}, ""},
		"opened":            {secured, func(g *api.OrderGrid) { g.Spec.Security.Insecure = api.InsecureAccept }, ""},
		"off":               {secured, func(g *api.OrderGrid) { g.Spec.Security.TLS = nil }, "tls was taken from a running grid"},
		"without all":       {secured, func(g *api.OrderGrid) { g.Spec.Security = api.SecuritySpec{} }, "tls was taken from a running grid"},
		"off for the open":  {secured, func(g *api.OrderGrid) { g.Spec.Security = api.SecuritySpec{Insecure: api.InsecureAccept} }, "tls was taken from a running grid"},
		"no word":           {plain, func(g *api.OrderGrid) { g.Spec.Security = api.SecuritySpec{} }, "or write insecure: Accept"},
		"another word":      {plain, func(g *api.OrderGrid) { g.Spec.Security.Insecure = api.InsecureRefuse }, "or write insecure: Accept"},
		"not authenticated": {secured, func(g *api.OrderGrid) { g.Spec.Security.TLS.ClientAuth = api.ClientAuthNone }, "clients are not authenticated"},
		"other authorities": {secured, func(g *api.OrderGrid) {
			g.Spec.Security.TLS.ClientAuthorities = &api.ConfigMapReference{Name: "desk"}
		}, "every client of theirs may do everything"},
		"other issuer": {secured, func(g *api.OrderGrid) {
			s := g.Spec.Security.TLS
			s.Issuer, s.Secrets = api.IssuerSecret, &api.TLSSecretsSpec{Nodes: "a", Tools: "b"}
		}, "Secret differs from Operator"},
		"another client": {secured, func(g *api.OrderGrid) { g.Spec.Security.TLS.Clients = []string{"oms"} }, ""},
		"policy":         {plain, func(g *api.OrderGrid) { g.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted }, ""},
	} {
		changed := c.grid.DeepCopy()
		c.change(changed)
		err := cl.Update(t.Context(), changed, client.DryRunAll)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestGridsOfBefore: an open grid accepted before insecure was required keeps running, and its other fields can change.
func TestGridsOfBefore(t *testing.T) {
	cl := newClient(t)
	namespace := envtest.Namespace(t, cl, "before-")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: "ordergrids.ordergrid.dev"}
	crds := envtest.Client(t, envtest.Config(t), apiextensionsv1.AddToScheme)
	// The earlier rules are those without optionalOldSelf: only an earlier API server accepts such a grid.
	type list = apiextensionsv1.ValidationRules
	rules := func(change func(spec, security list) (list, list)) {
		t.Helper()
		if err := crds.Get(t.Context(), key, crd); err != nil {
			t.Fatal(err)
		}
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := root.Properties["spec"]
		security := spec.Properties["security"]
		spec.XValidations, security.XValidations = change(spec.XValidations, security.XValidations)
		spec.Properties["security"], root.Properties["spec"] = security, spec
		if err := crds.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	var specNow, securityNow list
	rules(func(spec, security list) (list, list) {
		specNow, securityNow = slices.Clone(spec), slices.Clone(security)
		ofNow := func(r apiextensionsv1.ValidationRule) bool { return ptr.Deref(r.OptionalOldSelf, false) }
		return slices.DeleteFunc(spec, ofNow), slices.DeleteFunc(security, ofNow)
	})
	restore := sync.OnceFunc(func() { rules(func(list, list) (list, list) { return specNow, securityNow }) })
	defer restore()
	plain := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: namespace}}
	unasked := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "unasked", Namespace: namespace}}
	unasked.Spec.Security.TLS = &api.TLSSpec{ClientAuth: api.ClientAuthNone}
	for _, g := range []*api.OrderGrid{plain, unasked} {
		envtest.Eventually(t, "the rules of before hold", func(ctx context.Context) error { return cl.Create(ctx, g) })
	}
	restore()
	envtest.Eventually(t, "the rules of now hold", func(ctx context.Context) error {
		err := cl.Create(ctx, &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: namespace}}, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "insecure: Accept") {
			return fmt.Errorf("a new grid without a word: %v", err)
		}
		return nil
	})
	for _, c := range []struct {
		name   string
		grid   *api.OrderGrid
		change func(*api.OrderGridSpec)
		want   string
	}{
		{"nothing but a label", plain, func(*api.OrderGridSpec) {}, ""},
		{"another minInSync", plain, func(s *api.OrderGridSpec) { s.MinInSync = 2 }, ""},
		{"the word", plain, func(s *api.OrderGridSpec) { s.Security.Insecure = api.InsecureAccept }, ""},
		{"the word that it is not", plain, func(s *api.OrderGridSpec) { s.Security.Insecure = api.InsecureRefuse }, ""},
		{"another minInSync without client authentication", unasked, func(s *api.OrderGridSpec) { s.MinInSync = 2 }, ""},
		{"rules", unasked, func(s *api.OrderGridSpec) {
			s.Security.Authorization = &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}
		}, ""},
		{"certificates of all authorities", unasked, func(s *api.OrderGridSpec) { s.Security.TLS.ClientAuth = api.ClientAuthRequire }, ""},
	} {
		changed := c.grid.DeepCopy()
		changed.Labels = map[string]string{"desk": "fx"}
		c.change(&changed.Spec)
		if err := cl.Update(t.Context(), changed, client.DryRunAll); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if n := plain.Spec.Security.PolicyType(); n != api.NetworkPolicyNone {
		t.Errorf("an open grid of before gets a policy of type %q", n)
	}
}
