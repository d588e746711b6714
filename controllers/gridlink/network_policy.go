package gridlink

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// networkPolicy is that of the link's pods. In: requests for metrics and status. Out: the nodes of grids in this
// namespace, the ports of grids elsewhere, whose addresses are names, and DNS servers.
func networkPolicy(link *api.GridLink, ends ...*end) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(link),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(link)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{workload.FromCluster(api.LinkHTTPPort)},
			Egress:      []networkingv1.NetworkPolicyEgressRule{workload.DNS()},
		},
	}
	for _, e := range ends {
		rule := networkingv1.NetworkPolicyEgressRule{Ports: workload.Ports(corev1.ProtocolTCP, e.ports()...)}
		if e.grid != nil {
			rule.To = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{objects.LabelComponent: objects.GridNode, api.LabelGrid: e.name}}}}
		}
		policy.Spec.Egress = append(policy.Spec.Egress, rule)
	}
	return policy
}

// ports of a grid: those of its endpoints. A grid whose clients come from outside has pods with addresses at other
// ports, which it names at the first connection.
func (e *end) ports() (list []int32) {
	if e.grid != nil {
		return []int32{api.DataPort}
	}
	for _, endpoint := range e.endpoints {
		if n, err := strconv.ParseInt(endpoint[strings.LastIndexByte(endpoint, ':')+1:], 10, 32); err == nil {
			list = append(list, int32(n))
		}
	}
	return list
}
