package ordergrid

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/internal/golden"
)

// guardedGrid is a pair that authorizes clients.
func guardedGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Security.TLS = &api.TLSSpec{Issuer: api.IssuerOperator, ClientAuth: api.ClientAuthNone}
	grid.Spec.Security.Authorization = &api.AuthorizationSpec{Mode: api.AuthorizationEnforce, TokenAudience: "trades.bank.example", Rules: []api.AuthorizationRule{
		{Subjects: []api.AuthorizationSubject{{Kind: api.SubjectServiceAccount, Namespace: "trading", Name: "gateway"}, {Kind: api.SubjectUser, Name: "gateway-7"}},
			Permissions: []api.AuthorizationPermission{api.PermissionSubmit, api.PermissionRead}},
		{Subjects: []api.AuthorizationSubject{{Kind: api.SubjectGroup, Name: "surveillance"}}, Permissions: []api.AuthorizationPermission{api.PermissionRead, api.PermissionAdmin}},
	}}
	return grid
}

func TestGoldenAuthorization(t *testing.T) {
	grid := guardedGrid()
	template, err := overlay(grid, pod(grid, 0, testDefaults))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := authorization(grid)
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string]client.Object{"authorization": rules, "statefulset": statefulSet(grid, 0, grid.Spec.Replicas, template)} {
		golden.YAML(t, filepath.Join("testdata", "guarded", name+".yaml"), object)
	}
}

// A node reads the rules as the operator wrote them; the operator's own tools are allowed regardless of the rules.
func TestNodesReadTheRules(t *testing.T) {
	grid := guardedGrid()
	object, err := authorization(grid)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := access.Parse([]byte(object.Data[rulesKey]))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id   *access.Identity
		want access.Permissions
	}{
		"gateway":      {&access.Identity{User: "system:serviceaccount:trading:gateway", Token: true}, access.Submit | access.Read},
		"gateway-7":    {&access.Identity{User: "gateway-7"}, access.Submit | access.Read},
		"surveillance": {&access.Identity{User: "bob", Groups: []string{"surveillance"}}, access.Read | access.Admin},
		"tools":        {access.OfCertificate(&x509.Certificate{Subject: pkix.Name{CommonName: wanted(grid)[1].leaf.Name}}, true), access.All &^ access.Link &^ access.Query &^ access.Gateway &^ access.Risk &^ access.Write},
		"stranger":     {&access.Identity{User: "stranger"}, 0},
	} {
		if got := rules.Of(c.id); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Without authorization pods have neither rules nor tokens.
func TestNoAuthorization(t *testing.T) {
	for name, a := range map[string]*api.AuthorizationSpec{"without": nil, "mode None": {Mode: api.AuthorizationNone, TokenAudience: "ordergrid.dev"}} {
		grid := pairGrid()
		grid.Spec.Security.Authorization = a
		p := pod(grid, 0, testDefaults)
		c := p.Spec.Containers[0]
		if slices.ContainsFunc(c.Args, func(s string) bool { return strings.Contains(s, "authorization") || strings.Contains(s, "token") }) {
			t.Errorf("%s: %v", name, c.Args)
		}
		for _, m := range c.VolumeMounts {
			if m.Name == rulesVolume {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// A change of rules changes no pod.
func TestRulesNeedNoNewPods(t *testing.T) {
	before, after := guardedGrid(), guardedGrid()
	after.Spec.Security.Authorization.Rules = after.Spec.Security.Authorization.Rules[:1]
	a, b := pod(before, 0, testDefaults), pod(after, 0, testDefaults)
	if !slices.Equal(a.Spec.Containers[0].Args, b.Spec.Containers[0].Args) || len(a.Spec.Volumes) != len(b.Spec.Volumes) || len(a.Annotations) != len(b.Annotations) {
		t.Error("the pods of a grid with other rules are other pods")
	}
}
