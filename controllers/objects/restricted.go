package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// User is the user and group of every container, as in images/.
const User int64 = 65532

// RestrictedPod is the security context of a pod.
func RestrictedPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		RunAsUser:      ptr.To(User),
		RunAsGroup:     ptr.To(User),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// RestrictedPodWithVolumes is RestrictedPod for one that writes to volumes.
func RestrictedPodWithVolumes() *corev1.PodSecurityContext {
	c := RestrictedPod()
	c.FSGroup = ptr.To(User)
	return c
}

// RestrictedContainer is the security context of a container.
func RestrictedContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
