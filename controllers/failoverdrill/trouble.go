package failoverdrill

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// maxMessage is the longest message of a step and of an ending, in bytes.
const maxMessage = 1024

func jobFailed(job *batchv1.Job) bool {
	return jobTrouble(job) != ""
}

// jobTrouble says why a Job has failed.
func jobTrouble(job *batchv1.Job) string {
	if job == nil {
		return ""
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf(". Job %s: %s", job.Name, c.Message)
		}
	}
	return ""
}

// podEnded: its process is no more, however it ended.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}

// podTrouble says why a pod does not start.
func podTrouble(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf(". Pod %s: %s", pod.Name, truncate(c.Message, 512))
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return fmt.Sprintf(". Pod %s: %s: %s", pod.Name, w.Reason, truncate(w.Message, 512))
		}
	}
	return ""
}

// podFailure quotes a pod that ended with an error.
func podFailure(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			lines := strings.Split(strings.TrimSpace(t.Message), "\n")
			return fmt.Sprintf(". Pod %s ended with exit code %d: %s", pod.Name, t.ExitCode, truncate(lines[len(lines)-1], 512))
		}
	}
	if pod.Status.Reason != "" {
		return fmt.Sprintf(". Pod %s: %s: %s", pod.Name, pod.Status.Reason, truncate(pod.Status.Message, 512))
	}
	return ""
}

func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}
