package messages

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The functions below except Trouble return a sentence to append to another, starting with ". ", or nothing if there is
// nothing to report.

// First is the first non-empty result of f.
func First(pods []corev1.Pod, f func(*corev1.Pod) string) string {
	for i := range pods {
		if text := f(&pods[i]); text != "" {
			return text
		}
	}
	return ""
}

// PodTrouble is Trouble with the name of the pod, which may be nil.
func PodTrouble(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return quote(pod, Trouble(pod))
}

// Trouble returns why a pod does not start or is not ready: not scheduled, image missing, container crashing with its
// last line of output. It is not a continuation.
func Trouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ") + crash(c)
		}
		if text := crash(c); text != "" && !c.Ready {
			return strings.TrimPrefix(text, "; ")
		}
	}
	return ""
}

// crash describes how a container ended the last time: its exit code, and the last line it wrote.
func crash(c *corev1.ContainerStatus) string {
	t := c.State.Terminated
	if t == nil {
		t = c.LastTerminationState.Terminated
	}
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s ended with exit code %d", c.Name, t.ExitCode)
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", restarts: %d", c.RestartCount)
	}
	if last := lastLine(t.Message); last != "" {
		text += ", last line: " + Cut(last, maxWords)
	}
	return text
}

// lastLine of a log is where a program reports why it exited.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// PodFailure quotes a pod that ended with an error. pod may be nil.
func PodFailure(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf(". Pod %s ended with exit code %d: %s", pod.Name, t.ExitCode, Cut(lastLine(t.Message), maxQuote))
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

// JobFailure returns why a Job has failed; it is not empty for a failed Job. job may be nil.
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
