package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestTLSOfARunningGrid: pods of before and after a change that both ends have to know are never side by side.
func TestTLSOfARunningGrid(t *testing.T) {
	cl := newClient(t)
	namespace := envtest.Namespace(t, cl, "tls-")
	grid := func(name string, tls *api.TLSSpec) *api.OrderGrid {
		g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		g.Spec.Security.TLS = tls
		if err := cl.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	plain, secured := grid("plain", nil), grid("secured", &api.TLSSpec{})
	if s := secured.Spec.Security.TLS; s.Issuer != api.IssuerOperator || s.ClientAuth != api.ClientAuthRequire || s.Duration.Hours() != 2160 || s.RenewBefore.Hours() != 720 {
		t.Errorf("defaults are %+v", s)
	}
	if n := plain.Spec.Security.NetworkPolicy.Type; n != api.NetworkPolicyNone {
		t.Errorf("the default of networkPolicy.type is %q", n)
	}
	for name, c := range map[string]struct {
		grid   *api.OrderGrid
		change func(*api.OrderGrid)
		want   string
	}{
		"on":          {plain, func(g *api.OrderGrid) { g.Spec.Security.TLS = &api.TLSSpec{} }, "added to a running grid"},
		"off":         {secured, func(g *api.OrderGrid) { g.Spec.Security.TLS = nil }, "taken from a running grid"},
		"without all": {secured, func(g *api.OrderGrid) { g.Spec.Security = api.SecuritySpec{} }, "taken from a running grid"},
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
