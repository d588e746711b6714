package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of the conditions that are bad when they are True, except those of Stalled.
const (
	reasonNoInSyncMemberLeft = "NoInSyncMemberLeft"
	reasonMembersUnreachable = "MembersUnreachable"
	reasonMembersPresent     = "MembersPresent"
	reasonRecordBehind       = "RecordBehind"
	reasonRecordCurrent      = "RecordCurrent"
)

// judgeDataLoss: a partition has lost every process that held all its orders.
func judgeDataLoss(o *observation) judgement {
	if o.notInquired {
		return o.asBefore(api.ConditionDataLossSuspected)
	}
	var gone, unknown []string
	for i := range o.partitions {
		p := &o.partitions[i]
		f := o.findings[p.Name]
		if f == nil || configurationOf(p) != configurationOf(f.record) {
			continue // changed since; the next pass decides
		}
		switch f.loss.verdict {
		case fateGone:
			gone = append(gone, fmt.Sprintf("%s at epoch %d (%s). %s", p.Name, p.Status.Epoch, f.loss, lossRemedy(o.grid, p)))
		case fateUnknown:
			unknown = append(unknown, fmt.Sprintf("%s at epoch %d (%s)", p.Name, p.Status.Epoch, f.loss))
		}
	}
	notes := o.notes(api.AnnotationAcceptDataLoss)
	switch {
	case len(gone) > 0:
		return judgement{metav1.ConditionTrue, reasonNoInSyncMemberLeft, fmt.Sprintf("%d of %d partitions have lost every process that held all their orders; "+
			"no process is promoted automatically. %s%s", len(gone), o.wantPartitions(), sentences(gone), notes)}
	case len(unknown) > 0:
		return judgement{metav1.ConditionUnknown, reasonMembersUnreachable, fmt.Sprintf("for %d of %d partitions it is not known yet whether a process that holds all their orders is left. %s%s",
			len(unknown), o.wantPartitions(), sentences(unknown), notes)}
	}
	return judgement{metav1.ConditionFalse, reasonMembersPresent, "no partition is known to have lost every process that holds all its orders" + notes}
}

// asBefore repeats the condition where the pass could not check.
func (o *observation) asBefore(kind string) judgement {
	if c := meta.FindStatusCondition(o.grid.Status.Conditions, kind); c != nil {
		return judgement{c.Status, c.Reason, c.Message}
	}
	return judgement{metav1.ConditionUnknown, reasonNotLooked, "the partitions could not be checked, see condition " + api.ConditionStalled}
}

// lossRemedy returns the remedy. The command is complete, to be copied. What keeps the orders comes before what gives them
// up.
func lossRemedy(grid *api.OrderGrid, p *api.GridPartition) string {
	if p.Spec.AcceptDataLossEpoch == p.Status.Epoch {
		return fmt.Sprintf("The loss is accepted: a grid node begins lineage %d", p.Status.Lineage+1)
	}
	keep := ""
	switch archive := slices.IndexFunc(grid.Spec.Sinks, func(s api.SinkSpec) bool { return s.Type == api.SinkArchive }); {
	case archive >= 0:
		keep = fmt.Sprintf("restore the grid from what sink %s has archived (docs/archive.md; kubectl ordergrid archive restore --dry-run shows up to which order); otherwise, ", grid.Spec.Sinks[archive].Name)
	case slices.ContainsFunc(grid.Spec.Sinks, func(s api.SinkSpec) bool { return s.Type == api.SinkExternal }):
		keep = "promote its standby in another site if it has one (docs/multi-site.md); otherwise, "
	}
	return fmt.Sprintf("If none of them can be brought back, %sgive up what only they held: kubectl annotate -n %s gridpartition %s %s=%d",
		keep, p.Namespace, p.Name, api.AnnotationAcceptDataLoss, p.Status.Epoch)
}

// judgeRegressed: a record shows an older configuration than was seen before.
func judgeRegressed(o *observation) judgement {
	if o.notInquired {
		return o.asBefore(api.ConditionConfigurationRegressed)
	}
	var behind []string
	for i := range o.partitions {
		p := &o.partitions[i]
		f := o.findings[p.Name]
		switch {
		case f == nil || configurationOf(p) != configurationOf(f.record):
			continue
		case f.lead == nil && madeAgain(p):
			behind = append(behind, forgotten(p, f))
			continue
		case f.lead == nil:
			continue
		}
		behind = append(behind, fmt.Sprintf("%s shows epoch %d (change %s), but epoch %d (change %s) was seen; %s. %s",
			p.Name, p.Status.Epoch, orNone(p.Status.ChangeID), f.lead.epoch, f.lead.changeID, f.lead.by(), regressionRemedy(p, f.lead)))
	}
	notes := o.notes(api.AnnotationReassert)
	if len(behind) == 0 {
		return judgement{metav1.ConditionFalse, reasonRecordCurrent, "every partition shows the latest configuration that was seen" + notes}
	}
	return judgement{metav1.ConditionTrue, reasonRecordBehind, fmt.Sprintf("%d of %d partitions show an older configuration than was seen before, as after etcd was restored from a backup; "+
		"their members serve on, but cannot change the configuration. %s%s", len(behind), o.wantPartitions(), sentences(behind), notes)}
}

// forgotten is for a recreated record when no grid node that answers knows its earlier state.
func forgotten(p *api.GridPartition, f *finding) string {
	text := p.Name + " was deleted and recreated without its status, and no grid node that answers knows its earlier state; its pods do not claim it. "
	if f.silent || !f.asked {
		return text + "Wait until all its pods answer"
	}
	return text + fmt.Sprintf("Only if its orders may be given up, start it anew, empty: kubectl annotate --overwrite -n %s gridpartition %s %s=%s",
		p.Namespace, p.Name, api.AnnotationRecord, p.UID)
}

func regressionRemedy(p *api.GridPartition, l *lead) string {
	command := func(changeID string) string {
		return fmt.Sprintf("kubectl annotate -n %s gridpartition %s %s=%s", p.Namespace, p.Name, api.AnnotationReassert, changeID)
	}
	switch {
	case p.Spec.ReassertChangeID != "":
		return "Change " + p.Spec.ReassertChangeID + " is being written again"
	case len(l.holders) > 0:
		return "To write that one again: " + command(l.holders[0].changeID)
	case p.Status.ChangeID == "":
		return "Wait until its pods answer"
	}
	return "To keep the record as it stands: " + command(p.Status.ChangeID)
}

// notes are what annotations wait for, and why some were refused.
func (o *observation) notes(annotation string) string {
	var list []string
	for i := range o.partitions {
		p := &o.partitions[i]
		f := o.findings[p.Name]
		if f == nil {
			continue
		}
		if text := f.pending[annotation]; text != "" {
			list = append(list, p.Name+": "+text)
		} else if r, there := f.memory.refused[annotation]; there && r.at == configurationOf(p) {
			list = append(list, fmt.Sprintf("%s: %s was refused: %s", p.Name, annotation, r.text))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ". " + sentences(list)
}

// sentences joins the first few.
func sentences(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ". ")
	}
	return fmt.Sprintf("%s. And %d more", strings.Join(list[:few], ". "), len(list)-few)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// actionRequired is the problem of a partition that requires manual action first, because its record does not show who
// holds what; "" if there is none.
func (o *observation) actionRequired(p *api.GridPartition) string {
	if problem := o.problem(p); problem == api.ConditionConfigurationRegressed || problem == api.ConditionDataLossSuspected {
		return problem
	}
	return ""
}

// problem is the worst problem of the partition, as a reason.
func (o *observation) problem(p *api.GridPartition) string {
	f := o.findings[p.Name]
	switch {
	case f != nil && (f.lead != nil || madeAgain(p)):
		return api.ConditionConfigurationRegressed
	case f != nil && f.loss.verdict == fateGone:
		return api.ConditionDataLossSuspected
	case p.Status.Primary == nil:
		return reasonNotClaimed
	case !o.serves(p.Status.Primary.PodName):
		return reasonPrimaryNotReady
	case int32(len(p.Status.InSync)) < p.Spec.MinInSync:
		return reasonInsufficientInSync
	case len(o.absent(p)) > 0 && !o.covered(p) || int32(len(p.Status.InSync)) < p.Spec.Replicas:
		return reasonCopiesMissing
	}
	return ""
}
