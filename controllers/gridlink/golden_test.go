package gridlink

import (
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

var testDefaults = Defaults{Image: "ordergrid.dev/grid-link:dev", ImagePullPolicy: corev1.PullIfNotPresent}

// aLink goes from grid trades of its namespace to one elsewhere.
func aLink() *api.GridLink {
	return &api.GridLink{
		ObjectMeta: metav1.ObjectMeta{Name: "to-b", Namespace: "trading", Generation: 1},
		Spec: api.GridLinkSpec{
			From:   api.LinkEnd{GridRef: &api.GridReference{Name: "trades"}},
			To:     api.LinkEnd{Grid: "trades", Endpoints: []string{"orders.b.example.com:7400", "192.0.2.7:17400"}, TLSName: "orders.b", Credentials: &api.LinkCredentials{SecretName: "site-b", Type: api.LinkToken}},
			Reader: "link", Batch: 1000, Delay: metav1.Duration{Duration: 20 * time.Millisecond}, MaxLag: metav1.Duration{Duration: time.Minute},
			MaxBandwidth: ptr.To(resource.MustParse("12500k")), NetworkPolicy: api.NetworkPolicyRestricted,
		},
	}
}

// aGrid has what a link needs.
func aGrid() *api.OrderGrid {
	return &api.OrderGrid{
		ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: "trading"},
		Spec: api.OrderGridSpec{Partitions: 8, Sinks: []api.SinkSpec{{Name: "link", Type: api.SinkExternal}},
			Security: api.SecuritySpec{TLS: &api.TLSSpec{Clients: []string{"to-b"}}}},
	}
}

func resolved(t *testing.T, link *api.GridLink, grid *api.OrderGrid) (from, to *end) {
	t.Helper()
	from, bad := resolve(link, "source", &link.Spec.From, grid)
	if bad.reason != "" {
		t.Fatal(bad)
	}
	if to, bad = resolve(link, "target", &link.Spec.To, grid); bad.reason != "" {
		t.Fatal(bad)
	}
	return from, to
}

// TestGoldenObjects compares every object of two links with testdata/<link>/<object>.yaml.
func TestGoldenObjects(t *testing.T) {
	open := aLink()
	open.Spec.To = api.LinkEnd{Grid: "lab", Endpoints: []string{"[2001:db8::1]:7400"}, Insecure: api.InsecureAccept}
	open.Spec.MaxBandwidth = nil
	lab := aGrid()
	lab.Spec.Security = api.SecuritySpec{Insecure: api.InsecureAccept}
	for name, c := range map[string]struct {
		link *api.GridLink
		grid *api.OrderGrid
	}{"secured": {aLink(), aGrid()}, "open": {open, lab}} {
		from, to := resolved(t, c.link, c.grid)
		for object, built := range map[string]client.Object{
			"deployment":     deployment(c.link, from, to, testDefaults),
			"serviceaccount": serviceAccount(c.link),
			"networkpolicy":  networkPolicy(c.link, from, to),
		} {
			t.Run(name+"/"+object, func(t *testing.T) {
				golden.YAML(t, filepath.Join("testdata", name, object+".yaml"), built)
			})
		}
	}
}
