package ordergrid

import (
	rbacv1 "k8s.io/api/rbac/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// role lets the pods of one shard watch the configuration records of the grid, change them, by name, and report events:
// any partition may move to the shard. Kubernetes cannot limit list and watch to a label, so they include all records
// in the namespace.
func role(grid *api.OrderGrid, shard int32) *rbacv1.Role {
	names := partitionNames(grid)
	return &rbacv1.Role{
		ObjectMeta: shardMeta(grid, shard, api.ShardName(grid.Name, shard)),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{api.GroupName}, Resources: []string{"gridpartitions"}, ResourceNames: names, Verbs: []string{"get"}},
			{APIGroups: []string{api.GroupName}, Resources: []string{"gridpartitions"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{api.GroupName}, Resources: []string{"gridpartitions/status"}, ResourceNames: names, Verbs: []string{"get", "update"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}
}
