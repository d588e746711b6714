package alerts

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/dashboards/live"
)

const meshFinalizer = "chaos-mesh/records" // by which Chaos Mesh keeps an object until its fault is reverted

// wedged is a drill whose fault Chaos Mesh took on before it went away. The operator, the API server, Chaos Mesh's kinds, the
// recorder and the grid are real; of Chaos Mesh itself there are its pods' objects and the finalizer it puts on.
type wedged struct {
	drill *api.FailoverDrill
	fault *unstructured.Unstructured
}

// prepare runs a drill until Chaos Mesh has taken its fault on.
func (w *wedged) prepare(ctx context.Context, r *live.Run) error {
	if err := r.InstallMesh(ctx); err != nil {
		return err
	}
	var err error
	if w.drill, w.fault, err = r.StartFault(ctx, "wedged"); err != nil {
		return err
	}
	w.fault.SetFinalizers([]string{meshFinalizer})
	return r.Kube().Update(ctx, w.fault)
}

// cause aborts the drill: the operator deletes the fault, and no controller reverts it.
func (w *wedged) cause(ctx context.Context, r *live.Run) error {
	before := w.drill.DeepCopy()
	w.drill.Spec.State = api.DrillAbort
	return r.Kube().Patch(ctx, w.drill, kube.MergeFrom(before))
}

// undo is Chaos Mesh that runs again and has taken the fault back.
func (w *wedged) undo(ctx context.Context, r *live.Run) error {
	if err := r.Kube().Get(ctx, kube.ObjectKeyFromObject(w.fault), w.fault); err != nil {
		return err
	}
	if w.fault.GetDeletionTimestamp() == nil {
		return fmt.Errorf("the operator did not delete %s %s", w.fault.GetKind(), w.fault.GetName())
	}
	w.fault.SetFinalizers(nil)
	return r.Kube().Update(ctx, w.fault)
}
