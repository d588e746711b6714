package orderprobe

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

var testDefaults = Defaults{Image: "ordergrid.dev/order-probe:dev", ImagePullPolicy: corev1.PullIfNotPresent}

// TestOnFabric: probes of a grid with a fabric are on it.
func TestOnFabric(t *testing.T) {
	probe := pairProbe()
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: "trading"}, Spec: api.OrderGridSpec{Fabric: &api.FabricSpec{
		Network: api.NetworkReference{Name: "ib", Namespace: "networks"}, Interface: "fabric0", ResourceName: "openshift.io/ib",
	}}}
	run := job(probe, plan(t, probe), testDefaults)
	objects.AttachNetwork(&run.Spec.Template, grid)
	golden.YAML(t, filepath.Join("testdata", "fabric", "job.yaml"), run)
}

func figures(t testing.TB) *published.Data {
	t.Helper()
	data, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func pairProbe() *api.OrderProbe {
	return &api.OrderProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "pair", Namespace: "trading", UID: "11111111-2222-3333-4444-555555555555"},
		Spec:       api.OrderProbeSpec{GridRef: api.GridReference{Name: "rtd"}, Scenario: api.ScenarioPair, Parameters: api.ParametersScaled},
	}
}

// bankProbe uses every field.
func bankProbe() *api.OrderProbe {
	probe := pairProbe()
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	probe.Spec.Parameters = api.ParametersExact
	probe.Spec.Overrides = &api.ProbeOverrides{
		RatesPerProbe: []int32{100, 250}, Warmup: d(0), Measure: d(30 * time.Second),
		Repeats: ptr.To[int32](3), Threads: ptr.To[int32](2), Probes: ptr.To[int32](4),
	}
	probe.Spec.Placement = &api.ProbePlacement{
		NodeSelector: map[string]string{"pool": "general"},
		Tolerations:  []corev1.Toleration{{Key: "bench", Operator: corev1.TolerationOpExists}},
	}
	probe.Spec.Image, probe.Spec.ImagePullPolicy = "registry.example/order-probe:1", corev1.PullAlways
	probe.Spec.TTL = d(time.Hour)
	return probe
}

func plan(t testing.TB, probe *api.OrderProbe) scenario.Plan {
	t.Helper()
	p, err := planOf(figures(t), probe, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestThroughFIX: the pods of a probe whose orders go through FIX sessions have place for an order-gateway, and a grid that
// would refuse them says so before they start.
func TestThroughFIX(t *testing.T) {
	probe := pairProbe()
	probe.Spec.Through = api.ThroughFIX
	golden.YAML(t, filepath.Join("testdata", "through", "job.yaml"), job(probe, plan(t, probe), testDefaults))
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd"}}
	if text := notThrough(probe, grid); text != "" {
		t.Errorf("a grid that lets every client do everything: %s", text)
	}
	grid.Spec.Security.Authorization = &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}
	if text := notThrough(probe, grid); !strings.Contains(text, "set spec.through to Native") {
		t.Errorf("a grid that enforces permissions: %q", text)
	}
	if text := notThrough(pairProbe(), grid); text != "" {
		t.Errorf("by the protocol of the grid: %s", text)
	}
}

// TestGoldenObjects compares every object of two probes with testdata/<probe>/<object>.yaml.
func TestGoldenObjects(t *testing.T) {
	for name, probe := range map[string]*api.OrderProbe{"pair": pairProbe(), "bank": bankProbe()} {
		p := plan(t, probe)
		for object, built := range map[string]client.Object{
			"serviceaccount":    serviceAccount(probe),
			"role":              role(probe, p.Probes),
			"rolebinding":       roleBinding(probe),
			"channel_configmap": channel(probe, 1),
			"run_configmap":     barrier(probe, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)),
			"job":               job(probe, p, testDefaults),
		} {
			t.Run(name+"/"+object, func(t *testing.T) {
				golden.YAML(t, filepath.Join("testdata", name, object+".yaml"), built)
			})
		}
	}
}
