package ordergrid

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// statefulSet runs the pods of one shard, see planCopies. They start in Parallel, because a pod is ready only once its
// peers are; and a changed template replaces no pod by itself (OnDelete), because a pod may be the last with a complete
// copy: see rollPods.
func statefulSet(grid *api.OrderGrid, shard, pods int32, template corev1.PodTemplateSpec) *appsv1.StatefulSet {
	name := api.ShardName(grid.Name, shard)
	set := &appsv1.StatefulSet{
		ObjectMeta: shardMeta(grid, shard, name),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To(pods),
			ServiceName:          name,
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: ptr.To[int32](5),
			Selector:             &metav1.LabelSelector{MatchLabels: shardSelector(grid, shard)},
			Template:             template,
		},
	}
	claimSinks(grid, shard, set)
	claimJournal(grid, shard, set)
	return set
}
