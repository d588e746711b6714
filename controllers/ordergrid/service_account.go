package ordergrid

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// serviceAccount is the identity of the pods of one shard. Its token is mounted by the pods that request it, not by
// every pod that happens to use the account.
func serviceAccount(grid *api.OrderGrid, shard int32) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   shardMeta(grid, shard, api.ShardName(grid.Name, shard)),
		AutomountServiceAccountToken: ptr.To(false),
	}
}
