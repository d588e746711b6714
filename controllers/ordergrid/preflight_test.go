package ordergrid

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// kubeNode is a Kubernetes node of the published pool, modified by the test.
func kubeNode(name string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, "topology.kubernetes.io/zone": "zone-" + name,
			api.LabelCPUVendor: "Intel", api.LabelCPUAVX512: "true", api.LabelRDMA: "true", api.LabelInfiniBandPCI: "true",
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), "openshift.io/ib_trading": resource.MustParse("8"),
		}},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func without(label string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Labels, label) }
}
func label(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}
func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "true", Effect: effect})
	}
}

func allocatable(name corev1.ResourceName, q string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(q) }
}

func TestPreflight(t *testing.T) {
	pool := func(s *api.OrderGridSpec) {
		s.Placement.Pool = api.NodePool{CPU: api.PoolCPUXeon, Network: api.PoolNetworkRDMA}
	}
	zones := func(s *api.OrderGridSpec) {
		s.Placement.SeparateBy = []api.Separation{{TopologyKey: "topology.kubernetes.io/zone", Policy: api.SpreadRequired}}
	}
	const asked = "the pods need 2 Kubernetes nodes with feature.node.kubernetes.io/cpu-cpuid.AVX512F=true, feature.node.kubernetes.io/cpu-model.vendor_id=Intel, feature.node.kubernetes.io/rdma.available=true; the cluster has "
	for _, test := range []struct {
		name  string
		spec  func(*api.OrderGridSpec)
		nodes []corev1.Node
		want  string // empty: they fit
	}{
		{"two of the pool", pool, []corev1.Node{kubeNode("a"), kubeNode("b")}, ""},
		{"no nodes", pool, nil, asked + "0. It has no Kubernetes nodes"},
		{"one lacks a label", pool, []corev1.Node{kubeNode("a"), kubeNode("b", without(api.LabelRDMA))},
			asked + "1 (a). b: no label feature.node.kubernetes.io/rdma.available=true"},
		{"one has another value", pool, []corev1.Node{kubeNode("a"), kubeNode("b", label(api.LabelCPUVendor, "AMD"))},
			asked + "1 (a). b: label feature.node.kubernetes.io/cpu-model.vendor_id=AMD instead of Intel"},
		{"one is tainted", pool, []corev1.Node{kubeNode("a"), kubeNode("b", taint("desk", corev1.TaintEffectNoSchedule))},
			asked + "1 (a). b: taint desk=true:NoSchedule"},
		{"a taint that only discourages", pool, []corev1.Node{kubeNode("a"), kubeNode("b", taint("desk", corev1.TaintEffectPreferNoSchedule))}, ""},
		{"a tolerated taint", func(s *api.OrderGridSpec) {
			s.Placement.Tolerations = []corev1.Toleration{{Key: "desk", Operator: corev1.TolerationOpExists}}
		}, []corev1.Node{kubeNode("a", taint("desk", corev1.TaintEffectNoExecute)), kubeNode("b", taint("desk", corev1.TaintEffectNoSchedule))}, ""},
		{"one is cordoned", pool, []corev1.Node{kubeNode("a"), kubeNode("b", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), func(n *corev1.Node) { n.Spec.Unschedulable = true })},
			asked + "1 (a). b: cordoned"},
		{"one is cordoned, and that is tolerated", func(s *api.OrderGridSpec) {
			s.Placement.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		}, []corev1.Node{kubeNode("a"), kubeNode("b", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), func(n *corev1.Node) { n.Spec.Unschedulable = true })}, ""},
		{"one is not reachable", pool, []corev1.Node{kubeNode("a"), kubeNode("b", taint("node.kubernetes.io/unreachable", corev1.TaintEffectNoSchedule))},
			"b: taint node.kubernetes.io/unreachable=true:NoSchedule"},
		{"everything at once", pool, []corev1.Node{kubeNode("a"), kubeNode("b", without(api.LabelRDMA), taint("desk", corev1.TaintEffectNoSchedule), allocatable(corev1.ResourceMemory, "1Gi"))},
			"b: no label feature.node.kubernetes.io/rdma.available=true and taint desk=true:NoSchedule and 1Gi of the 1280Mi memory for a pod"},
		{"exclusive processors", func(s *api.OrderGridSpec) { s.Placement.CPU = api.CPUPlacement{Policy: api.CPUExclusive, Cores: 32} }, []corev1.Node{kubeNode("a"), kubeNode("b")},
			"the pods need 2 Kubernetes nodes; the cluster has 0. a, b: 16 of the 32 cpu for a pod"},
		{"no virtual function", func(s *api.OrderGridSpec) {
			s.Fabric = &api.FabricSpec{Network: api.NetworkReference{Name: "ib"}, ResourceName: "openshift.io/other"}
		}, []corev1.Node{kubeNode("a"), kubeNode("b")}, "a, b: none of the 1 openshift.io/other for a pod"},
		{"one node, copies apart if possible", func(s *api.OrderGridSpec) { s.Placement.Spread = api.SpreadPreferred }, []corev1.Node{kubeNode("a")}, ""},
		{"one node, copies apart", func(*api.OrderGridSpec) {}, []corev1.Node{kubeNode("a")}, "the pods need 2 Kubernetes nodes; the cluster has 1 (a). "},
		{"two zones", zones, []corev1.Node{kubeNode("a"), kubeNode("b")}, ""},
		{"one zone", zones, []corev1.Node{kubeNode("a", label("topology.kubernetes.io/zone", "east")), kubeNode("b", label("topology.kubernetes.io/zone", "east"))},
			"the copies of a shard need 2 different values of label topology.kubernetes.io/zone, and the 2 Kubernetes nodes on which the pods fit have 1 (east)"},
		{"a node without a zone", zones, []corev1.Node{kubeNode("a"), kubeNode("b", without("topology.kubernetes.io/zone"))},
			"the cluster has 1 (a). b: no label topology.kubernetes.io/zone"},
		{"an affinity of the user's", func(s *api.OrderGridSpec) {
			s.PodTemplate = raw(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
				{"matchExpressions":[{"key":"gen","operator":"Gt","values":["4"]}]},{"matchExpressions":[{"key":"lab","operator":"In","values":["yes"]}]}]}}}}}`)
		}, []corev1.Node{kubeNode("a", label("gen", "5")), kubeNode("b", label("gen", "4"))},
			"b: none of the 2 terms of the required node affinity, the first lacks: label gen not Gt 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := pairGrid()
			test.spec(&grid.Spec)
			template, err := overlay(grid, pod(grid, 0, testDefaults))
			if err != nil {
				t.Fatal(err)
			}
			got := string(preflight(grid, &template, test.nodes))
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("\n got: %s\nwant: %s", got, test.want)
			}
		})
	}
}

// TestPreflightOfManyNodes: the message stays readable, and the node that nearly fits comes first.
func TestPreflightOfManyNodes(t *testing.T) {
	var nodes []corev1.Node
	for i := range 5000 {
		nodes = append(nodes, kubeNode(fmt.Sprintf("general-%04d", i), without(api.LabelInfiniBandPCI), without(api.LabelRDMA)))
	}
	for i := range 20 {
		nodes = append(nodes, kubeNode(fmt.Sprintf("odd-%d", i), taint(fmt.Sprintf("reason-%d", i), corev1.TaintEffectNoSchedule)))
	}
	grid := fabricGrid()
	grid.Spec.Placement.NodeSelector = nil
	template := pod(grid, 0, testDefaults)
	got := string(preflight(grid, &template, nodes))
	t.Log(got)
	if len(got) > 1500 || !strings.Contains(got, "odd-0: taint reason-0=true:NoSchedule; ") || !strings.Contains(got, "5016 further nodes lack other things") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func BenchmarkPreflight(b *testing.B) {
	var nodes []corev1.Node
	for i := range 5000 {
		nodes = append(nodes, kubeNode(fmt.Sprintf("general-%04d", i), without(api.LabelRDMA)))
	}
	grid := fabricGrid()
	template := pod(grid, 0, testDefaults)
	for b.Loop() {
		preflight(grid, &template, nodes)
	}
}

// TestNodeTerms tests the operators of a node affinity.
func TestNodeTerms(t *testing.T) {
	node := kubeNode("a", label("gen", "5"))
	for _, test := range []struct {
		operator corev1.NodeSelectorOperator
		key      string
		values   []string
		want     bool
	}{
		{corev1.NodeSelectorOpExists, "gen", nil, true}, {corev1.NodeSelectorOpExists, "none", nil, false},
		{corev1.NodeSelectorOpDoesNotExist, "gen", nil, false}, {corev1.NodeSelectorOpDoesNotExist, "none", nil, true},
		{corev1.NodeSelectorOpIn, "gen", []string{"4", "5"}, true}, {corev1.NodeSelectorOpIn, "none", []string{""}, false},
		{corev1.NodeSelectorOpNotIn, "gen", []string{"5"}, false}, {corev1.NodeSelectorOpNotIn, "none", []string{"5"}, true},
		{corev1.NodeSelectorOpGt, "gen", []string{"4"}, true}, {corev1.NodeSelectorOpGt, "gen", []string{"5"}, false},
		{corev1.NodeSelectorOpLt, "gen", []string{"6"}, true}, {corev1.NodeSelectorOpLt, "gen", []string{"five"}, false}, {corev1.NodeSelectorOpGt, "none", []string{"4"}, false},
		{"Approximately", "gen", nil, true},
	} {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: test.key, Operator: test.operator, Values: test.values}}}
		if lack := lackedTerms([]corev1.NodeSelectorTerm{term}, &node); (lack == "") != test.want {
			t.Errorf("%s %s %v: %q, want a match: %v", test.key, test.operator, test.values, lack, test.want)
		}
	}
	if lackedTerms([]corev1.NodeSelectorTerm{{}}, &node) == "" {
		t.Error("an empty term matches")
	}
}
