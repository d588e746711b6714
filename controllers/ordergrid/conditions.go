package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Reasons of the conditions of an OrderGrid.
const (
	reasonServing               = "Serving"
	reasonNotClaimed            = "NotClaimed"
	reasonPrimaryNotReady       = "PrimaryNotReady"
	reasonInsufficientInSync    = "InsufficientInSync"
	reasonFullyInSync           = "FullyInSync"
	reasonCopiesMissing         = "CopiesMissing"
	reasonSingleCopy            = "SingleCopy"
	reasonSteady                = "Steady"
	reasonStarting              = "Starting"
	reasonPodsOutdated          = "PodsOutdated"
	reasonUpdating              = "Updating"
	reasonResizing              = "Resizing"
	reasonUpdateStuck           = "UpdateStuck"
	reasonNoRoomForSurge        = "NoRoomForSurge"
	reasonObjectiveMissed       = "ObjectiveMissed"
	reasonAsExpected            = "AsExpected"
	reasonPodTemplateInvalid    = "PodTemplateInvalid"
	reasonPodTemplateNotAllowed = "PodTemplateNotAllowed"
	reasonNameTaken             = "NameTaken"
	reasonApplyRefused          = "ApplyRefused"
	reasonUnguarded             = "Unguarded"
	reasonRecordLost            = "PartitionRecordLost"
	reasonStepFailed            = "StepFailed"
	reasonMovingPartitions      = "MovingPartitions"
	reasonRemovingShards        = "RemovingShards"
	reasonScaleStuck            = "ScaleStuck"
	reasonWaitingForWindow      = "WaitingForWindow"
	reasonWindowInvalid         = "RebalanceWindowInvalid"
	reasonLayoutBefore          = "LayoutBefore"
	reasonAccepting             = "Accepting"
	reasonFull                  = "Full"
	reasonNodesSilent           = "NodesSilent"
)

// judgement is the value of a condition; empty where it does not apply.
type judgement struct {
	status          metav1.ConditionStatus
	reason, message string
}

// gridConditions are the conditions of an OrderGrid, each computed from the observation alone.
var gridConditions = []struct {
	kind  string
	judge func(*observation) judgement
}{
	{api.ConditionAvailable, judgeAvailable},
	{api.ConditionRedundant, judgeRedundant},
	{api.ConditionProgressing, judgeProgressing},
	{api.ConditionStalled, judgeStalled},
	{api.ConditionSchedulable, judgeSchedulable},
	{api.ConditionFabricReady, judgeFabric},
	{api.ConditionTLSReady, judgeTLS},
	{api.ConditionSecure, judgeSecure},
	{api.ConditionAcceptingOrders, judgeAccepting},
	{api.ConditionExternalAccessReady, judgeExternal},
	{api.ConditionSinksReady, judgeSinks},
	{api.ConditionFunctionsLoaded, judgeFunctions},
	{api.ConditionViewsComplete, judgeViews},
	{api.ConditionJournalsHealthy, judgeJournals},
	{api.ConditionInstrumentsLoaded, judgeInstruments},
	{api.ConditionCalendarFollowed, judgeCalendar},
	{api.ConditionExecutionsAgree, judgeExecutions},
	{api.ConditionLimitsLoaded, judgeLimits},
	{api.ConditionRegionsLoaded, judgeRegions},
	{api.ConditionStandby, judgeStandby},
	{api.ConditionRestored, judgeRestored},
	{api.ConditionDataLossSuspected, judgeDataLoss},
	{api.ConditionConfigurationRegressed, judgeRegressed},
}

// judgeAvailable: every partition has a ready primary and as many copies as writes need. Memory for orders is
// AcceptingOrders: reads of a full grid are answered.
func judgeAvailable(o *observation) judgement {
	var unclaimed, away, short []string
	for i := range o.partitions {
		p := &o.partitions[i]
		switch {
		case p.Status.Primary == nil:
			unclaimed = append(unclaimed, p.Name)
		case !o.serves(p.Status.Primary.PodName):
			away = append(away, fmt.Sprintf("%s on %s", p.Name, p.Status.Primary.PodName))
		case int32(len(p.Status.InSync)) < p.Spec.MinInSync:
			short = append(short, fmt.Sprintf("%s has %d of %d", p.Name, len(p.Status.InSync), p.Spec.MinInSync))
		}
	}
	switch {
	case len(unclaimed) > 0 || len(o.partitions) < o.wantPartitions():
		return judgement{metav1.ConditionFalse, reasonNotClaimed, fmt.Sprintf("%d of %d partitions have no primary yet%s%s",
			len(unclaimed)+o.wantPartitions()-len(o.partitions), o.wantPartitions(), some(unclaimed), messages.First(o.pods, messages.PodTrouble))}
	case len(away) > 0:
		return judgement{metav1.ConditionFalse, reasonPrimaryNotReady, fmt.Sprintf("the primary of %d of %d partitions is not ready%s%s",
			len(away), o.wantPartitions(), some(away), messages.First(o.pods, messages.PodTrouble))}
	case len(short) > 0:
		return judgement{metav1.ConditionFalse, reasonInsufficientInSync, fmt.Sprintf("%d of %d partitions refuse orders, having fewer copies than spec.minInSync%s%s",
			len(short), o.wantPartitions(), some(short), messages.First(o.pods, messages.PodTrouble))}
	}
	if n := len(o.standbys()); n > 0 {
		return judgement{metav1.ConditionTrue, reasonStandby, fmt.Sprintf("%s a primary; %d of %d take no orders, as standbys of %s",
			all(len(o.partitions), "partition has", "partitions have"), n, o.wantPartitions(), o.otherSite())}
	}
	return judgement{metav1.ConditionTrue, reasonServing, all(len(o.partitions), "partition has", "partitions have") + " a primary that serves"}
}

// judgeRedundant: every partition has all its copies.
func judgeRedundant(o *observation) judgement {
	fewest := o.fewestCopies()
	switch {
	case fewest == 1 && o.grid.Spec.Replicas == 1:
		return judgement{metav1.ConditionFalse, reasonSingleCopy, "spec.replicas is 1: every order exists once, and is lost with its pod"}
	case fewest == 1:
		return judgement{metav1.ConditionFalse, reasonSingleCopy, fmt.Sprintf("orders exist once until the copies that spec.replicas %d asks for are in sync, see condition %s", o.grid.Spec.Replicas, api.ConditionProgressing)}
	}
	var missing []string
	for i := range o.partitions {
		p := &o.partitions[i]
		switch absent := o.absent(p); {
		case len(absent) == 0 || o.covered(p):
		case moves(o.grid, p):
			missing = append(missing, fmt.Sprintf("%s has %d of %d while it moves to shard %d", p.Name, o.there(p), p.Spec.Replicas, p.Spec.Shard))
		default:
			missing = append(missing, fmt.Sprintf("%s has %d of %d, without %s", p.Name, int(p.Spec.Replicas)-len(absent), p.Spec.Replicas, strings.Join(absent, " and ")))
		}
	}
	if n := len(missing) + o.wantPartitions() - len(o.partitions); n > 0 {
		return judgement{metav1.ConditionFalse, reasonCopiesMissing, fmt.Sprintf("%d of %d partitions lack a copy%s%s%s",
			n, o.wantPartitions(), some(missing), o.lost.sentence(), messages.First(o.pods, messages.PodTrouble))}
	}
	return judgement{metav1.ConditionTrue, reasonFullyInSync, fmt.Sprintf("%s %d copies in sync", all(len(o.partitions), "partition has", "partitions have"), fewest)}
}

// fewestCopies is the smallest number of copies that a partition should have at present.
func (o *observation) fewestCopies() int32 {
	fewest := o.copiesWanted(0)
	for shard := range o.grid.Spec.Shards {
		fewest = min(fewest, o.copiesWanted(shard))
	}
	return fewest
}

// absent are the pods of the shard without a complete copy of the partition, or not ready.
func (o *observation) absent(p *api.GridPartition) (pods []string) {
	for ordinal := range p.Spec.Replicas {
		name := api.PodName(o.grid.Name, p.Spec.Shard, ordinal)
		inSync := slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == name })
		if !inSync || !o.ready(name) {
			pods = append(pods, name)
		}
	}
	return pods
}

// judgeProgressing: the grid does not match spec yet.
func judgeProgressing(o *observation) judgement {
	if text := o.resizeText(); text != "" {
		return judgement{metav1.ConditionTrue, reasonResizing, text}
	}
	if o.roll != nil && o.roll.missed != "" {
		return judgement{metav1.ConditionTrue, reasonObjectiveMissed, fmt.Sprintf("%s; %s. %s", o.roll, o.roll.missed, adviceMissed)}
	}
	reason, message := o.scaling()
	if o.scale.missed != "" {
		return judgement{metav1.ConditionTrue, reasonObjectiveMissed, fmt.Sprintf("%s; %s. %s", message, o.scale.missed, adviceMovesMissed)}
	}
	if reason != "" && reason != reasonWaitingForWindow {
		return judgement{metav1.ConditionTrue, reason, message + messages.First(o.pods, messages.PodTrouble)}
	}
	if o.roll != nil && o.roll.outdated > 0 {
		return judgement{metav1.ConditionTrue, reasonUpdating, o.roll.String()}
	}
	if text := o.surgeText(); text != "" {
		return judgement{metav1.ConditionTrue, reasonUpdating, text}
	}
	if o.readyShards() < o.grid.Spec.Shards {
		return judgement{metav1.ConditionTrue, reasonStarting, fmt.Sprintf("%d of %d shards are ready%s",
			o.readyShards(), o.grid.Spec.Shards, messages.First(o.pods, messages.PodTrouble))}
	}
	if outdated := o.outdatedPods(); len(outdated) > 0 {
		return judgement{metav1.ConditionTrue, reasonPodsOutdated, fmt.Sprintf(
			"%d of %d pods run an older pod template%s; delete them one at a time, each only while Redundant is True", len(outdated), len(o.pods), some(outdated))}
	}
	if reason == reasonWaitingForWindow { // for hours or days: other progress is reported first
		return judgement{metav1.ConditionTrue, reason, message}
	}
	return judgement{metav1.ConditionFalse, reasonSteady, all(int(o.grid.Spec.Shards), "shard is", "shards are") + " ready and up to date"}
}

// judgeStalled: the operator cannot go on without manual action.
func judgeStalled(o *observation) judgement {
	if o.stall != nil && o.stall.reason != reasonStepFailed {
		return judgement{metav1.ConditionTrue, o.stall.reason, o.stall.message}
	}
	if o.scale.windowProblem != "" {
		return judgement{metav1.ConditionTrue, reasonWindowInvalid, o.scale.windowProblem + ". No partition begins to move meanwhile"}
	}
	if o.scale.late != "" {
		return judgement{metav1.ConditionTrue, reasonScaleStuck, o.scale.late}
	}
	if o.roll != nil && len(o.roll.stuck) > 0 {
		return judgement{metav1.ConditionTrue, reasonUpdateStuck, fmt.Sprintf("%s. No other pod is replaced. Revert the change of spec, and the pod is replaced by one of the previous template; or raise spec.updateStrategy.progressDeadline",
			sentences(o.roll.stuck))}
	}
	if text := o.noRoomForSurge(); text != "" {
		return judgement{metav1.ConditionTrue, reasonNoRoomForSurge, fmt.Sprintf("%s. No pod of the shard is replaced meanwhile, so every order stays on two copies. Make room for one more pod, or set spec.updateStrategy.withoutRoom to Proceed: orders are on one copy then while a pod is replaced", text)}
	}
	if o.roll != nil && o.roll.tooLong {
		return judgement{metav1.ConditionTrue, reasonObjectiveMissed, fmt.Sprintf("for %s or longer no pod was replaced, because %s. %s", o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration, o.roll.missed, adviceMissed)}
	}
	if o.scale.tooLong {
		return judgement{metav1.ConditionTrue, reasonObjectiveMissed, fmt.Sprintf("for %s or longer no partition began to move, because %s. %s", o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration, o.scale.missed, adviceMovesMissed)}
	}
	if o.stall != nil { // the next attempt may succeed, or manual action is required
		return judgement{metav1.ConditionUnknown, reasonStepFailed, o.stall.message + ". The operator retries"}
	}
	return judgement{metav1.ConditionFalse, reasonAsExpected, "every object of the grid is as the operator wants it"}
}

// adviceMissed is the remedy for orders that miss the objective of an update.
const adviceMissed = "The update resumes when orders have met it for a window. To roll back, revert the change of spec; to go on regardless, raise or remove spec.updateStrategy.objective"

// adviceMovesMissed is the same for partitions that are to move.
const adviceMovesMissed = "Moves resume when orders have met it for a window; to move regardless, raise or remove spec.updateStrategy.objective"

// setConditions writes all conditions into status and returns those that changed.
func setConditions(o *observation, status *api.OrderGridStatus, now metav1.Time) (changed []metav1.Condition) {
	for _, c := range gridConditions {
		j := c.judge(o)
		if j.status == "" { // it does not apply to this grid
			meta.RemoveStatusCondition(&status.Conditions, c.kind)
			continue
		}
		before := meta.FindStatusCondition(status.Conditions, c.kind)
		if before == nil || before.Status != j.status || before.Reason != j.reason {
			changed = append(changed, metav1.Condition{Type: c.kind, Status: j.status, Reason: j.reason, Message: j.message})
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: c.kind, Status: j.status, Reason: j.reason, Message: messages.Cut(j.message, messages.MaxCondition),
			ObservedGeneration: o.grid.Generation, LastTransitionTime: now,
		})
	}
	return changed
}

// all is the subject of a sentence about all of n objects.
func all(n int, one, many string) string {
	if n == 1 {
		return "the " + one
	}
	return fmt.Sprintf("all %d %s", n, many)
}

// some lists the first few names, so that a message stays readable whatever the size of the grid.
func some(names []string) string {
	const few = 4
	switch {
	case len(names) == 0:
		return ""
	case len(names) <= few:
		return ": " + strings.Join(names, ", ")
	}
	return fmt.Sprintf(": %s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
