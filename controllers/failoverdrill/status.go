package failoverdrill

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// apply copies a decision into status.
func (r *Reconciler) apply(o *observation, d *decision) {
	s := &o.drill.Status
	if step := current(o.drill); step != nil && d.step != nil {
		enter(o, step, d.step)
	}
	if d.ending != nil {
		now := metav1.NewMicroTime(o.now)
		s.Ending = d.ending
		s.Ending.Time = &now
		for i := range s.Steps { // faults held by others end with it
			if step := &s.Steps[i]; step.State != api.StepDone {
				enter(o, step, d.step)
			}
		}
	}
	if s.Ending != nil && o.left.none() {
		now := metav1.NewMicroTime(o.now)
		for i := range s.Steps {
			if step := &s.Steps[i]; step.InjectedTime != nil && step.RecoveredTime == nil {
				step.RecoveredTime = &now
			}
		}
	}
	if (d.phase == phaseComplete || d.phase == phaseFailed) && s.CompletionTime == nil {
		now := metav1.NewTime(o.now.Truncate(time.Second))
		s.CompletionTime = &now
		if s.Certificate == nil && s.StartTime != nil {
			s.Certificate = &api.DrillCertificate{Verdict: api.DrillInvalid, Reason: brief(d.message)}
		}
	}
	count(s)
	setConditions(o, d)
}

// enter changes the state of a step.
func enter(o *observation, step *api.DrillStep, c *stepChange) {
	now := metav1.NewMicroTime(o.now)
	was := step.State
	change(step, c, o.now)
	switch {
	case was == api.StepInjecting && c.state == api.StepWitnessing:
		step.InjectedTime = &now
	case was == api.StepRecovering && c.state == api.StepSettling:
		step.RecoveredTime = &now
	case c.state == api.StepDone && o.step.record != nil:
		measured(step, o.step.record)
		if o.recorder != nil && o.recorder.P99 > 0 {
			step.P99After = &metav1.Duration{Duration: o.recorder.P99}
		}
	case c.state == api.StepWaiting:
		step.Targets, step.Peers, step.Nodes, step.Baseline = nil, nil, nil, ""
	}
	if c.state == api.StepDone {
		if step.Outcome == api.StepFailed {
			o.drill.Status.FailedSteps++
		}
		step.Baseline = "" // no longer used, and large
	}
}

// change applies a decision to a step.
func change(step *api.DrillStep, c *stepChange, now time.Time) {
	if c == nil {
		return
	}
	if c.state != "" && c.state != step.State {
		t := metav1.NewMicroTime(now)
		step.State, step.StateTime = c.state, &t
	}
	if c.outcome != "" && step.Outcome == "" {
		step.Outcome = c.outcome
	}
	if c.message != "" {
		step.Message = brief(c.message)
	}
	if c.witness != "" {
		step.Witness = &api.DrillWitness{State: c.witness, Message: brief(c.seen)}
	}
}

// measured is what the recorder has seen of a step so far.
func measured(step *api.DrillStep, rec *recorder.Record) {
	set := func(into **metav1.Duration, d time.Duration) {
		if d > 0 {
			*into = &metav1.Duration{Duration: d.Round(time.Microsecond)}
		}
	}
	set(&step.Outage, rec.WorstGap)
	set(&step.P99During, rec.P99)
	if !rec.Injected.IsZero() && !rec.Served.IsZero() {
		set(&step.ServedAfter, rec.Served.Sub(rec.Injected))
	}
	if !rec.Injected.IsZero() && !rec.Redundant.IsZero() {
		set(&step.RedundantAfter, rec.Redundant.Sub(rec.Injected))
	}
	step.FailedOrders = rec.Counts.Rejected + rec.Counts.Unknown
}

// count the steps.
func count(s *api.FailoverDrillStatus) {
	if s.PlannedSteps == 0 {
		return
	}
	n := len(s.Steps)
	if n == 0 {
		s.Progress = fmt.Sprintf("0/%d", s.PlannedSteps)
		return
	}
	// Those before the first in status are over.
	finished := s.Steps[0].Index
	for i := range s.Steps {
		if s.Steps[i].State == api.StepDone {
			finished++
		}
	}
	s.FinishedSteps = finished
	s.Progress = fmt.Sprintf("%d/%d", finished, s.PlannedSteps)
}
