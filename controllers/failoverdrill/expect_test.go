package failoverdrill

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// TestExpectOf: the expectations of a fault override those of the drill, and the limits of the steady state apply to
// the time without a fault.
func TestExpectOf(t *testing.T) {
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	o := &observation{drill: &api.FailoverDrill{Spec: api.FailoverDrillSpec{
		SteadyState: api.DrillSteadyState{Outage: d(time.Second), P99: d(time.Millisecond), RedundantWithin: *d(time.Minute), FailedOrders: api.FailedOrdersNone},
	}}}
	want := recorder.Expect{Outage: time.Second, SteadyP99: time.Millisecond, RedundantWithin: time.Minute, FailedOrders: recorder.FailedOrdersNone, Loss: recorder.LossNever}
	if got := expectOf(o, &plan.Step{Fault: api.DrillFault{Type: api.FaultPodKill}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Outage, want.P99, want.FailedOrders, want.Loss = 2*time.Second, 4*time.Second, recorder.FailedOrdersAllowed, recorder.LossWarned
	o.drill.Spec.Safety.LastCopy = api.LastCopyTake
	own := &api.DrillExpectation{Outage: d(2 * time.Second), P99: d(4 * time.Second), FailedOrders: api.FailedOrdersAllowed}
	if got := expectOf(o, &plan.Step{Fault: api.DrillFault{Type: api.FaultPodKill, Expect: own}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
