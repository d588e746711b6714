package ordergrid

import (
	"path/filepath"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

var policyDefaults = Defaults{OperatorNamespace: "og-system", APIServerPorts: []int32{443, 6443}}

func TestNetworkPolicyGolden(t *testing.T) {
	open := pairGrid()
	open.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted
	named := pairGrid()
	named.Spec.Security.NetworkPolicy = api.NetworkPolicySpec{
		Type:       api.NetworkPolicyRestricted,
		Clients:    []api.PodPeers{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "oms"}}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"desk": "emea"}}}},
		Monitoring: []api.PodPeers{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}},
	}
	for name, grid := range map[string]*api.OrderGrid{"defaults": open, "named": named} {
		golden.YAML(t, filepath.Join("testdata", "network-policy", name+".yaml"), networkPolicy(grid, policyDefaults))
	}
}

// TestNetworkPolicyOnAndOff: the policy selects the grid's pods while it is enabled, and none afterwards.
func TestNetworkPolicyOnAndOff(t *testing.T) {
	b := newBench(t)
	b.reconcile.Defaults.OperatorNamespace, b.reconcile.Defaults.APIServerPorts = policyDefaults.OperatorNamespace, policyDefaults.APIServerPorts
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd.nodes"}}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err == nil {
		t.Fatal("there is a policy although none is configured")
	}
	selects := func() bool {
		b.get(policy)
		s, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(labels.Set(statefulSetOf(b, grid).Spec.Template.Labels))
	}
	for _, on := range []bool{true, false, true} {
		grid.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyNone
		if on {
			grid.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted
		}
		b.write(grid)
		b.run(grid)
		if selects() != on {
			t.Errorf("enabled %v, it selects pods: %v", on, !on)
		}
		if writes := b.run(grid); len(writes) > 0 {
			t.Errorf("a pass without anything to do wrote %v", writes)
		}
	}
}
