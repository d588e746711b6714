package orderprobe

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// serviceAccount is the identity of the probe's pods.
func serviceAccount(probe *api.OrderProbe) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: probeMeta(probe, probe.Name), AutomountServiceAccountToken: ptr.To(false)}
}

// role lets the probe's pods write their own ConfigMaps, which the operator has created, and read when to begin.
// Nothing else, and no create: a name cannot be granted for that.
func role(probe *api.OrderProbe, pods int) *rbacv1.Role {
	channels := make([]string, pods)
	for index := range channels {
		channels[index] = channelName(probe, index)
	}
	return &rbacv1.Role{
		ObjectMeta: probeMeta(probe, probe.Name),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: channels, Verbs: []string{"get", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{runName(probe)}, Verbs: []string{"get"}},
		},
	}
}

// roleBinding gives the probe's service account its role.
func roleBinding(probe *api.OrderProbe) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: probeMeta(probe, probe.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: probe.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: probe.Name, Namespace: probe.Namespace}},
	}
}
