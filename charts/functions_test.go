package charts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// callFunction has a grid call a function and end it: with the chart's rights the operator reads the module, copies it,
// writes status, and removes the copy.
func callFunction(t *testing.T, cl client.Client) {
	t.Helper()
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "default"} }
	grid := &api.OrderGrid{ObjectMeta: at("audited"), Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept},
		Callbacks: &api.CallbacksSpec{Post: []api.CallbackReference{{Name: "audit"}}}}}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: at("modules"), BinaryData: map[string][]byte{"audit.wasm": examples.AuditTrail}},
		&api.GridFunction{ObjectMeta: at("audit"), Spec: api.GridFunctionSpec{Kind: api.FunctionPost,
			Module: api.FunctionModule{ConfigMap: &api.ConfigMapFile{Name: "modules", Key: "audit.wasm"}, SHA256: fmt.Sprintf("%x", sha256.Sum256(examples.AuditTrail))}}},
		grid,
	} {
		if err := cl.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	set := &appsv1.StatefulSet{}
	given := func(what string, want bool) {
		t.Helper()
		envtest.Eventually(t, "the operator, with the chart's rights, has "+what, func(ctx context.Context) error {
			if err := cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "audited-s0"}, set); err != nil {
				return err
			}
			if args := set.Spec.Template.Spec.Containers[0].Args; slices.Contains(args, "--function-post") != want {
				return fmt.Errorf("arguments %v", args)
			}
			return nil
		})
	}
	given("given the function to the pods", true)
	serve(t, cl, grid)
	if err := cl.Patch(t.Context(), grid, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"callbacks":null}}`))); err != nil {
		t.Fatal(err)
	}
	given("taken the function from the pods", false)
	for ordinal := range grid.Spec.Replicas { // like the StatefulSet controller
		pod := &corev1.Pod{ObjectMeta: at(api.PodName(grid.Name, 0, ordinal))}
		if err := cl.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		pod = &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		pod.Name, pod.Namespace = api.PodName(grid.Name, 0, ordinal), "default"
		if err := cl.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	envtest.Eventually(t, "the operator, with the chart's rights, has removed the grid's copies", func(ctx context.Context) error {
		var all corev1.ConfigMapList
		if err := cl.List(ctx, &all, client.InNamespace("default")); err != nil {
			return err
		}
		for i := range all.Items {
			if name := all.Items[i].Name; strings.HasPrefix(name, "audited.function") {
				return fmt.Errorf("ConfigMap %s is there", name)
			}
		}
		return nil
	})
}
