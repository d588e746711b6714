package orderprobe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// conditionEvents returns events of the beginning, the end and the failure of a run, and of what it waits for.
func conditionEvents(before, after []metav1.Condition) (events []messages.Event) {
	for _, now := range after {
		was := meta.FindStatusCondition(before, now.Type)
		changed := was == nil || was.Status != now.Status || was.Reason != now.Reason
		switch {
		case !changed:
		case now.Status == metav1.ConditionTrue && now.Type == api.ConditionFailed:
			events = append(events, messages.Event{Type: corev1.EventTypeWarning, Reason: now.Reason, Action: "Run", Note: now.Message})
		case now.Status == metav1.ConditionTrue:
			events = append(events, messages.Event{Type: corev1.EventTypeNormal, Reason: now.Reason, Action: "Run", Note: now.Message})
		case now.Type == api.ConditionRunning && needsAction(now.Reason):
			events = append(events, messages.Event{Type: corev1.EventTypeWarning, Reason: now.Reason, Action: "Run", Note: now.Message})
		}
	}
	return events
}

func needsAction(reason string) bool {
	return reason == reasonGridNotFound || reason == reasonNameTaken || reason == reasonNoRecording
}
