package alerts

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/dashboards/live"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

const (
	meshNamespace = "chaos-mesh"
	meshFinalizer = "chaos-mesh/records" // by which Chaos Mesh keeps an object until its fault is taken back
)

// wedged is a drill whose fault Chaos Mesh took on before it went away. The operator, the API server, Chaos Mesh's kinds, the
// recorder and the grid are real; of Chaos Mesh itself there are its pods' objects and the finalizer it puts on.
type wedged struct {
	drill *api.FailoverDrill
	fault *unstructured.Unstructured
}

// prepare runs a drill until Chaos Mesh has taken its fault on.
func (w *wedged) prepare(ctx context.Context, r *live.Run) error {
	if err := installMesh(ctx, r); err != nil {
		return err
	}
	rate := int32(50)
	w.drill = &api.FailoverDrill{ObjectMeta: object("wedged"), Spec: api.FailoverDrillSpec{
		Faults:  []api.DrillFault{{Name: "fail", Type: api.FaultPodFailure, Duration: &metav1.Duration{Duration: time.Minute}}},
		Traffic: api.DrillTraffic{RatePerProbe: &rate},
	}}
	if err := r.StartDrill(ctx, w.drill); err != nil {
		return err
	}
	if err := r.Until(ctx, "the operator has asked Chaos Mesh for the fault", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: "PodChaosList"})
		if err := r.Kube().List(ctx, list, kube.InNamespace(live.Namespace)); err != nil || len(list.Items) == 0 {
			return false
		}
		w.fault = &list.Items[0]
		return true
	}); err != nil {
		return err
	}
	w.fault.SetFinalizers([]string{meshFinalizer})
	return r.Kube().Update(ctx, w.fault)
}

// cause aborts the drill: the operator deletes the fault, and nobody takes it back.
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

// installMesh has Chaos Mesh's kinds served, and the pods there by which it is known to run.
func installMesh(ctx context.Context, r *live.Run) error {
	kinds, err := crds.Objects(ctx, envtest.Root(), "PodChaos", "NetworkChaos", "StressChaos", "TimeChaos", "IOChaos")
	if err != nil {
		return err
	}
	for _, crd := range kinds {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return err
		}
		if err := r.Kube().Create(ctx, &unstructured.Unstructured{Object: content}); err != nil {
			return err
		}
	}
	if err := r.Kube().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meshNamespace}}); err != nil {
		return err
	}
	for _, component := range []string{"chaos-daemon", "controller-manager"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: meshNamespace, Name: component, Labels: map[string]string{"app.kubernetes.io/component": component}},
			Spec: corev1.PodSpec{NodeName: "this-machine", Containers: []corev1.Container{{Name: "c", Image: "chaos"}}}}
		if err := r.Kube().Create(ctx, pod); err != nil {
			return err
		}
		if err := r.Runs(ctx, pod, "127.77.4.1"); err != nil {
			return err
		}
	}
	return nil
}
