package ordergrid

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// gridLabels are on every object of a grid.
func gridLabels(grid *api.OrderGrid) map[string]string {
	l := objects.Labels(objects.GridNode, grid.Name)
	l[api.LabelGrid] = grid.Name
	return l
}

// shardLabels are on every object of a shard.
func shardLabels(grid *api.OrderGrid, shard int32) map[string]string {
	l := gridLabels(grid)
	l[api.LabelShard] = strconv.Itoa(int(shard))
	return l
}

// gridSelector selects the pods of all shards. It is part of objects whose selector is immutable: never extend it.
func gridSelector(grid *api.OrderGrid) map[string]string {
	return map[string]string{objects.LabelComponent: objects.GridNode, api.LabelGrid: grid.Name}
}

// shardSelector selects the pods of one shard. It is part of objects whose selector is immutable: never extend it.
func shardSelector(grid *api.OrderGrid, shard int32) map[string]string {
	selector := gridSelector(grid)
	selector[api.LabelShard] = strconv.Itoa(int(shard))
	return selector
}

func gridMeta(grid *api.OrderGrid, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: grid.Namespace, Labels: gridLabels(grid)}
}

func shardMeta(grid *api.OrderGrid, shard int32, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: grid.Namespace, Labels: shardLabels(grid, shard)}
}
