package plan_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// TestSuitesAreValid: the faults of a suite are valid as a drill's own faults, as defaulted by the API server, and can
// be planned for a pair.
func TestSuitesAreValid(t *testing.T) {
	cl, err := client.New(envtest.Config(t), client.Options{Scheme: envtest.Scheme(), FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]api.DrillSuite{}
	for _, s := range plan.Suites() {
		t.Run(string(s.Name), func(t *testing.T) {
			resolved, err := plan.ResolveSuite(&api.FailoverDrillSpec{Suite: s.Name})
			if err != nil {
				t.Fatal(err)
			}
			own := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "default"}, Spec: *resolved.DeepCopy()}
			own.Spec.Suite, own.Spec.GridRef.Name = "", "rtd"
			if err := cl.Create(t.Context(), own, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			for i := range resolved.Faults {
				if !reflect.DeepEqual(own.Spec.Faults[i], resolved.Faults[i]) {
					t.Errorf("the API server's defaults differ:\n%+v\n%+v", own.Spec.Faults[i], resolved.Faults[i])
				}
			}
			steps, err := plan.Steps(resolved, plan.Shape{Shards: 1, Replicas: 2, Partitions: 2}, 1)
			if err != nil || len(steps) != len(s.Faults)*int(s.Repetitions) {
				t.Errorf("%d steps, error %v", len(steps), err)
			}
			if s.Shows == "" || s.Needs == "" || s.RatePerProbe == 0 {
				t.Errorf("%+v is incomplete", s)
			}
			for _, f := range s.Faults {
				if f.Expect == nil || f.Expect.Outage == nil {
					t.Errorf("%s: no limit for the outage", f.Name)
				}
				if before, ok := seen[f.Name]; ok && s.Name != api.SuiteOvernight {
					t.Errorf("%s is in %s already; overnight has both", f.Name, before)
				}
				seen[f.Name] = s.Name
			}
		})
	}
	if n := len(plan.Suites()); n != 10 {
		t.Errorf("%d suites", n)
	}
}

// TestOvernightHasEverything: every fault of every suite of grids that store, each once.
func TestOvernightHasEverything(t *testing.T) {
	n := 0
	for _, s := range plan.Suites() {
		if s.Matches {
			continue
		}
		if s.Name != api.SuiteOvernight {
			n += len(s.Faults)
			continue
		}
		if len(s.Faults) != n || n > 32 || s.Order != api.OrderRandom {
			t.Errorf("%d faults in order %s; the others have %d", len(s.Faults), s.Order, n)
		}
	}
}

func TestResolve(t *testing.T) {
	outage := &metav1.Duration{Duration: 50 * time.Millisecond}
	spec := &api.FailoverDrillSpec{Suite: api.SuitePullThePlug}
	before := spec.DeepCopy()
	r, err := plan.ResolveSuite(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(spec, before) {
		t.Errorf("the spec was changed: %+v", spec)
	}
	if *r.Repetitions != 10 || *r.Traffic.RatePerProbe != 3000 || r.Order != api.OrderListed || r.SteadyState.FailedOrders != api.FailedOrdersNone {
		t.Errorf("resolved %+v", r)
	}
	if f := r.Faults[0]; f.Target.Role != api.RolePrimary || f.Start != api.StartRedundant || f.Expect.Outage.Duration != time.Second {
		t.Errorf("fault %+v", f)
	}
	// Settings of the drill take precedence.
	r, err = plan.ResolveSuite(&api.FailoverDrillSpec{
		Suite: api.SuiteAPIOutage, Repetitions: new(int32(2)), Order: api.OrderRandom, Traffic: api.DrillTraffic{RatePerProbe: new(int32(7))},
		SteadyState: api.DrillSteadyState{Outage: outage, FailedOrders: api.FailedOrdersAllowed},
	})
	if err != nil {
		t.Fatal(err)
	}
	if *r.Repetitions != 2 || *r.Traffic.RatePerProbe != 7 || r.Order != api.OrderRandom {
		t.Errorf("resolved %+v", r)
	}
	if e := r.Faults[0].Expect; e.Outage != nil || e.FailedOrders != "" || r.SteadyState.Outage.Duration != outage.Duration {
		t.Errorf("the suite's own limits %+v override those of the drill", e)
	}
	if e := r.Faults[3].Expect; e.Grid != api.GridRefusesOrders || e.Outage == nil {
		t.Errorf("a fault that is expected to stop orders has the outage limit %v: %+v", outage, e)
	}
	// A drill's own faults.
	r, err = plan.ResolveSuite(&api.FailoverDrillSpec{Faults: []api.DrillFault{
		{Name: "cut", Type: api.FaultNetworkPartition}, {Name: "roll", Type: api.FaultRollingUpdate, Start: api.StartServed},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if *r.Repetitions != 1 || *r.Traffic.RatePerProbe != 1000 || r.Faults[0].Target.Peer != api.PeerCopies || r.Faults[0].Network.Direction != api.DirectionBoth ||
		r.Faults[1].Target != nil || r.Faults[1].Start != api.StartServed {
		t.Errorf("resolved %+v", r)
	}
	if _, err := plan.ResolveSuite(&api.FailoverDrillSpec{Suite: "kill"}); err == nil || !strings.Contains(err.Error(), `suite "kill" is unknown; allowed are pull-the-plug, network`) {
		t.Errorf("error %v", err)
	}
}
