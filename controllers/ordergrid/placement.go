package ordergrid

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// poolLabels are the labels of Node Feature Discovery for Kubernetes nodes of a pool.
func poolLabels(pool api.NodePool) map[string]string {
	labels := map[string]string{}
	switch pool.CPU {
	case api.PoolCPUXeon:
		labels[api.LabelCPUVendor], labels[api.LabelCPUAVX512] = "Intel", "true"
	case api.PoolCPUIntel:
		labels[api.LabelCPUVendor] = "Intel"
	}
	switch pool.Network {
	case api.PoolNetworkInfiniBand:
		labels[api.LabelRDMA], labels[api.LabelInfiniBandPCI] = "true", "true"
	case api.PoolNetworkRDMA:
		labels[api.LabelRDMA] = "true"
	case api.PoolNetworkSRIOV:
		labels[api.LabelSRIOV] = "true"
	}
	return labels
}

// nodeSelector is the pool's labels and the user's, which take precedence. Empty is nil, as from the API server.
func nodeSelector(grid *api.OrderGrid) map[string]string {
	labels := poolLabels(grid.Spec.Placement.Pool)
	maps.Copy(labels, grid.Spec.Placement.NodeSelector)
	if len(labels) == 0 {
		return nil
	}
	return labels
}

// affinity keeps the copies of a shard apart: on different Kubernetes nodes, and by the labels of separateBy.
func affinity(grid *api.OrderGrid, shard int32) *corev1.Affinity {
	anti := &corev1.PodAntiAffinity{}
	apart := func(key string, policy api.SpreadPolicy) {
		term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: shardSelector(grid, shard)}}
		if policy == api.SpreadPreferred {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term})
		} else {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, term)
		}
	}
	p := &grid.Spec.Placement
	apart(corev1.LabelHostname, p.Spread)
	// To the scheduler a node without the label is apart from all others, although its rack is unknown.
	var known []corev1.NodeSelectorRequirement
	for _, s := range p.SeparateBy {
		apart(s.TopologyKey, s.Policy)
		if s.Policy != api.SpreadPreferred {
			known = append(known, corev1.NodeSelectorRequirement{Key: s.TopologyKey, Operator: corev1.NodeSelectorOpExists})
		}
	}
	a := &corev1.Affinity{PodAntiAffinity: anti}
	if len(known) > 0 {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: known}},
		}}
	}
	return a
}

// topologySpread distributes the pods of all shards evenly over the Kubernetes nodes.
func topologySpread(grid *api.OrderGrid) []corev1.TopologySpreadConstraint {
	otherwise := corev1.ScheduleAnyway
	if grid.Spec.Placement.ShardSpread == api.SpreadRequired {
		otherwise = corev1.DoNotSchedule
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: otherwise,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: gridSelector(grid)},
	}}
}
