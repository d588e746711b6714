package ordergrid

import (
	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// partition builds the configuration record of one partition. A shard has as many partitions as pods, and the pod with
// the partition's index should be its primary, so that every pod is primary of one and backup of the others, unless a
// person asked for something else.
func partition(grid *api.OrderGrid, shard, index int32, asked wishes) *api.GridPartition {
	if asked.preferredPod == "" {
		asked.preferredPod = api.PodName(grid.Name, shard, index%grid.Spec.Replicas)
	}
	return &api.GridPartition{
		ObjectMeta: shardMeta(grid, shard, api.PartitionName(grid.Name, shard, index)),
		Spec: api.GridPartitionSpec{
			GridRef:      api.GridReference{Name: grid.Name},
			Shard:        shard,
			Index:        index,
			Replicas:     grid.Spec.Replicas,
			MinInSync:    grid.Spec.MinInSync,
			PreferredPod: asked.preferredPod,

			AcceptDataLossEpoch: asked.acceptDataLossEpoch,
			ReassertChangeID:    asked.reassertChangeID,
		},
	}
}

// partitionNames lists the partitions of a shard in order.
func partitionNames(grid *api.OrderGrid, shard int32) []string {
	names := make([]string, grid.Spec.Replicas)
	for index := range names {
		names[index] = api.PartitionName(grid.Name, shard, int32(index))
	}
	return names
}
