package orderprobe

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Reasons of the conditions of an OrderProbe.
const (
	reasonGridNotFound     = "GridNotFound"
	reasonGridNotAvailable = "GridNotAvailable"
	reasonGridMismatch     = "GridMismatch"
	reasonNoRecording      = "RecordingNotFound"
	reasonGridTooSmall     = "GridTooSmall"
	reasonPlanInvalid      = "PlanInvalid"
	reasonNameTaken        = "NameTaken"
	reasonStarting         = "Starting"
	reasonMeasuring        = "Measuring"
	reasonCompleted        = "Completed"
	reasonProbeFailed      = "ProbeFailed"
	reasonJobFailed        = "JobFailed"
	reasonResultInvalid    = "ResultInvalid"
)

// phase of a run, as far as it decides what to do next.
type phase int

const (
	phaseFinished   phase = iota // Complete or Failed is True: nothing is left to do
	phaseImpossible              // this probe can never run on this grid
	phaseWaiting                 // the grid does not exist yet or does not serve
	phaseStarting                // not every pod is ready
	phaseReady                   // every pod is ready and waits for the start
	phaseMeasuring               // under way
	phaseMeasured                // every result has arrived
	phaseBroken                  // there will be no result
)

// observation is everything the phase is decided from.
type observation struct {
	probe    *api.OrderProbe
	grid     *api.OrderGrid // nil: there is none
	plan     scenario.Plan
	planErr  error
	job      *batchv1.Job        // nil: not created yet, or cleaned up
	barrier  *corev1.ConfigMap   // nil: not created yet
	channels []*corev1.ConfigMap // one per pod, by index; nil: not created yet
	pods     []corev1.Pod
	// noRecording reports that the recording of a replay is missing; empty if it exists, or is unknown.
	noRecording string
}

// decision is a phase and, where it is shown, its reason and message.
type decision struct {
	phase           phase
	reason, message string
}

// decide classifies the run. It is the only place that does.
func decide(o *observation) decision {
	if done(o.probe) {
		return decision{phase: phaseFinished}
	}
	if o.planErr != nil {
		return decision{phaseImpossible, reasonPlanInvalid, o.planErr.Error()}
	}
	if o.job == nil && o.startAt() == "" {
		return decideBeforeStart(o)
	}
	if d, failed := decideFailure(o); failed {
		return d
	}
	pods := len(o.channels)
	ready, results := o.count(pod.KeyReady), o.count(pod.KeyResult)
	switch {
	case results == pods:
		return decision{phase: phaseMeasured}
	case o.startAt() != "" && o.probe.Spec.Scenario.OwnGrids():
		return decision{phaseMeasuring, reasonMeasuring, fmt.Sprintf("%s runs since %s, and is ended after %s; the pod's log has its progress", o.probe.Spec.Scenario, o.startAt(), ownLimit(o.probe))}
	case o.startAt() != "":
		return decision{phaseMeasuring, reasonMeasuring, fmt.Sprintf("%d probes measure since %s, for about %s; %d have a result", pods, o.startAt(), o.plan.Scheduled().Round(time.Second), results)}
	case ready == pods:
		return decision{phase: phaseReady, reason: reasonMeasuring, message: fmt.Sprintf("all %d probes are ready", pods)}
	}
	return decision{phaseStarting, reasonStarting, fmt.Sprintf("%d of %d probes are ready%s", ready, pods, messages.First(o.pods, messages.PodTrouble))}
}

// decideBeforeStart decides whether the Job may be created.
func decideBeforeStart(o *observation) decision {
	if o.probe.Spec.Scenario.OwnGrids() {
		return decision{phaseStarting, reasonStarting, "starting the pod, which starts the grids that it measures"}
	}
	if o.grid == nil {
		return decision{phaseWaiting, reasonGridNotFound, fmt.Sprintf("there is no OrderGrid %s in namespace %s; create it, or delete this OrderProbe", o.probe.Spec.GridRef.Name, o.probe.Namespace)}
	}
	if reason, message := mismatch(o.plan, o.grid); reason != "" {
		return decision{phaseImpossible, reason, message}
	}
	if message := notThrough(o.probe, o.grid); message != "" {
		return decision{phaseImpossible, reasonGridMismatch, message}
	}
	if o.noRecording != "" {
		return decision{phaseWaiting, reasonNoRecording, o.noRecording}
	}
	for _, kind := range []string{api.ConditionAvailable, api.ConditionRedundant} {
		c := meta.FindStatusCondition(o.grid.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionTrue || kind == api.ConditionRedundant && o.plan.Replicas == 1 {
			continue
		}
		text := "it has no status yet"
		if c != nil {
			text = c.Message
		}
		return decision{phaseWaiting, reasonGridNotAvailable, fmt.Sprintf("waiting until OrderGrid %s is %s: %s", o.grid.Name, kind, text)}
	}
	return decision{phaseStarting, reasonStarting, fmt.Sprintf("starting %d probes", o.plan.Probes)}
}

// decideFailure: a pod reported that there will be no result, or the Job ended without one.
func decideFailure(o *observation) (decision, bool) {
	for i, c := range o.channels {
		if c != nil && c.Data[pod.KeyError] != "" {
			return decision{phaseBroken, reasonProbeFailed, fmt.Sprintf("probe %s: %s", letter(i), c.Data[pod.KeyError])}, true
		}
	}
	if o.job == nil {
		missing := len(o.channels) - o.count(pod.KeyResult)
		return decision{phaseBroken, reasonJobFailed, fmt.Sprintf("Job %s was deleted while it ran; %d of %d results are missing", o.probe.Name, missing, len(o.channels))}, missing > 0
	}
	for _, c := range o.job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return decision{phaseBroken, reasonJobFailed, fmt.Sprintf("Job %s: %s%s", o.job.Name, c.Message, messages.First(o.pods, messages.PodFailure))}, true
		}
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue && o.count(pod.KeyResult) < len(o.channels) {
			return decision{phaseBroken, reasonResultInvalid, fmt.Sprintf("Job %s is complete, but only %d of %d probes have written a result", o.job.Name, o.count(pod.KeyResult), len(o.channels))}, true
		}
	}
	return decision{}, false
}

// done reports whether the run has ended. Status is the only record of that once the Job has been cleaned up.
func done(probe *api.OrderProbe) bool {
	return meta.IsStatusConditionTrue(probe.Status.Conditions, api.ConditionComplete) ||
		meta.IsStatusConditionTrue(probe.Status.Conditions, api.ConditionFailed)
}

func (o *observation) count(key string) (n int) {
	for _, c := range o.channels {
		if c != nil && c.Data[key] != "" {
			n++
		}
	}
	return n
}

func (o *observation) startAt() string {
	if o.barrier == nil {
		return ""
	}
	return o.barrier.Data[pod.KeyStartAt]
}

// letter is the name of a probe, as in the published tests.
func letter(index int) string { return string(rune('A' + index)) }
