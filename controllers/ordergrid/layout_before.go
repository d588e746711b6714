package ordergrid

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

// layoutBefore names a record of a grid that was created when a shard had partitions of its own, "" if there is none.
// Its nodes and present ones are incompatible.
func (o *observation) layoutBefore() string {
	for i := range o.partitions {
		if p := &o.partitions[i]; p.Name != api.PartitionName(o.grid.Name, p.Spec.Partition) {
			return p.Name
		}
	}
	return ""
}

// refuseLayout reports it, and leaves the rest of the grid unchanged: it keeps serving.
func (r *Reconciler) refuseLayout(ctx context.Context, grid *api.OrderGrid, record string) error {
	before := grid.DeepCopy()
	changed := meta.SetStatusCondition(&grid.Status.Conditions, metav1.Condition{
		Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: reasonLayoutBefore, ObservedGeneration: grid.Generation,
		Message: fmt.Sprintf("GridPartition %s is of a release in which a shard had partitions of its own, and the operator does not change this grid. "+
			"Its pods continue to serve. Create a second OrderGrid, move the clients to it, and delete this one when its orders are downstream or not needed any more", record),
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	if !changed {
		return nil
	}
	return apply.Status(ctx, r.Client, before, grid)
}
