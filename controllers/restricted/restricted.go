// Package restricted has the security contexts of OrderGrid's containers: their pods pass the Restricted Pod Security
// Standard.
package restricted

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// User is the user and group of every container, as in images/.
const User int64 = 65532

// Pod is the security context of a pod.
func Pod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		RunAsUser:      ptr.To(User),
		RunAsGroup:     ptr.To(User),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// PodWithVolumes is Pod for one that writes to volumes.
func PodWithVolumes() *corev1.PodSecurityContext {
	c := Pod()
	c.FSGroup = ptr.To(User)
	return c
}

// Container is the security context of a container.
func Container() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
