package ordergateway

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/labels"
)

// networkPolicy is that of the pods. In: clients at the listeners, from anywhere, since counterparties are outside the
// cluster; requests for metrics and status. Out: the nodes of the grid and DNS servers.
func networkPolicy(g *api.OrderGateway) *networkingv1.NetworkPolicy {
	var listeners []int32
	for i := range g.Spec.Listeners {
		listeners = append(listeners, g.Spec.Listeners[i].Port)
	}
	nodes := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labels.Component: labels.GridNode, api.LabelGrid: g.Spec.GridRef.Name}}}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(g),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(g)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{Ports: ports(corev1.ProtocolTCP, listeners...)},
				{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}, Ports: ports(corev1.ProtocolTCP, api.GatewayHTTPPort)},
			},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: append(ports(corev1.ProtocolUDP, 53), ports(corev1.ProtocolTCP, 53)...)},
				{To: []networkingv1.NetworkPolicyPeer{nodes}, Ports: ports(corev1.ProtocolTCP, api.DataPort)},
			},
		},
	}
}

// unused is a policy that selects no pod: the operator may not delete one.
func unused(g *api.OrderGateway) *networkingv1.NetworkPolicy {
	policy := networkPolicy(g)
	policy.Spec = networkingv1.NetworkPolicySpec{PolicyTypes: policy.Spec.PolicyTypes, PodSelector: metav1.LabelSelector{
		MatchLabels:      selector(g),
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: api.LabelGateway, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}
	return policy
}

func ports(protocol corev1.Protocol, numbers ...int32) (list []networkingv1.NetworkPolicyPort) {
	for _, n := range numbers {
		port := intstr.FromInt32(n)
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port})
	}
	return list
}
