package workload

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Set sets conditions in list and returns those whose status or reason changed.
func Set(list *[]metav1.Condition, generation int64, now metav1.Time, conditions ...metav1.Condition) (changed []metav1.Condition) {
	for _, c := range conditions {
		c.Message = messages.Cut(strings.ToValidUTF8(c.Message, "?"), messages.MaxCondition) // it may quote a peer
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		if before := meta.FindStatusCondition(*list, c.Type); before == nil || before.Status != c.Status || before.Reason != c.Reason {
			changed = append(changed, c)
		}
		meta.SetStatusCondition(list, c)
	}
	return changed
}

// Kind is how a kind reports conditions.
type Kind struct {
	// Good is the value of each condition without trouble. The first is the one that is reported when it becomes
	// good at first, too.
	Good []Good
	// Quiet are reasons that pass by themselves, of which no event is sent.
	Quiet []string
	// Metrics of the kind.
	Metrics *Metrics
}

// Good is the value of a condition without trouble.
type Good struct {
	Condition string
	Status    metav1.ConditionStatus
}

// AllGood reports whether no condition shows trouble.
func (k *Kind) AllGood(conditions []metav1.Condition) bool {
	for _, g := range k.Good {
		if !meta.IsStatusConditionPresentAndEqual(conditions, g.Condition, g.Status) {
			return false
		}
	}
	return true
}

// Status is an object whose status was computed: after, which was read as before.
type Status struct {
	Before, After    client.Object
	ConditionsBefore []metav1.Condition
	ConditionsAfter  []metav1.Condition
	Changed          []metav1.Condition
}

// Write writes a status that differs, and sends events of the conditions that changed. It reports whether the object
// was written or deleted by others since it was read: then the reconciliation is to be repeated.
func (k *Kind) Write(ctx context.Context, c client.Client, recorder events.EventRecorder, s *Status) (stale bool, err error) {
	k.Metrics.Record(s.After, s.ConditionsAfter)
	if equality.Semantic.DeepEqual(s.Before, s.After) {
		return false, nil
	}
	if err := apply.Status(ctx, c, s.Before, s.After); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
	k.Metrics.countStatus()
	k.tell(recorder, s)
	return false, nil
}

// tell sends an event for each condition that became bad, or good again; one for conditions of one cause.
func (k *Kind) tell(recorder events.EventRecorder, s *Status) {
	var sent []string
	for _, c := range s.Changed {
		if c.Status == metav1.ConditionUnknown || slices.Contains(k.Quiet, c.Reason) || slices.Contains(sent, c.Reason) {
			continue
		}
		good := k.Good[slices.IndexFunc(k.Good, func(g Good) bool { return g.Condition == c.Type })].Status
		was := meta.FindStatusCondition(s.ConditionsBefore, c.Type)
		level := corev1.EventTypeNormal
		switch {
		case c.Status != good:
			level = corev1.EventTypeWarning
		case c.Type != k.Good[0].Condition && (was == nil || was.Status == good || was.Status == metav1.ConditionUnknown):
			continue
		}
		sent = append(sent, c.Reason)
		recorder.Eventf(s.After, nil, level, c.Reason, "Observe", "%s", messages.Cut(c.Message, messages.MaxNote))
	}
}
