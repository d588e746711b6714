package failoverdrill

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// conditionsByPhase maps each phase to the status of Running, Complete and Failed.
var conditionsByPhase = map[phase]string{
	phaseStarting:   api.ConditionRunning,
	phaseBaseline:   api.ConditionRunning,
	phaseStep:       api.ConditionRunning,
	phaseRecovering: api.ConditionRunning,
	phaseFinishing:  api.ConditionRunning,
	phaseComplete:   api.ConditionComplete,
	phaseFailed:     api.ConditionFailed,
}

func setConditions(o *observation, d *decision) {
	s := &o.drill.Status
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: messages.Cut(message, messages.MaxCondition),
			ObservedGeneration: o.drill.Generation, LastTransitionTime: metav1.NewTime(o.now),
		})
	}
	if d.reason != "" {
		for _, kind := range []string{api.ConditionRunning, api.ConditionComplete, api.ConditionFailed} {
			set(kind, status(conditionsByPhase[d.phase] == kind), d.reason, d.message)
		}
		switch {
		case d.phase == phasePending || d.phase == phasePreflight:
			set(api.ConditionPreflight, metav1.ConditionFalse, d.reason, d.message)
		case d.phase == phaseStarting && !meta.IsStatusConditionTrue(s.Conditions, api.ConditionPreflight): // the preflight result is known only now
			set(api.ConditionPreflight, metav1.ConditionTrue, reasonPassed, strings.Join(append([]string{"made by: " + providersText(s.Providers)}, o.check.notes...), "; "))
		case meta.FindStatusCondition(s.Conditions, api.ConditionPreflight) == nil: // aborted before the preflight
			set(api.ConditionPreflight, metav1.ConditionFalse, d.reason, d.message)
		}
	}
	kind, reason, message := recovered(o)
	set(api.ConditionRecovered, kind, reason, message)
	s.ObservedGeneration = o.drill.Generation
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func providersText(list []api.DrillProvider) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = fmt.Sprintf("%s by %s", p.Type, p.Provider)
	}
	return strings.Join(words, ", ")
}

// recovered reports whether a fault of the drill is in place, and what blocks its recovery.
func recovered(o *observation) (metav1.ConditionStatus, string, string) {
	s := &o.drill.Status
	if s.Ending != nil || o.drill.DeletionTimestamp != nil {
		return recoveredAtEnd(o)
	}
	var in []string
	for i := range s.Steps {
		if step := &s.Steps[i]; inPlace(step) {
			in = append(in, fmt.Sprintf("%s (step %d, by %s)", step.Fault, step.Index, step.Provider))
		}
	}
	if len(in) == 0 {
		return metav1.ConditionTrue, reasonNoFault, "no fault of this drill is in place"
	}
	step := current(o.drill)
	if step == nil || step.State != api.StepRecovering || age(o, step.StateTime) < recoverWarn {
		return metav1.ConditionFalse, reasonFaultActive, "in place: " + strings.Join(in, ", ")
	}
	if o.step.faultErr != nil {
		return metav1.ConditionFalse, reasonFaultsUnknown, fmt.Sprintf("the state of the recovery of %s is unknown: %v; it is retried at least once a minute", step.Fault, o.step.faultErr)
	}
	if o.step.fault.Phase == inject.Gone {
		return metav1.ConditionTrue, reasonNoFault, "no fault of this drill is in place"
	}
	return metav1.ConditionFalse, reasonFaultsRemain, fmt.Sprintf("%s has not recovered %s yet: %s; it is retried at least once a minute", step.Provider, step.Fault, o.step.fault.Message)
}

// recoveredAtEnd uses what the providers still hold.
func recoveredAtEnd(o *observation) (metav1.ConditionStatus, string, string) {
	l := o.left
	began := o.now
	switch {
	case o.drill.DeletionTimestamp != nil:
		began = o.drill.DeletionTimestamp.Time
	case o.drill.Status.Ending != nil && o.drill.Status.Ending.Time != nil:
		began = o.drill.Status.Ending.Time.Time
	}
	waited := o.now.Sub(began)
	switch {
	case l.none():
		return metav1.ConditionTrue, reasonNoFault, "no fault of this drill is in place"
	case !l.asked:
		return metav1.ConditionFalse, reasonFaultActive, "faults in place are being recovered"
	case l.unknown != "":
		return metav1.ConditionFalse, reasonFaultsUnknown, "the state of the recovery is unknown: " + l.unknown + "; it is retried at least once a minute"
	case waited < recoverWarn:
		return metav1.ConditionFalse, reasonFaultActive, "being recovered: " + strings.Join(l.names, ", ")
	}
	return metav1.ConditionFalse, reasonFaultsRemain, fmt.Sprintf("still present %s after their removal was requested: %s; it is retried at least once a minute",
		recoverWarn, strings.Join(l.names, ", "))
}

// inPlace: the fault may be there.
func inPlace(s *api.DrillStep) bool {
	switch s.State {
	case api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering:
		return true
	}
	return false
}

// claimedAt is since when the drill has had the grid.
func claimedAt(s *api.FailoverDrillStatus, now time.Time) time.Time {
	if c := meta.FindStatusCondition(s.Conditions, api.ConditionRunning); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return now
}
