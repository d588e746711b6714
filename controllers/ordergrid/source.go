package ordergrid

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/limits"
)

// The source of a file that pods read again, docs/adr/0102: which state of which object it is of. The kubelet renews the file of
// each pod at a time of its own, and no node puts an earlier one in force.

// isOlder reports whether an object is of an earlier state than what was given: read from a cache that is behind.
func isOlder(object metav1.Object, given *limits.Source) bool {
	return given != nil && given.Object == string(object.GetUID()) && object.GetGeneration() < given.Generation
}

// sourceAfter is the source of a file that takes the place of one with the source given, nil for none. Later generations of an
// object have the same beginning. Another object has a later one, and so has another content of the same generation, as a
// later release of the operator may make it.
func sourceAfter(given *limits.Source, grid *api.OrderGrid, object metav1.Object, now time.Time, same bool) *limits.Source {
	s := &limits.Source{Grid: string(grid.UID), Object: string(object.GetUID()), SinceMs: now.UnixMilli(), Generation: object.GetGeneration()}
	switch {
	case given == nil:
	case given.Grid == s.Grid && given.Object == s.Object && (given.Generation < s.Generation || given.Generation == s.Generation && same):
		s.SinceMs = given.SinceMs
	default:
		s.SinceMs = max(s.SinceMs, given.SinceMs+1)
	}
	return s
}

// reread reads from the API server what makes another content the later one: a cache that is behind would give that of the
// object before. names reports whether the grid still names the object.
func (r *run) reread(ctx context.Context, object client.Object, names func(*api.OrderGrid) bool) error {
	grid := &api.OrderGrid{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(r.grid), grid); err != nil {
		return fmt.Errorf("read OrderGrid %s: %w", r.grid.Name, err)
	}
	if grid.UID != r.grid.UID || !names(grid) {
		return fmt.Errorf("OrderGrid %s has changed since this pass began; it is read again", r.grid.Name)
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("read %s: %w", object.GetName(), err)
	}
	return nil
}
