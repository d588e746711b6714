package gridlink

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// Reasons of Connected and Lagging.
const (
	reasonGridNotFound       = "GridNotFound"
	reasonReaderMissing      = "ReaderMissing"
	reasonCredentialsMissing = "CredentialsMissing"
	reasonPartitionsDiffer   = "PartitionsDiffer"
	reasonNameTaken          = "NameTaken"
	reasonNoAnswer           = "NoAnswer"
	reasonFailing            = "Failing"
	reasonNeedsAdministrator = "NeedsAdministrator"
	reasonConnecting         = "Connecting"
	reasonConnected          = "Connected"
	reasonNotMeasured        = "NotMeasured"
	reasonBehind             = "Behind"
	reasonWithinLimit        = "WithinLimit"
)

// observation is what is known of a link in one pass.
type observation struct {
	link    *api.GridLink
	problem problem
	pods    []corev1.Pod
	answer  *answer // nil: no pod answers
	silent  error   // why
}

// judgement is the value of a condition.
type judgement struct {
	status          metav1.ConditionStatus
	reason, message string
}

// linkConditions are the conditions of a GridLink, each computed from the observation alone.
var linkConditions = []struct {
	kind  string
	judge func(*observation) judgement
}{
	{api.ConditionConnected, judgeConnected},
	{api.ConditionLagging, judgeLagging},
}

// reports is how the conditions are reported.
var reports = workload.Kind{
	Good: []workload.Good{
		{Condition: api.ConditionConnected, Status: metav1.ConditionTrue},
		{Condition: api.ConditionLagging, Status: metav1.ConditionFalse},
	},
	Quiet:   []string{reasonConnecting},
	Metrics: kindMetrics,
}

// judgeConnected: every partition is connected at both ends, and none fails.
func judgeConnected(o *observation) judgement {
	if o.problem.reason != "" {
		return judgement{metav1.ConditionFalse, o.problem.reason, o.problem.message}
	}
	if o.answer == nil {
		text := fmt.Sprintf("no pod of Deployment %s reports%s", api.LinkName(o.link.Name), messages.First(o.pods, messages.PodTrouble))
		if o.silent != nil {
			text += ": " + o.silent.Error()
		}
		return judgement{metav1.ConditionUnknown, reasonNoAnswer, text + fmt.Sprintf("; see `kubectl describe pod -n %s -l %s=%s`", o.link.Namespace, api.LabelLink, o.link.Name)}
	}
	var waiting, failing []string
	permanent := false
	for i := range o.answer.Partitions {
		p := &o.answer.Partitions[i]
		switch {
		case p.Error != nil && (p.Error.Permanent || !permanent):
			if p.Error.Permanent && !permanent {
				permanent, failing = true, nil // what an administrator has to do is told, not the rest
			}
			failing = append(failing, fmt.Sprintf("%s: %s", p.Partition, messages.Cut(p.Error.Text, 512)))
		case p.Error == nil && !p.Open:
			waiting = append(waiting, p.Partition)
		}
	}
	n := len(o.answer.Partitions)
	switch {
	case permanent:
		return judgement{metav1.ConditionFalse, reasonNeedsAdministrator, fmt.Sprintf("%d of %d partitions are not carried, and no retry helps: %s", len(failing), n, messages.Some(failing))}
	case len(failing) > 0:
		return judgement{metav1.ConditionFalse, reasonFailing, fmt.Sprintf("%d of %d partitions fail, and are tried again: %s", len(failing), n, messages.Some(failing))}
	case len(waiting) > 0 || n == 0:
		return judgement{metav1.ConditionFalse, reasonConnecting, fmt.Sprintf("%d of %d partitions are not open yet: %s", len(waiting), n, messages.Some(waiting))}
	}
	return judgement{metav1.ConditionTrue, reasonConnected, fmt.Sprintf("the log of %d partitions of %s flows to %s", n, o.answer.Source, o.answer.Target)}
}

// judgeLagging: the standby is further behind than spec.maxLag. What is not measured is not called small.
func judgeLagging(o *observation) judgement {
	if o.answer == nil || len(o.answer.Partitions) == 0 {
		return judgement{metav1.ConditionUnknown, reasonNotMeasured, "the lag is not known; see condition " + api.ConditionConnected}
	}
	limit := o.link.Spec.MaxLag.Duration
	var behind, closed []string
	for _, p := range o.answer.Partitions {
		switch lag := time.Duration(p.LagSeconds * float64(time.Second)); {
		case lag > limit:
			behind = append(behind, fmt.Sprintf("%s by %s", p.Partition, lag.Round(time.Second)))
		case !p.Open:
			closed = append(closed, p.Partition)
		}
	}
	switch {
	case len(behind) > 0:
		return judgement{metav1.ConditionTrue, reasonBehind, fmt.Sprintf("%d of %d partitions are behind by more than %s: %s. A forced promotion would lose that; the source holds it in memory meanwhile",
			len(behind), len(o.answer.Partitions), limit, messages.Some(behind))}
	case len(closed) > 0:
		return judgement{metav1.ConditionUnknown, reasonNotMeasured, fmt.Sprintf("the lag of %d of %d partitions is not known, which are not connected: %s", len(closed), len(o.answer.Partitions), messages.Some(closed))}
	}
	return judgement{metav1.ConditionFalse, reasonWithinLimit, fmt.Sprintf("no partition is behind by more than %s", limit)}
}

// setStatus makes status from the observation, and returns the conditions that changed.
func setStatus(o *observation, now metav1.Time) (changed []metav1.Condition) {
	s := &o.link.Status
	s.ObservedGeneration, s.From, s.To = o.link.Generation, o.link.Spec.From.Name(), o.link.Spec.To.Name()
	s.Partitions, s.Open, s.Lag = 0, 0, nil
	if o.answer != nil {
		s.Partitions, s.Lag = int32(len(o.answer.Partitions)), lagOf(o.answer)
		for _, p := range o.answer.Partitions {
			if p.Open {
				s.Open++
			}
		}
	}
	for _, of := range linkConditions {
		j := of.judge(o)
		changed = append(changed, workload.Set(&s.Conditions, o.link.Generation, now, metav1.Condition{Type: of.kind, Status: j.status, Reason: j.reason, Message: j.message})...)
	}
	return changed
}

// lagOf sums the lag up, as coarse as in status.
func lagOf(a *answer) *api.LinkLag {
	lag, worst := api.LinkLag{}, 0.0
	for _, p := range a.Partitions {
		lag.Entries, lag.Bytes = lag.Entries+max(0, p.LagEntries), lag.Bytes+max(0, p.LagBytes)
		if p.LagSeconds > worst && p.LagSeconds >= 1 {
			worst, lag.Partition = p.LagSeconds, p.Partition
		}
	}
	lag.Entries, lag.Bytes, lag.Seconds = messages.Coarse(lag.Entries), messages.Coarse(lag.Bytes), messages.Coarse(int64(min(worst, 1e9)))
	return &lag
}
