package ordergrid

import (
	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// partition builds the configuration record of one partition. The pod with the partition's index should be its primary, so
// that every pod of a new shard is primary of one and backup of the others, unless a person asked for something else. With
// fewer copies than partitions a pod is primary of several. The pods that it names are those that its shard keeps, and the
// one that is being added, or is there while others are replaced: what they say, the numbers said before them.
func partition(grid *api.OrderGrid, copies *shardCopies, index int32, asked wishes) *api.GridPartition {
	if asked.preferredPod == "" {
		asked.preferredPod = api.PodName(grid.Name, copies.shard, index%copies.wanted)
	}
	p := &api.GridPartition{
		ObjectMeta: shardMeta(grid, copies.shard, api.PartitionName(grid.Name, copies.shard, index)),
		Spec: api.GridPartitionSpec{
			GridRef:      api.GridReference{Name: grid.Name},
			Shard:        copies.shard,
			Index:        index,
			Replicas:     copies.wanted,
			MinInSync:    copies.needed,
			PreferredPod: asked.preferredPod,

			AcceptDataLossEpoch: asked.acceptDataLossEpoch,
			ReassertChangeID:    asked.reassertChangeID,
		},
	}
	for ordinal := range max(copies.takesIn, copies.wanted) {
		p.Spec.Pods = append(p.Spec.Pods, api.PodName(grid.Name, copies.shard, ordinal))
	}
	if copies.takesIn > copies.wanted { // for nodes of the release before, which do not know pods
		p.Spec.MaxInSync = copies.takesIn
	}
	return p
}

// partitionNames lists the partitions of a shard in order.
func partitionNames(grid *api.OrderGrid, shard int32) []string {
	names := make([]string, grid.PartitionsPerShard())
	for index := range names {
		names[index] = api.PartitionName(grid.Name, shard, int32(index))
	}
	return names
}
