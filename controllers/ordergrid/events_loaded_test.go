package ordergrid

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestEventsOfLimitsAndJournals: what goes wrong and is right again is told, what only takes its time is not.
func TestEventsOfLimitsAndJournals(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for _, c := range []struct {
		kind     string
		was, now metav1.ConditionStatus
		reason   string
		want     string
	}{
		{api.ConditionLimitsLoaded, "", no, reasonLimitsInvalid, "Warning LimitsInvalid"},
		{api.ConditionLimitsLoaded, yes, no, reasonLimitsInForce, "Warning LimitsStillInForce"},
		{api.ConditionLimitsLoaded, yes, no, reasonInstrumentsOnTheWay, ""},
		{api.ConditionLimitsLoaded, yes, metav1.ConditionUnknown, reasonNodesSilent, ""},
		{api.ConditionLimitsLoaded, no, yes, reasonLoaded, "Normal LimitsLoaded"},
		{api.ConditionJournalsHealthy, yes, no, reasonJournalFailing, "Warning Failing"},
		{api.ConditionJournalsHealthy, no, yes, reasonJournalsDurable, "Normal Durable"},
		{api.ConditionJournalsHealthy, metav1.ConditionUnknown, yes, reasonJournalsDurable, ""},
	} {
		got := ""
		for _, e := range conditionEvents([]metav1.Condition{{Type: c.kind, Status: c.was}}, []metav1.Condition{{Type: c.kind, Status: c.now, Reason: c.reason}}, false) {
			got += e.kind + " " + e.reason
		}
		if got != c.want {
			t.Errorf("%s %s to %s, %s: %q, want %q", c.kind, c.was, c.now, c.reason, got, c.want)
		}
	}
}
