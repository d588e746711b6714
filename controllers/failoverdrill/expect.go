package failoverdrill

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// expectDrill is the expectations of the whole drill.
func expectDrill(spec *api.FailoverDrillSpec) recorder.Expect {
	s := &spec.SteadyState
	e := recorder.Expect{RedundantWithin: s.RedundantWithin.Duration, FailedOrders: string(s.FailedOrders), Loss: recorder.LossNever}
	replace(&e, s.Outage, nil)
	if s.P99 != nil {
		e.SteadyP99 = s.P99.Duration
	}
	return e
}

// expectOf is the expectations of a step: the drill's, overridden by those of its fault.
func expectOf(o *observation, p *plan.Step) recorder.Expect {
	e := expectDrill(&o.drill.Spec)
	if o.drill.Spec.Safety.LastCopy == api.LastCopyTake && plan.EndsCopies(p.Fault.Type) {
		e.Loss = recorder.LossWarned // it may take a last copy on purpose, and the grid must warn before
	}
	if own := p.Fault.Expect; own != nil {
		replace(&e, own.Outage, own.P99)
		if own.FailedOrders != "" {
			e.FailedOrders = string(own.FailedOrders)
		}
	}
	return e
}

func replace(e *recorder.Expect, outage, p99 *metav1.Duration) {
	if outage != nil {
		e.Outage = outage.Duration
	}
	if p99 != nil {
		e.P99 = p99.Duration
	}
}
