package ordergrid

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// partitionsPerShard is how many partitions every shard has. An order's partition depends on it, so it is what
// spec.replicas was when the grid was made, whatever that is now: the records tell, and what status said of them, since a
// record that was lost still counts.
func (r *Reconciler) partitionsPerShard(ctx context.Context, grid *api.OrderGrid, records []api.GridPartition) (int32, error) {
	most, claimed := grid.Status.PartitionsPerShard, grid.Status.PartitionsPerShard > 0
	for i := range records {
		most, claimed = max(most, records[i].Spec.Index+1), claimed || records[i].Status.Epoch > 0
	}
	for _, s := range grid.Status.Partitions {
		if index, ok := partitionIndex(s.Name); ok && index >= most {
			most, claimed = index+1, true
		}
	}
	if claimed {
		return most, nil
	}
	// Nobody holds an order yet. Pods that were told of a number of partitions keep to it all the same.
	var sets appsv1.StatefulSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(grid.Namespace), client.MatchingLabels{api.LabelGrid: grid.Name}); err != nil {
		return 0, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		if owned(grid, &sets.Items[i]) && most > 0 {
			return most, nil
		}
	}
	return grid.Spec.Replicas, nil
}

// partitionIndex is the number of a partition within its shard, from the name of its record.
func partitionIndex(name string) (int32, bool) {
	at := strings.LastIndex(name, "-p")
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[at+2:], 10, 8)
	return int32(n), err == nil
}
