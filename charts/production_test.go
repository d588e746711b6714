package charts

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestProductionValues: the documented production values give the operator permissions in the namespaces of grids, and
// cluster-wide only to read nodes and to review readers of metrics.
func TestProductionValues(t *testing.T) {
	out, err := helm(t, "template", "og", "ordergrid", "--namespace", "og-system", "--kube-version", "1.36.3", "--set", "userRoles=false", "--values", "../docs/examples/production/values.yaml")
	if err != nil {
		t.Fatal(err, out)
	}
	objects := objectsOf(t, out)
	for key := range objects {
		if name, found := strings.CutPrefix(key, "ClusterRole/"); found && name != "og-ordergrid-preflight" && name != "og-ordergrid-metrics" && name != "og-ordergrid-metrics-reader" {
			t.Errorf("%s in production", key)
		}
	}
	if objects["Role/trading/og-ordergrid"] == nil || objects["Role/trading/og-ordergrid-certificates"] == nil {
		t.Error("no permissions in the grids' namespace")
	}
	args := strings.Join(as[appsv1.Deployment](t, objects, operator).Spec.Template.Spec.Containers[0].Args, " ")
	for _, want := range []string{"--watch-namespaces=trading", "--pod-template-allow=trading=PriorityClass/trading", "--preflight"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in %s", want, args)
		}
	}
}
