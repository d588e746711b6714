package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

// TestEveryPermissionCanBeGranted: a rule may have each permission that a node knows, and all of them at once.
func TestEveryPermissionCanBeGranted(t *testing.T) {
	cl := newClient(t)
	var all []api.AuthorizationPermission
	for _, p := range access.Each() {
		all = append(all, api.AuthorizationPermission(p.String()))
	}
	if len(all) < 10 {
		t.Fatalf("the node knows %v, want the 10 permissions of docs/security.md", all)
	}
	grant := func(permissions ...api.AuthorizationPermission) {
		t.Helper()
		g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "granting", Namespace: "default"}}
		g.Spec.Security = api.SecuritySpec{TLS: &api.TLSSpec{}, Authorization: &api.AuthorizationSpec{Mode: api.AuthorizationEnforce, Rules: []api.AuthorizationRule{
			{Subjects: []api.AuthorizationSubject{{Kind: api.SubjectUser, Name: "ann"}}, Permissions: permissions}}}}
		if err := cl.Create(t.Context(), g, client.DryRunAll); err != nil {
			t.Errorf("%v: %v", permissions, err)
		}
	}
	for _, p := range all {
		grant(p)
	}
	grant(all...)
}
