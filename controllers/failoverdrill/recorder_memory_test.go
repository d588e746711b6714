package failoverdrill

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// TestRecorderMemory: a recorder has room for the orders of its drill, requests that much, and uses no more.
func TestRecorderMemory(t *testing.T) {
	for _, test := range []struct {
		name   string
		spec   api.FailoverDrillSpec
		orders int64 // at the very least, from runs of the suites (docs/drills)
		limit  string
	}{
		{"published test", api.FailoverDrillSpec{Suite: api.SuitePullThePlug}, 532556, "2194Mi"},
		{"network", api.FailoverDrillSpec{Suite: api.SuiteNetwork}, 248393, ""},
		{"node", api.FailoverDrillSpec{Suite: api.SuiteNode}, 409919, ""},
		{"one slow step", api.FailoverDrillSpec{Faults: []api.DrillFault{{Name: "a", Type: api.FaultHandOver}}, Traffic: api.DrillTraffic{RatePerProbe: new(int32(10))}}, 1000, "512Mi"},
		{"as long and fast as can be", api.FailoverDrillSpec{Suite: api.SuiteOvernight, Repetitions: new(int32(1000)), Traffic: api.DrillTraffic{RatePerProbe: new(int32(100000)), Probes: 26}}, 1e10, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, err := plan.ResolveSuite(&test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if spec.Traffic.Probes == 0 {
				spec.Traffic.Probes = 2 // as defaulted by the API server
			}
			spec.SteadyState.Calm, spec.SteadyState.Settle, spec.SteadyState.RedundantWithin = in(5*time.Second), in(3*time.Second), in(2*time.Minute)
			steps, err := plan.Steps(spec, plan.Shape{Shards: 1, Replicas: 2, Partitions: 2}, 1)
			if err != nil {
				t.Fatal(err)
			}
			grid := &api.OrderGrid{Spec: api.OrderGridSpec{Replicas: 2}}
			r := recorderContainer(&api.FailoverDrill{Spec: *spec}, grid, steps, testDefaults).Resources
			limit, request := r.Limits[corev1.ResourceMemory], r.Requests[corev1.ResourceMemory]
			if limit.Cmp(request) != 0 {
				t.Errorf("limit %s, request %s: want the ledger's memory reserved", limit.String(), request.String())
			}
			grid.Spec.Callbacks = &api.CallbacksSpec{Post: []api.CallbackReference{{Name: "audit-trail"}}}
			if with := recorderMemory(&api.FailoverDrill{Spec: *spec}, grid, steps); test.orders > 1000 && with <= limit.Value() {
				t.Errorf("with records of a function %d bytes, without %s", with, limit.String())
			}
			if n := recorder.OrdersIn(limit.Value(), 2); n < test.orders {
				t.Errorf("limit %s has room for %d orders, and a run of it created %d", limit.String(), n, test.orders)
			}
			if test.limit != "" && limit.String() != test.limit {
				t.Errorf("limit %s, want %s", limit.String(), test.limit)
			}
		})
	}
}

func in(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// TestRecorderMemoryIsTheUsers: user-defined resources are not changed.
func TestRecorderMemoryIsTheUsers(t *testing.T) {
	d := under("").drill
	own := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}}
	d.Spec.Traffic.Resources = &own
	r := recorderContainer(d, &api.OrderGrid{}, nil, testDefaults).Resources
	if limit := r.Limits[corev1.ResourceMemory]; limit.String() != "8Gi" || len(r.Requests) != 0 {
		t.Errorf("%+v", r)
	}
}
