package ordergrid

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// podDisruptionBudget lets a node drain evict one pod of a shard at a time, or as many as leave keep ready ones (unless
// 0). A pod is ready only while it is in sync, so the next one can be evicted only after the first has a complete copy
// again.
func podDisruptionBudget(grid *api.OrderGrid, shard, keep int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: shardMeta(grid, shard, api.ShardName(grid.Name, shard)),
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: shardSelector(grid, shard)}},
	}
	if keep > 0 {
		b.Spec.MinAvailable = ptr.To(intstr.FromInt32(keep))
	} else {
		b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	return b
}
