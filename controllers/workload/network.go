package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ports is a list of ports of a rule.
func Ports(protocol corev1.Protocol, numbers ...int32) (list []networkingv1.NetworkPolicyPort) {
	for _, n := range numbers {
		port := intstr.FromInt32(n)
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port})
	}
	return list
}

// DNS lets pods ask DNS servers.
func DNS() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: append(Ports(corev1.ProtocolUDP, 53), Ports(corev1.ProtocolTCP, 53)...)}
}

// FromCluster lets every pod of the cluster reach ports: those for metrics and status.
func FromCluster(ports ...int32) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{
		From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}},
		Ports: Ports(corev1.ProtocolTCP, ports...),
	}
}

// Policy returns the policy to apply for owner: as it is if it is wanted, otherwise one that selects no pod where owner
// has one from before, or nil. All pods that policy selects have label.
func Policy(ctx context.Context, c client.Client, owner client.Object, policy *networkingv1.NetworkPolicy, wanted bool, label string) (client.Object, error) {
	if wanted {
		return policy, nil
	}
	have := &networkingv1.NetworkPolicy{}
	err := c.Get(ctx, client.ObjectKeyFromObject(policy), have)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read NetworkPolicy %s: %w", policy.Name, err)
	}
	if err != nil || !metav1.IsControlledBy(have, owner) {
		return nil, nil //nolint:nilnil // there is nothing to apply
	}
	return unused(policy, label), nil
}

// unused returns a copy of policy that selects no pod, since the operator may not delete one.
func unused(policy *networkingv1.NetworkPolicy, label string) *networkingv1.NetworkPolicy {
	u := policy.DeepCopy()
	u.Spec = networkingv1.NetworkPolicySpec{PolicyTypes: u.Spec.PolicyTypes, PodSelector: metav1.LabelSelector{
		MatchLabels:      u.Spec.PodSelector.MatchLabels,
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}
	return u
}
