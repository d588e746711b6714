package ordergrid

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of events that are not the reason of a condition.
const (
	eventShardCreated   = "ShardCreated"
	eventShardRemoved   = "ShardRemoved"
	eventPartitionMoves = "PartitionMoves"
	eventPartitionMoved = "PartitionMoved"
	eventPrimaryChanged = "PrimaryChanged"
	eventNewLineage     = "NewLineage"
	eventPodReplaced    = "ReplacingPod"
	eventPodLost        = "ReplacingLostPod"
	eventAddingCopy     = "AddingCopy"
	eventCopyAdded      = "CopyAdded"
	eventGivingCopyUp   = "GivingCopyUp"
	eventCopyGivenUp    = "CopyGivenUp"

	eventCertificateIssued = "CertificateIssued"

	// About a GridPartition, in response to an annotation.
	eventAcceptingLoss       = "AcceptingDataLoss"
	eventAcceptanceOver      = "DataLossAcceptanceOver"
	eventAcceptRefused       = "AcceptDataLossRefused"
	eventReasserting         = "ReassertingConfiguration"
	eventReasserted          = "ConfigurationReasserted"
	eventRecordKept          = "ConfigurationKept"
	eventReassertRefused     = "ReassertRefused"
	eventPreferredPodRefused = "PreferredPodRefused"
)

// event is passed to the recorder.
type event struct {
	kind, reason, action, note string
	// partition the event is about, if any. Events about different partitions are aggregated separately.
	partition string
}

// conditionEvents turns changed conditions into events. Only conditions that may require action are warnings, not a
// copy that is missing because the operator replaces or moves it (planned). Where that lasts too long Stalled reports
// it.
func conditionEvents(before []metav1.Condition, changed []metav1.Condition, planned bool) (events []event) {
	was := make(map[string]metav1.ConditionStatus, len(before))
	reasons := make(map[string]string, len(before))
	for _, c := range before {
		was[c.Type], reasons[c.Type] = c.Status, c.Reason
	}
	for _, c := range changed {
		switch {
		case isTrouble(c.Type) && (c.Status == metav1.ConditionTrue || c.Reason == reasonStepFailed):
			events = append(events, event{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Reconcile", note: c.Message})
		case isTrouble(c.Type) && was[c.Type] == metav1.ConditionTrue:
			events = append(events, event{kind: corev1.EventTypeNormal, reason: c.Reason, action: "Reconcile", note: c.Message})
		case needsOutside(c.Type) && c.Status == metav1.ConditionFalse, c.Type == api.ConditionAcceptingOrders && c.Reason == reasonFull:
			events = append(events, event{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Observe", note: c.Message})
		case needsOutside(c.Type) && was[c.Type] == metav1.ConditionFalse, c.Type == api.ConditionAcceptingOrders && c.Reason == reasonAccepting && reasons[c.Type] == reasonFull:
			events = append(events, event{kind: corev1.EventTypeNormal, reason: c.Reason, action: "Observe", note: c.Message})
		case c.Type == api.ConditionFunctionsLoaded:
			events = append(events, functionEvents(&c)...)
		case c.Type == api.ConditionLimitsLoaded:
			events = append(events, limitEvents(&c)...)
		case c.Type == api.ConditionRegionsLoaded:
			events = append(events, regionEvents(&c)...)
		case c.Type == api.ConditionJournalsHealthy:
			events = append(events, journalEvents(&c, was[c.Type])...)
		case c.Type == api.ConditionProgressing && c.Reason == reasonObjectiveMissed:
			events = append(events, event{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Update", note: c.Message})
		case c.Type == api.ConditionRedundant && c.Reason == reasonCopiesMissing && planned:
			if was[c.Type] == metav1.ConditionTrue {
				events = append(events, event{kind: corev1.EventTypeNormal, reason: c.Reason, action: "Update", note: "the operator is changing the grid: " + c.Message})
			}
		case c.Type != api.ConditionAvailable && c.Type != api.ConditionRedundant:
			// Progressing changes often and is visible in status.
		case c.Status == metav1.ConditionTrue:
			events = append(events, event{kind: corev1.EventTypeNormal, reason: c.Reason, action: "Observe", note: c.Message})
		case was[c.Type] == metav1.ConditionTrue:
			// A grid that is starting has lost nothing.
			events = append(events, event{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Observe", note: c.Message})
		}
	}
	return events
}

// functionEvents are those of condition FunctionsLoaded. What a roll does to it is none.
func functionEvents(c *metav1.Condition) []event {
	switch {
	case c.Status == metav1.ConditionTrue:
		return []event{{kind: corev1.EventTypeNormal, reason: "Functions" + c.Reason, action: "Observe", note: c.Message}}
	case c.Status == metav1.ConditionFalse && !slices.Contains([]string{reasonNotLoaded, reasonFunctionsOnTheWay, reasonFunctionUnchecked}, c.Reason):
		return []event{{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Observe", note: c.Message}}
	}
	return nil
}

// isTrouble reports whether the condition is bad when it is True.
func isTrouble(condition string) bool {
	return condition == api.ConditionStalled || condition == api.ConditionDataLossSuspected || condition == api.ConditionConfigurationRegressed
}

// needsOutside reports whether the condition depends on the cluster, or the user's spec.
func needsOutside(condition string) bool {
	return condition == api.ConditionSchedulable || condition == api.ConditionFabricReady || condition == api.ConditionTLSReady || condition == api.ConditionSecure
}

// partitionEvents returns an event for every partition whose primary or lineage changed.
func partitionEvents(before, after []api.PartitionSummary) (events []event) {
	was := make(map[string]api.PartitionSummary, len(before))
	for _, p := range before {
		was[p.Name] = p
	}
	for _, p := range after {
		old := was[p.Name]
		if old.Primary != "" && p.Primary != "" && old.Primary != p.Primary {
			note := fmt.Sprintf("%s: primary is %s, was %s; epoch %d, %d in sync", p.Name, p.Primary, old.Primary, p.Epoch, p.InSync)
			events = append(events, event{kind: corev1.EventTypeNormal, reason: eventPrimaryChanged, action: "Observe", note: note, partition: p.Name})
		}
		if old.Lineage > 0 && p.Lineage > old.Lineage {
			note := fmt.Sprintf("%s: lineage is %d, was %d: %s is primary at epoch %d, and orders that only lost processes held are lost", p.Name, p.Lineage, old.Lineage, p.Primary, p.Epoch)
			events = append(events, event{kind: corev1.EventTypeWarning, reason: eventNewLineage, action: "Observe", note: note, partition: p.Name})
		}
	}
	return events
}
