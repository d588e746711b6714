package ordergrid

import (
	rbacv1 "k8s.io/api/rbac/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// roleBinding gives the shard's service account the shard's role.
func roleBinding(grid *api.OrderGrid, shard int32) *rbacv1.RoleBinding {
	name := api.ShardName(grid.Name, shard)
	return &rbacv1.RoleBinding{
		ObjectMeta: shardMeta(grid, shard, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: grid.Namespace}},
	}
}
