package ordergrid

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// applyNetworkPolicy creates the policy of spec.security.networkPolicy. One that is no longer needed stays and selects
// no pod: the operator has no permission to delete it.
func (r *run) applyNetworkPolicy(ctx context.Context) error {
	gateways, err := r.gateways(ctx)
	if err != nil {
		return err
	}
	policy := networkPolicy(r.grid, r.Defaults, gateways...)
	if r.grid.Spec.Security.PolicyType() == api.NetworkPolicyRestricted {
		_, err := r.applier.Apply(ctx, r.grid, policy)
		return err
	}
	have := &networkingv1.NetworkPolicy{}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(policy), have)
	if err != nil || !owned(r.grid, have) {
		return client.IgnoreNotFound(err)
	}
	policy.Spec = networkingv1.NetworkPolicySpec{PolicyTypes: policy.Spec.PolicyTypes, PodSelector: metav1.LabelSelector{
		MatchLabels:      gridSelector(r.grid),
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: api.LabelGrid, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}
	_, err = r.applier.Apply(ctx, r.grid, policy)
	return err
}

// networkPolicyName names the grid's policy. No grid has a dot in its name, so a collision with a user's object is
// unlikely.
func networkPolicyName(grid *api.OrderGrid) string { return grid.Name + ".nodes" }

// networkPolicy allows the ingress and egress that grid nodes need. Kubelets reach the pods of their own machine in any
// case.
func networkPolicy(grid *api.OrderGrid, defaults Defaults, gateways ...string) *networkingv1.NetworkPolicy {
	spec := grid.Spec.Security.NetworkPolicy
	self := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: gridSelector(grid)}}
	tools := []networkingv1.NetworkPolicyPeer{component(objects.Probe), component(objects.Drill)}

	if len(grid.SinksWithPods()) > 0 {
		tools = append(tools, component(objects.Sink))
	}
	data := append([]networkingv1.NetworkPolicyPeer{self}, tools...)
	if len(gateways) > 0 {
		data = append(data, component(objects.Gateway))
	}
	if len(spec.Clients) == 0 {
		data = append(data, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	}
	http := append([]networkingv1.NetworkPolicyPeer{operatorPods(defaults.OperatorNamespace)}, tools...)
	if len(spec.Monitoring) == 0 {
		http = append(http, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}})
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: gridMeta(grid, networkPolicyName(grid)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: gridSelector(grid)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: append(data, peersOf(spec.Clients)...), Ports: ports(corev1.ProtocolTCP, api.DataPort)},
				{From: append(http, peersOf(spec.Monitoring)...), Ports: ports(corev1.ProtocolTCP, api.HTTPPort)},
			},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{self}, Ports: ports(corev1.ProtocolTCP, api.DataPort)},
				// DNS servers and API servers are often not pods, so no selector matches them.
				{Ports: append(ports(corev1.ProtocolUDP, 53), ports(corev1.ProtocolTCP, 53)...)},
				{Ports: ports(corev1.ProtocolTCP, defaults.APIServerPorts...)},
			},
		},
	}
	if from := grid.Spec.RestoreFrom; from != nil && from.Bucket != nil {
		policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, bucketPorts(from.Bucket)...)})
	}
	if x := grid.Spec.ExternalAccess; x != nil { // no pods: external clients have a network, if anything
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: networksOf(x.SourceRanges), Ports: ports(corev1.ProtocolTCP, api.ExternalPort)})
	}
	return policy
}

// component are the pods of the namespace with a component of OrderGrid.
func component(name string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{objects.LabelName: "ordergrid", objects.LabelComponent: name}}}
}

func operatorPods(namespace string) networkingv1.NetworkPolicyPeer {
	p := component("operator")
	p.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	return p
}

func peersOf(list []api.PodPeers) (out []networkingv1.NetworkPolicyPeer) {
	for _, p := range list {
		out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: p.NamespaceSelector, PodSelector: p.PodSelector})
	}
	return out
}

// networksOf are peers outside the cluster; none are all.
func networksOf(ranges []string) (out []networkingv1.NetworkPolicyPeer) {
	for _, cidr := range ranges {
		out = append(out, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	return out
}

func ports(protocol corev1.Protocol, numbers ...int32) (list []networkingv1.NetworkPolicyPort) {
	for _, n := range numbers {
		port := intstr.FromInt32(n)
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port})
	}
	return list
}
