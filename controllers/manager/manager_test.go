package manager

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/controllers/gridlink"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/controllers/orderprobe"
)

func TestCheck(t *testing.T) {
	good := Options{Workers: 1, Grid: ordergrid.Defaults{Image: "g"}, Probe: orderprobe.Defaults{Image: "p"}, Link: gridlink.Defaults{Image: "l"}}
	if err := good.Check(); err != nil {
		t.Errorf("refused: %v", err)
	}
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Grid.Image = "" }, "--grid-node-image: empty; name the image"},
		{func(o *Options) { o.Probe.Image = "" }, "--order-probe-image: empty; name the image"},
		{func(o *Options) { o.Link.Image = "" }, "--grid-link-image: empty; name the image"},
		{func(o *Options) { o.Drill.Namespaces = []string{"a", ""} }, `--drill-namespaces: an empty name; give names of namespaces, or "*"`},
		{func(o *Options) { o.PodTemplateAllow = []string{"trading=Privilege"} }, `--pod-template-allow: "trading=Privilege": "Privilege" is unknown; allowed are Capability or Capability/NAME`},
		{func(o *Options) { o.FunctionAllow = []string{"lab=https://registry.example"} }, `--function-allow: "lab=https://registry.example": `},
		{func(o *Options) { o.DrillAllow = []string{"lab=PodKill"} }, `--drill-allow: "lab=PodKill": "PodKill" is not a type of fault that has to be allowed; these are APIServerOutage, NodeLinkDown, NodePowerOff`},
		{func(o *Options) { o.Workers = 0 }, "--workers: 0 is out of range; give at least 1"},
		{func(o *Options) { o.Grid.ImagePullPolicy = "Sometimes" }, `--image-pull-policy: "Sometimes" is not a pull policy; allowed are Always, IfNotPresent, Never`},
	} {
		o := good
		test.change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// TestCacheIsLimited: every kind but Node is cached only with the operator's label, or is OrderGrid's own. A kind that
// is forgotten here would put every object of the cluster into memory.
func TestCacheIsLimited(t *testing.T) {
	o := cacheOptions([]string{"emea", "apac"})
	if len(o.DefaultNamespaces) != 2 || len(cacheOptions(nil).DefaultNamespaces) != 0 {
		t.Errorf("namespaces %v", o.DefaultNamespaces)
	}
	for object, by := range o.ByObject {
		if _, ok := object.(*corev1.Node); ok { // all nodes are needed, but few fields
			if by.Transform == nil {
				t.Error("whole Nodes are kept in memory")
			}
			continue
		}
		if by.Label == nil || by.Label.String() != "app.kubernetes.io/managed-by=ordergrid-operator" {
			t.Errorf("%T: %v", object, by.Label)
		}
	}
	if len(o.ByObject) != 12 {
		t.Errorf("%d kinds", len(o.ByObject))
	}
}
