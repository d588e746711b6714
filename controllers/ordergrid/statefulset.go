package ordergrid

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// statefulSet runs the pods of one shard, see planCopies. They start in Parallel, because a pod is ready only once its peers are; and a
// changed template replaces no pod by itself (OnDelete), because a pod may be the last with a complete copy: see rollPods.
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
	if file := fileSink(grid); grid.Spec.WriteBehind.Sink == api.SinkFile && file.Volume == api.SinkVolumeClaim {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim(grid, shard, file)}
		set.Spec.PersistentVolumeClaimRetentionPolicy = retention(file.WhenDeleted)
	}
	return set
}

func claim(grid *api.OrderGrid, shard int32, file api.FileSinkSpec) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		// A claim template is immutable: it carries the selector's labels, which never change, and no others.
		ObjectMeta: metav1.ObjectMeta{Name: sinkVolume, Labels: shardSelector(grid, shard)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: file.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: file.Size}},
		},
	}
}

func retention(whenDeleted api.ClaimPolicy) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	policy := &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	if whenDeleted == api.ClaimDelete {
		policy.WhenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return policy
}
