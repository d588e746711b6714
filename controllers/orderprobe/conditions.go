package orderprobe

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// conditionsByPhase says which conditions are True in which phase; all others are False. Every condition carries the
// reason and the message of the phase.
var conditionsByPhase = map[phase]string{
	phaseImpossible: api.ConditionFailed,
	phaseWaiting:    "",
	phaseStarting:   api.ConditionRunning,
	phaseReady:      api.ConditionRunning,
	phaseMeasuring:  api.ConditionRunning,
	phaseMeasured:   api.ConditionComplete,
	phaseBroken:     api.ConditionFailed,
}

// conditionTypes in the order they stand in status.
var conditionTypes = []string{api.ConditionRunning, api.ConditionComplete, api.ConditionFailed}

func setConditions(status *api.OrderProbeStatus, d decision, generation int64, now metav1.Time) {
	for _, kind := range conditionTypes {
		value := metav1.ConditionFalse
		if conditionsByPhase[d.phase] == kind {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: d.reason, Message: messages.Cut(d.message, messages.MaxCondition),
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	status.ObservedGeneration = generation
}
