package ordergrid

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

// stampRecord records the identity of a record, so that one that was recreated without its status is distinguished from
// a new one: its annotation names another object, or, recreated without it too, marks it as a copy. Pods claim neither.
func (r *run) stampRecord(ctx context.Context, name string, now *api.GridPartition) error {
	if now == nil { // it was created in this pass
		now = &api.GridPartition{}
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.grid.Namespace, Name: name}, now); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if now.Annotations[api.AnnotationRecord] != "" {
		return nil
	}
	value := string(now.UID)
	if now.Status.Epoch == 0 && r.reached(name) > 0 {
		value = api.AnnotationRecordCopy
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": now.UID, "annotations": map[string]string{api.AnnotationRecord: value}}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, now.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(apply.FieldOwner))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // it is another object meanwhile: the next pass handles it
	case err != nil:
		return fmt.Errorf("stamp GridPartition %s: %w", name, err)
	}
	countWrite("GridPartition", apply.Updated)
	wrote(ctx, "updated", "GridPartition", name, "annotation", api.AnnotationRecord+"="+value)
	return nil
}

// madeAgain reports whether an unclaimed record is another object than the one that the operator created: pods that
// hold its orders may be alive.
func madeAgain(p *api.GridPartition) bool {
	stamp := p.Annotations[api.AnnotationRecord]
	return p.Status.Epoch == 0 && stamp != "" && stamp != string(p.UID)
}

// reached is the epoch of a partition's record in the grid's status, 0 if it was never claimed.
func (r *run) reached(name string) int64 {
	for _, p := range r.grid.Status.Partitions {
		if p.Name == name {
			return p.Epoch
		}
	}
	return 0
}
