package workload

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
)

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "text"}
}

// TestEvents: one event for each condition that became bad, or good again; none for what passes by itself.
func TestEvents(t *testing.T) {
	kind := Kind{
		Good:  []Good{{Condition: "Ready", Status: metav1.ConditionTrue}, {Condition: "Lagging", Status: metav1.ConditionFalse}},
		Quiet: []string{"Connecting"},
	}
	bad, good, unknown := metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionUnknown
	tests := []struct {
		name          string
		before, after []metav1.Condition
		want          []string
	}{
		{name: "good at once", after: []metav1.Condition{condition("Ready", good, "Serving"), condition("Lagging", bad, "Within")}, want: []string{"Normal Serving text"}},
		{name: "connecting", after: []metav1.Condition{condition("Ready", bad, "Connecting")}},
		{name: "unknown", after: []metav1.Condition{condition("Ready", unknown, "NoAnswer")}},
		{name: "bad", after: []metav1.Condition{condition("Ready", bad, "Failing"), condition("Lagging", good, "Behind")}, want: []string{"Warning Failing text", "Warning Behind text"}},
		{name: "one cause", after: []metav1.Condition{condition("Ready", bad, "Failing"), condition("Lagging", good, "Failing")}, want: []string{"Warning Failing text"}},
		{name: "good again", before: []metav1.Condition{condition("Lagging", good, "Behind")}, after: []metav1.Condition{condition("Lagging", bad, "Within")}, want: []string{"Normal Within text"}},
		{name: "known again", before: []metav1.Condition{condition("Lagging", unknown, "NotMeasured")}, after: []metav1.Condition{condition("Lagging", bad, "Within")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after := slices.Clone(tt.before)
			changed := Set(&after, 1, metav1.Now(), tt.after...)
			recorder := events.NewFakeRecorder(8)
			kind.tell(recorder, &Status{After: &corev1.Pod{}, ConditionsBefore: tt.before, Changed: changed})
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSetKeepsTheLimitsOfConditions: a message may quote a peer, in bytes that are no text and of any length.
func TestSetKeepsTheLimitsOfConditions(t *testing.T) {
	var list []metav1.Condition
	changed := Set(&list, 3, metav1.Now(), metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Failing", Message: "\xff" + strings.Repeat("x", 1<<20)})
	if len(changed) != 1 || len(list) != 1 || list[0].ObservedGeneration != 3 {
		t.Fatalf("changed %d, list %+v", len(changed), list)
	}
	if m := list[0].Message; len(m) > 32768 || !strings.HasPrefix(m, "?x") {
		t.Errorf("message of %d bytes, begins %q", len(m), m[:2])
	}
	if again := Set(&list, 4, metav1.Now(), list[0]); len(again) != 0 {
		t.Errorf("the same condition changed: %+v", again)
	}
}
