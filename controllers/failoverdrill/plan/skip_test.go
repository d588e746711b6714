package plan_test

import (
	"reflect"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// TestSkip: followers are skipped with their leaders, and the rest of the plan does not change.
func TestSkip(t *testing.T) {
	spec := api.FailoverDrillSpec{Suite: api.SuiteAPIOutage, Repetitions: new(int32(4)), Order: api.OrderRandom}
	resolved := resolve(t, spec)
	skipped := plan.Skip(resolved, map[string]string{"api-gone": "no executor", "cut-from-api-again": "no ipset"})
	want := []api.DrillSkipped{
		{Fault: "api-gone", Type: api.FaultAPIServerOutage, Message: "no executor"},
		{Fault: "cut-from-api-again", Type: api.FaultAPIServerPartition, Message: "no ipset"},
		{Fault: "fail-meanwhile", Type: api.FaultPodFailure, Message: "it starts Held after cut-from-api-again, which is skipped"},
	}
	if !reflect.DeepEqual(skipped, want) {
		t.Errorf("skipped\n%+v, want\n%+v", skipped, want)
	}
	all := steps(t, spec, 5)
	left := plan.Without(all, skipped)
	if len(left) != 4 {
		t.Fatalf("%d steps left", len(left))
	}
	var kept []plan.Step
	for _, s := range all {
		if s.Fault.Name == "cut-from-api" {
			s.Index = len(kept)
			kept = append(kept, s)
		}
	}
	if !reflect.DeepEqual(left, kept) {
		t.Errorf("left\n%+v, want\n%+v", left, kept)
	}
	if k := plan.Skip(resolved, map[string]string{"fail-meanwhile": "why"}); len(k) != 1 || len(plan.Without(all, k)) != 12 {
		t.Errorf("skipped %+v; the leader stays without its follower", k)
	}
	if k := plan.Skip(resolved, nil); k != nil || len(plan.Without(all, k)) != len(all) {
		t.Errorf("skipped %+v", k)
	}
}
