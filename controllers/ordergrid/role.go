package ordergrid

import (
	rbacv1 "k8s.io/api/rbac/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// role lets the pods of one shard read and change the configuration records of that shard, by name, and report events.
// list and watch are granted by name as well: the API server allows them with a metadata.name field selector only.
func role(grid *api.OrderGrid, shard int32) *rbacv1.Role {
	names := partitionNames(grid, shard)
	return &rbacv1.Role{
		ObjectMeta: shardMeta(grid, shard, api.ShardName(grid.Name, shard)),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{api.GroupName}, Resources: []string{"gridpartitions"}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{api.GroupName}, Resources: []string{"gridpartitions/status"}, ResourceNames: names, Verbs: []string{"get", "update"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}
}
