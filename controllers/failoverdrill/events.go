package failoverdrill

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// eventsOf returns the events of a change: what a drill waits for, each fault and its end, and failed recoveries.
func eventsOf(before, after *api.FailoverDrill) (events []messages.Event) {
	normal := func(reason, action, format string, args ...any) {
		events = append(events, messages.Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)})
	}
	warn := func(reason, action, format string, args ...any) {
		events = append(events, messages.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)})
	}
	for _, c := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason {
			continue
		}
		switch {
		case c.Type == api.ConditionPreflight && c.Status == metav1.ConditionFalse && c.Reason != reasonChecking:
			warn(c.Reason, "Preflight", "%s", c.Message)
		case c.Type == api.ConditionRecovered && (c.Reason == reasonFaultsRemain || c.Reason == reasonFaultsUnknown):
			warn(c.Reason, "Recover", "%s", c.Message)
		case c.Type == api.ConditionFailed && c.Status == metav1.ConditionTrue:
			warn(c.Reason, "Run", "%s", c.Message)
		case c.Type == api.ConditionComplete && c.Status == metav1.ConditionTrue:
			normal(c.Reason, "Run", "%s", c.Message+figuresOf(after.Status.Certificate))
		case c.Type == api.ConditionRunning && c.Status == metav1.ConditionTrue && c.Reason != reasonStep:
			normal(c.Reason, "Run", "%s", c.Message)
		}
	}
	for i := range after.Status.Steps {
		s := &after.Status.Steps[i]
		was := stepBefore(before, s.Index)
		if was != nil && was.State == s.State {
			continue
		}
		switch {
		case s.State == api.StepInjecting:
			normal("FaultInjecting", "Inject", "step %d: %s %s by %s", s.Index, s.Type, names(s.Targets), s.Provider)
		case s.State == api.StepDone && s.Outcome == api.StepPassed:
			normal("StepPassed", "Judge", "step %d (%s): %s", s.Index, s.Fault, figures(s))
		case s.State == api.StepDone:
			warn("Step"+string(s.Outcome), "Judge", "step %d (%s): %s", s.Index, s.Fault, s.Message)
		}
	}
	return events
}

func stepBefore(d *api.FailoverDrill, index int32) *api.DrillStep {
	for i := range d.Status.Steps {
		if d.Status.Steps[i].Index == index {
			return &d.Status.Steps[i]
		}
	}
	return nil
}

func figures(s *api.DrillStep) string {
	text := "done"
	if s.Outage != nil {
		text = "outage " + s.Outage.Duration.String()
	}
	if s.RedundantAfter != nil {
		text += ", redundant after " + s.RedundantAfter.Duration.String()
	}
	return text
}

func figuresOf(c *api.DrillCertificate) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" (lost %d, missing %d, duplicated %d, gaps %d; %d acknowledged to the traffic)", c.Lost, c.Missing, c.Duplicated, c.Gaps, c.Acknowledged)
}
