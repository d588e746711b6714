package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestSiteOfGridStays: what the partitions of a grid began as is not changed by an edit of spec, but the name of the
// other site may be.
func TestSiteOfGridStays(t *testing.T) {
	cl := newClient(t)
	namespace := envtest.Namespace(t, cl, "site-")
	const never = "a grid is a standby from its creation, or never was one; put it back as it was"
	active, standby := &api.GridSiteSpec{Role: api.SiteActive}, &api.GridSiteSpec{Role: api.SiteStandby, Source: "site a"}
	for _, c := range []struct {
		name          string
		before, after *api.GridSiteSpec
		refused       string
	}{
		{"late", nil, standby, never},
		{"removed", standby, nil, never},
		{"begun", active, standby, "spec.site.role: Invalid value: \"Standby\": Standby differs from Active, which the partitions began as; keep it. kubectl ordergrid promote and demote"},
		{"ended", standby, active, "Active differs from Standby"},
		{"renamed", standby, &api.GridSiteSpec{Role: api.SiteStandby, Source: "site b"}, ""},
		{"named", nil, active, ""},
		{"unnamed", active, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: namespace}, Spec: api.OrderGridSpec{Site: c.before, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
			if err := cl.Create(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			g.Spec.Site = c.after
			err := cl.Update(t.Context(), g)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
}
