package gridlink

import (
	"strings"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestGridsThatCannotBeLinked: what a grid of the namespace lacks is named, with the remedy.
func TestGridsThatCannotBeLinked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.OrderGrid) *api.OrderGrid
		want   string
		text   string
	}{
		"as it should be": {func(g *api.OrderGrid) *api.OrderGrid { return g }, "", ""},
		"missing":         {func(*api.OrderGrid) *api.OrderGrid { return nil }, reasonGridNotFound, "spec.from.gridRef: there is no OrderGrid trades in namespace trading"},
		"without a sink":  {func(g *api.OrderGrid) *api.OrderGrid { g.Spec.Sinks = nil; return g }, reasonReaderMissing, "add {name: link, type: External} to its spec.sinks"},
		"with another sink": {func(g *api.OrderGrid) *api.OrderGrid {
			g.Spec.Sinks[0].Type = api.SinkFile
			return g
		}, reasonReaderMissing, "has no sink link of type External"},
		"without a certificate": {func(g *api.OrderGrid) *api.OrderGrid { g.Spec.Security.TLS.Clients = nil; return g }, reasonCredentialsMissing, "add to-b to its spec.security.tls.clients"},
		"without TLS":           {func(g *api.OrderGrid) *api.OrderGrid { g.Spec.Security.TLS = nil; return g }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			link := aLink()
			e, bad := resolve(link, "source", &link.Spec.From, c.change(aGrid()))
			if bad.reason != c.want || !strings.Contains(bad.message, c.text) || (e == nil) != (c.want != "") {
				t.Errorf("%+v, %+v; want %s, … %s", e, bad, c.want, c.text)
			}
		})
	}
	link, other := aLink(), aGrid()
	other.Spec.Partitions = 4
	from, _ := resolve(link, "source", &link.Spec.From, aGrid())
	to, _ := resolve(link, "target", &link.Spec.From, other)
	if p := agree(from, to); p.reason != reasonPartitionsDiffer || !strings.Contains(p.message, "trades has 8 partitions and trades has 4") {
		t.Errorf("8 and 4 partitions: %+v", p)
	}
	elsewhere, _ := resolve(link, "target", &link.Spec.To, nil)
	if p := agree(from, elsewhere); p.reason != "" {
		t.Errorf("a grid elsewhere: %+v", p)
	}
}
