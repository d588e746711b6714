package ordergrid

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// gridIndex finds the objects of a grid in the cache. By label alone every list for one grid would scan the objects of
// all grids in its namespace, which is quadratic for a thousand grids.
const gridIndex = "ordergrid.dev/grid"

// index registers it with the cache.
func (r *Reconciler) index(indexer client.FieldIndexer) error {
	byGrid := func(o client.Object) []string {
		if grid := o.GetLabels()[api.LabelGrid]; grid != "" {
			return []string{grid}
		}
		return nil
	}
	for _, kind := range []client.Object{&api.GridPartition{}, &appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.Service{}, &appsv1.Deployment{}, &batchv1.Job{}} {
		if err := indexer.IndexField(context.Background(), kind, gridIndex, byGrid); err != nil {
			return err
		}
	}
	r.indexed = true
	return nil
}

// list reads the objects of a grid with these labels, from the cache or from the API server, which has no such index.
func (r *Reconciler) list(ctx context.Context, from client.Reader, grid *api.OrderGrid, list client.ObjectList, labels client.MatchingLabels) error {
	options := []client.ListOption{client.InNamespace(grid.Namespace), labels}
	if r.indexed && from == client.Reader(r.Client) {
		options = append(options, client.MatchingFields{gridIndex: grid.Name})
	}
	return from.List(ctx, list, options...)
}
