package failoverdrill

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/controllers/messages"
)

// maxMessage is the longest message of a step and of an ending, in bytes.
const maxMessage = 1024

// brief is a message of a step or of an ending.
func brief(text string) string { return messages.Cut(text, maxMessage) }

// podEnded: its process has ended, in whatever way.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}
