package messages

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The functions below answer with a sentence that stands behind another, with ". " in front, or with nothing if there is
// nothing to say.

// First is what f says of the first pod of which it says something.
func First(pods []corev1.Pod, f func(*corev1.Pod) string) string {
	for i := range pods {
		if text := f(&pods[i]); text != "" {
			return text
		}
	}
	return ""
}

// PodTrouble says why a pod does not start: not scheduled, image not there, container crashing. pod may be nil.
func PodTrouble(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return quote(pod, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return quote(pod, strings.TrimSuffix(w.Reason+": "+w.Message, ": "))
		}
	}
	return ""
}

// PodFailure quotes a pod that ended with an error: the last line of its log is where a program says why it gave up. pod may
// be nil.
func PodFailure(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			lines := strings.Split(strings.TrimSpace(t.Message), "\n")
			return fmt.Sprintf(". Pod %s ended with exit code %d: %s", pod.Name, t.ExitCode, Cut(lines[len(lines)-1], maxQuote))
		}
	}
	if pod.Status.Reason != "" { // ended by others, such as Evicted
		return quote(pod, strings.TrimSuffix(pod.Status.Reason+": "+pod.Status.Message, ": "))
	}
	return ""
}

func quote(pod *corev1.Pod, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(". Pod %s: %s", pod.Name, Cut(text, maxQuote))
}

// JobFailure says why a Job has failed; it says something of every Job that has. job may be nil.
func JobFailure(job *batchv1.Job) string {
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
