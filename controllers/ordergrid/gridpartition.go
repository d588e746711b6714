package ordergrid

import (
	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// partition builds the configuration record of one partition. copies are those of its home. Its pods are those that the
// shard keeps, and the one that is being added, or exists while others are replaced.
func partition(grid *api.OrderGrid, copies *shardCopies, n int32, preferred string, asked requested) *api.GridPartition {
	p := &api.GridPartition{
		ObjectMeta: shardMeta(grid, copies.shard, api.PartitionName(grid.Name, n)),
		Spec: api.GridPartitionSpec{
			GridRef:      api.GridReference{Name: grid.Name},
			Partition:    n,
			Shard:        copies.shard,
			Replicas:     copies.wanted,
			MinInSync:    copies.needed,
			PreferredPod: preferred,

			AcceptDataLossEpoch: asked.acceptDataLossEpoch,
			ReassertChangeID:    asked.reassertChangeID,
		},
	}
	if s := grid.Spec.Site; s != nil {
		p.Spec.Site = &api.PartitionSite{Role: s.Role, Source: s.Source}
	}
	for ordinal := range max(copies.takesIn, copies.wanted) {
		p.Spec.Pods = append(p.Spec.Pods, api.PodName(grid.Name, copies.shard, ordinal))
	}
	if copies.takesIn > copies.wanted {
		p.Spec.MaxInSync = copies.takesIn
	}
	return p
}

// mayBePrimary are the pods of a shard that may be primary of a partition.
func mayBePrimary(grid *api.OrderGrid, copies *shardCopies) (pods []string) {
	for ordinal := range copies.wanted {
		pods = append(pods, api.PodName(grid.Name, copies.shard, ordinal))
	}
	return pods
}

// partitionNames lists the records of a grid in order.
func partitionNames(grid *api.OrderGrid) []string {
	names := make([]string, grid.Spec.Partitions)
	for n := range names {
		names[n] = api.PartitionName(grid.Name, int32(n))
	}
	return names
}
