package failoverdrill

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

const (
	// shownLimit bounds the wait for the expected state of the grid: its condition is set by the operator, which may be
	// busy.
	shownLimit = 30 * time.Second
	// silentFor is the time without acknowledgements that counts as refusing orders.
	silentFor = 2 * time.Second
)

// decideHolding waits until its time is over, and that of the steps that happen meanwhile.
func decideHolding(o *observation, s *api.DrillStep, p *plan.Step) decision {
	lasted := age(o, s.InjectedTime)
	if nextIs(o, api.StartHeld) && unfit(o) == nil {
		return going(o, &o.plan[next(o.drill)], doBegin, nil, "is next")
	}
	switch {
	case lasted < p.Duration && goneEarly(o, p):
		return going(o, p, doNothing, &stepChange{state: api.StepRecovering, outcome: api.StepFailed,
			message: fmt.Sprintf("the fault was recovered after %s, and not by this drill: %s", rounded(lasted), o.step.fault.Message)}, "is being recovered")
	case lasted < p.Duration && !timeOver(o):
		d := going(o, p, doNothing, nil, "is in place")
		d.again = min(pollStep, p.Duration-lasted)
		return d
	case s.Outcome == "" && !shown(o, p):
		if lasted < max(p.Duration, shownLimit) {
			return going(o, p, doNothing, nil, "is in place")
		}
		return going(o, p, doNothing, &stepChange{state: api.StepRecovering, outcome: api.StepMissed, message: notShown(p, lasted)}, "is being recovered")
	}
	c := to(api.StepRecovering)
	if late := lasted - heldTime(o.plan, int(s.Index)); p.Duration > 0 && late > stale && s.Message == "" {
		c.message = fmt.Sprintf("held for %s, not %s: the operator did not run, or could not reach the API server", rounded(lasted), p.Duration)
	}
	return going(o, p, doNothing, c, "is being recovered")
}

// heldTime is how long a fault is in place at most: its own time, and that of the steps that it holds.
func heldTime(steps []plan.Step, index int) time.Duration {
	total := steps[index].Duration
	for i := index + 1; i < len(steps) && steps[i].Start == api.StartHeld; i++ {
		total += steps[i].After + max(steps[i].Duration, inject.TypeOf(steps[i].Fault.Type).Visible()) + shownLimit
	}
	return total
}

// shown reports whether the grid has the state that the fault expects.
func shown(o *observation, p *plan.Step) bool {
	if p.Fault.Expect == nil {
		return true
	}
	switch p.Fault.Expect.Grid {
	case api.GridNotRedundant:
		return o.grid != nil && meta.IsStatusConditionFalse(o.grid.Status.Conditions, api.ConditionRedundant)
	case api.GridRefusesOrders:
		return o.step.record != nil && o.step.record.WorstGap >= silentFor
	}
	return true
}

func notShown(p *plan.Step, lasted time.Duration) string {
	if p.Fault.Expect.Grid == api.GridRefusesOrders {
		return fmt.Sprintf("within %s the grid went on to acknowledge orders; expected was that it refuses them", rounded(lasted))
	}
	return fmt.Sprintf("within %s the condition Redundant of the OrderGrid was not False; expected was this warning", rounded(lasted))
}

// decideRecovering waits until the provider reports that nothing is left, however long that takes. The condition
// Recovered has what blocks it.
func decideRecovering(o *observation, s *api.DrillStep, p *plan.Step) decision {
	if o.step.faultErr != nil || o.step.fault.Phase != inject.Gone {
		d := going(o, p, doRecover, nil, "is being recovered")
		d.again = backOff(age(o, s.StateTime))
		return d
	}
	if s.InjectedTime == nil {
		return going(o, p, doAbandon, to(api.StepDone), "could not be injected")
	}
	return going(o, p, doRecovered, to(api.StepSettling), "waits for service and all copies")
}

// decideSettling waits for service and redundancy after the fault, as seen by the recorder, and for the settle time. It
// skips a step that happened while another fault was held, or that is followed by one that does not wait for all
// copies.
func decideSettling(o *observation, s *api.DrillStep, p *plan.Step) decision {
	r := o.step.record
	waited := age(o, s.StateTime)
	settle := o.drill.Spec.SteadyState.Settle.Duration
	switch {
	case p.Start == api.StartHeld:
		return going(o, p, doNothing, settled(o, s, r, p), "is over")
	case r != nil && !r.Served.IsZero() && nextIs(o, api.StartServed):
		return going(o, p, doNothing, settled(o, s, r, p), "is over")
	case r != nil && r.Over && o.recorder != nil && o.recorder.Calm >= settle:
		return going(o, p, doNothing, settled(o, s, r, p), "is over")
	case waited <= max(settleLimit, 2*redundantWithin(o.drill))+settle:
		return still(o, p, "waits for service and all copies"+refusal(o))
	}
	missing := "the recorder does not report what is missing"
	switch {
	case r == nil:
	case r.Served.IsZero():
		missing = fmt.Sprintf("a session has been without an acknowledgement for %s", rounded(r.WorstGap))
	case r.Redundant.IsZero():
		missing = r.Missing
	default:
		missing = fmt.Sprintf("there is no calm time of %s", settle)
	}
	return end(o, api.OutcomeFailed, reasonServiceNotBack, fmt.Sprintf("step %d (%s): %s after the recovery of the fault the grid is not as before: %s%s", s.Index, s.Fault, rounded(waited), missing, refusal(o)))
}

// refusal is the grid's last refusal of an order of the drill, if it is recent: a grid that is full has all its copies
// but accepts no orders.
func refusal(o *observation) string {
	if o.recorder == nil || o.recorder.Refusal == "" {
		return ""
	}
	return "; the grid refuses orders: " + o.recorder.Refusal
}

// settled compares a step with its expectations. The certificate judges again, from the whole history.
func settled(o *observation, s *api.DrillStep, r *recorder.Record, p *plan.Step) *stepChange {
	c := to(api.StepDone)
	if s.Outcome != "" {
		return c
	}
	c.outcome = api.StepPassed
	if r == nil {
		return c
	}
	if why := missed(r, expectOf(o, p)); why != "" {
		c.outcome, c.message = api.StepMissed, why
	}
	return c
}

// missed names the first expectation that was not met.
func missed(r *recorder.Record, e recorder.Expect) string {
	redundant := r.Redundant.Sub(r.Recovered)
	switch {
	case e.Outage > 0 && r.WorstGap > e.Outage:
		return fmt.Sprintf("a session was without an acknowledgement for %s; expected are at most %s", rounded(r.WorstGap), e.Outage)
	case e.P99 > 0 && r.P99 > e.P99:
		return fmt.Sprintf("p99 was %s; expected is at most %s", rounded(r.P99), e.P99)
	case e.RedundantWithin > 0 && !r.Redundant.IsZero() && redundant > e.RedundantWithin:
		return fmt.Sprintf("all copies were back after %s; expected is at most %s", rounded(redundant), e.RedundantWithin)
	case e.FailedOrders == recorder.FailedOrdersNone && r.Counts.Rejected+r.Counts.Unknown > 0:
		return fmt.Sprintf("%d orders were rejected and %d had no answer; expected are none", r.Counts.Rejected, r.Counts.Unknown)
	}
	return ""
}

func redundantWithin(d *api.FailoverDrill) time.Duration {
	return d.Spec.SteadyState.RedundantWithin.Duration
}
