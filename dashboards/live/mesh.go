package live

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

const meshNamespace = "chaos-mesh"

// InstallMesh installs Chaos Mesh's kinds, and the pods by which it is detected. The caller plays its actions.
func (r *Run) InstallMesh(ctx context.Context) error {
	kinds, err := crds.Objects(ctx, envtest.Root(), "PodChaos", "NetworkChaos", "StressChaos", "TimeChaos", "IOChaos")
	if err != nil {
		return err
	}
	for _, crd := range kinds {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return err
		}
		if err := r.kube.Create(ctx, &unstructured.Unstructured{Object: content}); err != nil {
			return err
		}
	}
	if err := r.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meshNamespace}}); err != nil {
		return err
	}
	for _, component := range []string{"chaos-daemon", "controller-manager"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: meshNamespace, Name: component, Labels: map[string]string{"app.kubernetes.io/component": component}},
			Spec: corev1.PodSpec{NodeName: "this-machine", Containers: []corev1.Container{{Name: "c", Image: "chaos"}}}}
		if err := r.kube.Create(ctx, pod); err != nil {
			return err
		}
		if err := r.Runs(ctx, pod, "127.77.4.1"); err != nil {
			return err
		}
	}
	return nil
}

// StartFault creates a drill of one PodFailure and returns the operator's Chaos Mesh object for it.
func (r *Run) StartFault(ctx context.Context, name string) (d *api.FailoverDrill, fault *unstructured.Unstructured, err error) {
	rate := int32(50)
	d = &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: api.FailoverDrillSpec{
		Faults:  []api.DrillFault{{Name: "fail", Type: api.FaultPodFailure, Duration: &metav1.Duration{Duration: time.Minute}}},
		Traffic: api.DrillTraffic{RatePerProbe: &rate},
	}}
	if err := r.StartDrill(ctx, d); err != nil {
		return nil, nil, err
	}
	err = r.Until(ctx, "the operator has asked Chaos Mesh for the fault", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: "PodChaosList"})
		if err := r.kube.List(ctx, list, kube.InNamespace(namespace)); err != nil || len(list.Items) == 0 {
			return false
		}
		fault = &list.Items[0]
		return true
	})
	return d, fault, err
}

// Injected sets the status of a fault that has hit node i, like Chaos Mesh.
func (r *Run) Injected(ctx context.Context, fault *unstructured.Unstructured, i int) error {
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	fault.Object["status"] = map[string]any{
		"experiment": map[string]any{"desiredPhase": "Run", "containerRecords": []any{map[string]any{
			"id": namespace + "/" + podName(i), "selectorKey": ".", "phase": "Injected", "injectedCount": int64(1), "recoveredCount": int64(0)}}},
		"conditions": []any{condition("Selected", "True"), condition("AllInjected", "True"), condition("AllRecovered", "False"), condition("Paused", "False")},
	}
	return r.kube.Update(ctx, fault) // PodChaos has no status subresource
}
