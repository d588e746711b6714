package failoverdrill

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// current is the step under way; nil between two steps. While a fault is held for others, that is the innermost.
func current(d *api.FailoverDrill) *api.DrillStep {
	for i := len(d.Status.Steps) - 1; i >= 0; i-- {
		if d.Status.Steps[i].State != api.StepDone {
			return &d.Status.Steps[i]
		}
	}
	return nil
}

// next is the index of the step that comes after all that were begun.
func next(d *api.FailoverDrill) int {
	if n := len(d.Status.Steps); n > 0 {
		return int(d.Status.Steps[n-1].Index) + 1
	}
	return 0
}

// nextIs reports whether the next step has this start.
func nextIs(o *observation, start api.DrillStart) bool {
	at := next(o.drill)
	return at < len(o.plan) && o.plan[at].Start == start
}

// decideStep decides what comes next in the step under way, or after it.
func decideStep(o *observation) decision {
	s := current(o.drill)
	if s == nil {
		return between(o)
	}
	if int(s.Index) >= len(o.plan) || o.plan[s.Index].Fault.Name != s.Fault || o.plan[s.Index].Fault.Type != s.Type {
		return end(o, api.OutcomeFailed, reasonPlanInvalid, fmt.Sprintf("step %d is %s, which differs from the plan: this version of the operator plans differently from the one that began", s.Index, s.Fault))
	}
	p := &o.plan[s.Index]
	switch s.State {
	case api.StepPending, api.StepWaiting:
		return decideWaiting(o, s, p)
	case api.StepCalm:
		return decideCalm(o, s, p)
	case api.StepInjecting:
		return decideInjecting(o, s, p)
	case api.StepWitnessing:
		return decideWitnessing(o, s, p)
	case api.StepHolding:
		return decideHolding(o, s, p)
	case api.StepRecovering:
		return decideRecovering(o, s, p)
	}
	return decideSettling(o, s, p)
}

// between handles the time between two steps: the next, or the end.
func between(o *observation) decision {
	if s := unfit(o); s != nil {
		reason := reasonInjectionFailed
		if s.Outcome == api.StepRefused {
			reason = reasonRefused
		}
		return end(o, api.OutcomeFailed, reason, fmt.Sprintf("step %d (%s): %s", s.Index, s.Fault, s.Message))
	}
	at := next(o.drill)
	if at >= len(o.plan) {
		return end(o, api.OutcomeComplete, reasonStepsDone, fmt.Sprintf("all %d steps are done", len(o.plan)))
	}
	return going(o, &o.plan[at], doBegin, nil, "is next")
}

// unfit is a step after which no further fault is injected: it could not be injected, or was refused.
func unfit(o *observation) *api.DrillStep {
	for i := range o.drill.Status.Steps {
		s := &o.drill.Status.Steps[i]
		if s.Outcome == api.StepFailed && s.InjectedTime == nil || s.Outcome == api.StepRefused && !wantsRefusal(o, s) {
			return s
		}
	}
	return nil
}

func wantsRefusal(o *observation, s *api.DrillStep) bool {
	return int(s.Index) < len(o.plan) && refusalExpected(&o.plan[s.Index])
}

func refusalExpected(p *plan.Step) bool {
	return p.Fault.Expect != nil && p.Fault.Expect.Injection == api.InjectionRefused
}

// going is a decision of a running drill.
func going(o *observation, p *plan.Step, do action, change *stepChange, doing string) decision {
	d := decision{do: do, phase: phaseStep, reason: reasonStep, step: change, again: pollFast,
		message: fmt.Sprintf("step %d of %d: %s %s", p.Index+1, len(o.plan), p.Fault.Name, doing)}
	if phaseOf(&o.drill.Status) == phaseBaseline && do == doNothing && (change == nil || change.state == api.StepCalm) {
		d.phase, d.reason = phaseBaseline, reasonBaseline
	}
	return d
}

// still changes nothing.
func still(o *observation, p *plan.Step, doing string) decision {
	d := going(o, p, doNothing, nil, doing)
	d.again = pollStep
	return d
}

func to(state api.DrillStepState) *stepChange { return &stepChange{state: state} }

// failed ends a step that could not be carried out. Its fault is recovered first, if there is one.
func failed(message string) *stepChange {
	return &stepChange{state: api.StepRecovering, outcome: api.StepFailed, message: message, witness: api.WitnessNotSeen, seen: message}
}

// decideWaiting waits for the condition of the step's start.
func decideWaiting(o *observation, s *api.DrillStep, p *plan.Step) decision {
	r, waited := o.recorder, age(o, s.StateTime)
	switch {
	case r == nil:
		return still(o, p, "waits for the recorder")
	case p.Start != api.StartRedundant: // the previous step has ensured that
		if waited < p.After {
			d := going(o, p, doNothing, nil, "is due")
			d.again = min(pollStep, p.After-waited)
			return d
		}
		return going(o, p, doPrepare, to(api.StepInjecting), "is being injected")
	case r.Redundant:
		return going(o, p, doNothing, to(api.StepCalm), "waits for a calm time")
	}
	limit := max(redundantWithin(o.drill), pollStep)
	switch {
	case waited <= limit:
		return still(o, p, "waits until every partition has all its copies")
	case o.drill.Spec.Safety.WhenNotRedundant == api.NotRedundantAllow:
		return going(o, p, doNothing, to(api.StepCalm), "goes on without all copies")
	}
	return end(o, api.OutcomeFailed, reasonNotRedundant, fmt.Sprintf("step %d (%s) is not injected: the grid is not redundant within %s: %s. Wait until OrderGrid %s is Redundant, raise spec.steadyState.redundantWithin, or set spec.safety.whenNotRedundant: Allow",
		s.Index, s.Fault, limit, r.Missing, o.drill.Spec.GridRef.Name))
}

// decideCalm measures the undisturbed grid, for comparison.
func decideCalm(o *observation, s *api.DrillStep, p *plan.Step) decision {
	r, waited := o.recorder, age(o, s.StateTime)
	want := o.drill.Spec.SteadyState.Calm.Duration + p.After
	switch {
	case r == nil:
		return still(o, p, "waits for the recorder")
	case r.Calm >= want:
		return going(o, p, doPrepare, to(api.StepInjecting), "is being injected")
	case !r.Redundant && o.drill.Spec.Safety.WhenNotRedundant == api.NotRedundantAllow && waited >= want:
		return going(o, p, doPrepare, to(api.StepInjecting), "is being injected")
	case waited > calmLimit+want && !r.Redundant:
		return end(o, api.OutcomeFailed, reasonNotRedundant, fmt.Sprintf("step %d (%s) is not injected: the grid does not stay redundant for %s: %s", s.Index, s.Fault, want, r.Missing))
	case waited > calmLimit+want:
		return end(o, api.OutcomeFailed, reasonNotCalm, fmt.Sprintf("step %d (%s) is not injected: in %s there were not %s in which no session was without an acknowledgement for %s; the longest lately was %s. Is the machine overloaded?",
			s.Index, s.Fault, calmLimit, want, r.GapLimit, rounded(r.WorstGap)))
	}
	return still(o, p, "waits for a calm time"+refusal(o))
}

// decideInjecting: status has the fault; now it may be made. One that was resolved long ago, by an operator that
// stopped before it could request it, is resolved anew: the primary may have changed.
func decideInjecting(o *observation, s *api.DrillStep, p *plan.Step) decision {
	waited := age(o, s.StateTime)
	switch f := o.step.fault; {
	case o.step.faultErr != nil && (waited > injectLimit || inject.IsPermanent(o.step.faultErr)):
		return going(o, p, doNothing, failed(fmt.Sprintf("%s: %v", s.Provider, o.step.faultErr)), "could not be injected")
	case o.step.faultErr != nil:
		return still(o, p, "is being injected")
	case f.Phase == inject.Gone && f.Ended && f.Seen != "": // it took the API server with it, or the operator
		return going(o, p, doInjected, to(api.StepWitnessing), "was in place")
	case f.Phase == inject.Gone && f.Ended:
		return going(o, p, doNothing, failed("the fault was over before it was seen in place: "+f.Message), "could not be injected")
	case f.Phase == inject.Gone && waited > stale && s.Attempts >= maxAttempts:
		return going(o, p, doNothing, failed(fmt.Sprintf("it was interrupted %d times before its fault", s.Attempts)), "could not be injected")
	case f.Phase == inject.Gone && waited > stale:
		return going(o, p, doNothing, to(api.StepWaiting), "was interrupted before its fault and is restarted")
	case f.Phase == inject.Gone && o.recorder == nil:
		return still(o, p, "waits for the recorder")
	case f.Phase == inject.Gone:
		return going(o, p, doInject, nil, "is being injected")
	case f.Phase == inject.Injected:
		return going(o, p, doInjected, to(api.StepWitnessing), "is in place")
	case f.Phase == inject.Failed:
		return going(o, p, doNothing, failed("the fault could not be injected: "+f.Message), "could not be injected")
	case f.Phase == inject.Recovering:
		return going(o, p, doNothing, failed("the fault was recovered before it was in place: "+f.Message), "could not be injected")
	case waited > injectLimit:
		return going(o, p, doNothing, failed(fmt.Sprintf("the fault is not in place after %s: %s", injectLimit, f.Message)), "could not be injected")
	}
	d := going(o, p, doNothing, nil, "is being injected")
	d.again = min(backOff(waited), pollStep)
	return d
}

// decideWitnessing: the fault must be seen, independently of the provider, while it is in place. A momentary one may
// become visible a little later.
func decideWitnessing(o *observation, s *api.DrillStep, p *plan.Step) decision {
	lasted := age(o, s.InjectedTime)
	if o.step.look.Seen {
		return going(o, p, doNothing, &stepChange{state: api.StepHolding, witness: api.WitnessSeen, seen: o.step.look.Message}, "is in place")
	}
	if lasted < max(p.Duration, inject.TypeOf(p.Fault.Type).Visible()) && !goneEarly(o, p) && !timeOver(o) {
		return going(o, p, doNothing, nil, "is in place")
	}
	message := o.step.look.Message
	if o.step.lookErr != nil {
		message = o.step.lookErr.Error()
	}
	return going(o, p, doNothing, &stepChange{state: api.StepHolding, witness: api.WitnessNotSeen, seen: message, outcome: api.StepFailed,
		message: fmt.Sprintf("within %s nothing shows that the fault has hit: %s", rounded(lasted), message)}, "is in place")
}

// goneEarly: a lasting fault is gone before its time.
func goneEarly(o *observation, p *plan.Step) bool {
	return p.Duration > 0 && o.step.faultErr == nil && o.step.fault.Phase == inject.Gone && !o.step.fault.Ended
}

// timeOver: the provider has recovered the fault by itself, because its time was over. By the operator's clock it may
// not be, quite.
func timeOver(o *observation) bool {
	return o.step.faultErr == nil && o.step.fault.Phase == inject.Gone && o.step.fault.Ended
}

// age is the time since a time of status; 0 if it is not set.
func age(o *observation, t *metav1.MicroTime) time.Duration {
	if t == nil {
		return 0
	}
	return o.now.Sub(t.Time)
}

// rounded to about three digits.
func rounded(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
