package ordergateway

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// networkPolicy is that of the pods. In: clients at the listeners, from anywhere, since counterparties are outside the
// cluster; requests for metrics and status. Out: the nodes of the grid, DNS servers, and the other pods where they know
// each other.
func networkPolicy(g *api.OrderGateway) *networkingv1.NetworkPolicy {
	var listeners []int32
	for i := range g.Spec.Listeners {
		listeners = append(listeners, g.Spec.Listeners[i].Port)
	}
	nodes := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{objects.LabelComponent: objects.GridNode, api.LabelGrid: g.Spec.GridRef.Name}}}
	egress := []networkingv1.NetworkPolicyEgressRule{
		workload.DNS(),
		{To: []networkingv1.NetworkPolicyPeer{nodes}, Ports: workload.Ports(corev1.ProtocolTCP, api.DataPort)},
	}
	if peers(g) {
		others := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(g)}}
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{others}, Ports: workload.Ports(corev1.ProtocolTCP, g.Spec.Listener(api.GatewayWebSocket).Port)})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(g),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(g)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{Ports: workload.Ports(corev1.ProtocolTCP, listeners...)},
				workload.FromCluster(api.GatewayHTTPPort),
			},
			Egress: egress,
		},
	}
}
