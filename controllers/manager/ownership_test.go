package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// Field ownership on a real API server: the operator applies the fields it sets and no others.

// gridOf has the running operators create a grid that serves.
func (b *bench) gridOf(spec api.OrderGridSpec) *api.OrderGrid {
	b.t.Helper()
	spec.Security.Insecure = api.InsecureAccept
	grid := &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: spec}
	b.create(grid)
	b.until(grid, "the grid has its objects", func() bool { return grid.Status.Shards == grid.Spec.Shards })
	envtest.Serve(b.t, b.client, grid)
	b.serves(grid)
	return grid
}

func (b *bench) serves(grid *api.OrderGrid) {
	b.t.Helper()
	b.until(grid, "the grid serves", func() bool {
		return grid.Status.ReadyShards == grid.Spec.Shards && is(grid.Status.Conditions, api.ConditionRedundant) && !is(grid.Status.Conditions, api.ConditionProgressing)
	})
	b.quiet()
}

// applyAs applies with another field manager, as GitOps tools and other operators do.
func (b *bench) applyAs(manager string, kind schema.GroupVersionKind, name string, content map[string]any) {
	b.t.Helper()
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	u.SetNamespace(b.namespace)
	if err := b.client.Apply(b.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager)); err != nil {
		b.t.Fatalf("%s applies %s %s: %v", manager, kind.Kind, name, err)
	}
}

var (
	serviceKind   = corev1.SchemeGroupVersion.WithKind("Service")
	setKind       = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	partitionKind = api.GroupVersion.WithKind("GridPartition")
)

// TestOthersFields: labels, annotations and fields that others apply to the operator's objects stay, with no changes
// and when the operator applies the same object again.
func TestOthersFields(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	grid := b.gridOf(api.OrderGridSpec{})
	marks := func() map[string]any {
		return map[string]any{"labels": map[string]any{"desk": "emea"}, "annotations": map[string]any{"example.com/note": "theirs"}}
	}
	b.applyAs("gitops", serviceKind, "rtd-client", map[string]any{"metadata": marks(), "spec": map[string]any{"sessionAffinity": "ClientIP"}})
	b.applyAs("gitops", setKind, "rtd-s0", map[string]any{"metadata": marks(), "spec": map[string]any{"minReadySeconds": int64(3)}})
	b.applyAs("gitops", partitionKind, "rtd-p0", map[string]any{"metadata": marks()})
	b.requests.Forget()
	b.quiet()
	b.wantOnlyReads("others have applied fields of their own")

	grid.Spec.Memory = resource.MustParse("2Gi") // a new template
	b.patch(grid, `{"spec":{"memory":"2Gi"}}`)
	set := &appsv1.StatefulSet{ObjectMeta: b.meta("rtd-s0")}
	b.until(set, "the operator has applied the StatefulSet again", func() bool { return set.Generation > 2 || strings.Contains(fmt.Sprint(set.Spec.Template), "2Gi") })
	b.quiet()
	for _, o := range []client.Object{set, &corev1.Service{ObjectMeta: b.meta("rtd-client")}, &api.GridPartition{ObjectMeta: b.meta("rtd-p0")}} {
		b.there("the object", o)
		if o.GetLabels()["desk"] != "emea" || o.GetAnnotations()["example.com/note"] != "theirs" {
			t.Errorf("%T: labels %v, annotations %v: foreign fields are gone", o, o.GetLabels(), o.GetAnnotations())
		}
		if o.GetLabels()[api.LabelGrid] != "rtd" {
			t.Errorf("%T: labels %v: the operator's are gone", o, o.GetLabels())
		}
	}
	if set.Spec.MinReadySeconds != 3 {
		t.Errorf("minReadySeconds is %d: the foreign value is gone", set.Spec.MinReadySeconds)
	}
}

// wantOnlyReads: nothing was written since forget.
func (b *bench) wantOnlyReads(when string) {
	b.t.Helper()
	for _, request := range b.requests.All() {
		if !strings.HasPrefix(request, "GET ") {
			b.t.Errorf("%s, and the operator wrote: %s", when, request)
		}
	}
}

// writesOf are the writes since forget, except those of the grid's status and events.
func (b *bench) writesOf() (list []string) {
	for _, request := range b.requests.All() {
		if !strings.HasPrefix(request, "GET ") && !strings.Contains(request, "/ordergrids/") && !strings.Contains(request, "/events") {
			list = append(list, request)
		}
	}
	return list
}

// TestEditedField: a user's change of the operator's own fields, by kubectl edit, apply --force-conflicts or kubectl
// scale of a StatefulSet, is reverted by one write, and then no more writes follow.
func TestEditedField(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	b.gridOf(api.OrderGridSpec{})
	set := func() *appsv1.StatefulSet { return &appsv1.StatefulSet{ObjectMeta: b.meta("rtd-s0")} }
	for _, test := range []struct {
		name   string
		change func()
		right  func(*appsv1.StatefulSet) bool
	}{
		{"kubectl edit", func() {
			o := set()
			b.there("the StatefulSet", o)
			o.Spec.Template.Spec.Containers[0].Image = "other:1"
			if err := b.client.Update(t.Context(), o, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
		}, func(o *appsv1.StatefulSet) bool { return o.Spec.Template.Spec.Containers[0].Image == "grid-node:test" }},
		{"kubectl scale", func() {
			if err := b.client.SubResource("scale").Patch(t.Context(), set(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("kubectl")); err != nil {
				t.Fatal(err)
			}
		}, func(o *appsv1.StatefulSet) bool { return ptr.Deref(o.Spec.Replicas, 0) == 2 }},
		{"kubectl apply --force-conflicts", func() {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(5)}}}
			u.SetGroupVersionKind(setKind)
			u.SetName("rtd-s0")
			u.SetNamespace(b.namespace)
			if err := b.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("gitops"), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}, func(o *appsv1.StatefulSet) bool { return ptr.Deref(o.Spec.Replicas, 0) == 2 }},
		{"a label that selects", func() { b.patch(set(), `{"metadata":{"labels":{"ordergrid.dev/shard":"7"}}}`) },
			func(o *appsv1.StatefulSet) bool { return o.Labels[api.LabelShard] == "0" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.requests.Forget()
			test.change()
			o := set()
			b.until(o, "the change is reverted", func() bool { return test.right(o) })
			b.quiet()
			if writes := b.writesOf(); len(writes) != 1 {
				t.Errorf("%d writes, want 1:\n%s", len(writes), strings.Join(writes, "\n"))
			}
		})
	}
	// The other manager no longer owns a value of its own: there is no conflict left.
	if _, err := owned(b, set(), "gitops", "f:replicas"); err == nil {
		t.Error("gitops still owns spec.replicas")
	}
}

// owned returns the entry of a field manager that holds a field of that name anywhere.
func owned(b *bench, o client.Object, manager, field string) (metav1.ManagedFieldsEntry, error) {
	b.t.Helper()
	b.there("the object", o)
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == manager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.String(), `"`+field+`"`) {
			return entry, nil
		}
	}
	return metav1.ManagedFieldsEntry{}, fmt.Errorf("%s owns no %s", manager, field)
}

// TestSpecIsNotWritten: the operator writes status of an OrderGrid and nothing else of it, so that kubectl scale, an
// autoscaler or GitOps never share a field with it.
func TestSpecIsNotWritten(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	b.steady()
	for _, o := range []client.Object{&api.OrderGrid{ObjectMeta: b.meta("rtd")}, &api.OrderProbe{ObjectMeta: b.meta("pair")}} {
		b.there("the object", o)
		i := slices.IndexFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == apply.FieldOwner })
		if i < 0 {
			t.Errorf("%T: the operator owns nothing of it: %v", o, o.GetManagedFields())
		}
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == apply.FieldOwner && entry.Subresource != "status" {
				t.Errorf("%T: the operator owns %s", o, entry.FieldsV1)
			}
		}
	}
}

// TestOverlayIsStill: an overlay whose values Kubernetes normalizes, or adds defaults to, is applied once.
func TestOverlayIsStill(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	b.gridOf(api.OrderGridSpec{PodTemplate: &runtime.RawExtension{Raw: []byte(`{
		"metadata": {"annotations": {"example.com/empty": ""}, "labels": {}},
		"spec": {
			"containers": [
				{"name": "grid-node", "env": [{"name": "EMPTY", "value": ""}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
				{"name": "sidecar", "image": "sidecar:1", "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi", "ephemeral-storage": "1e9"}, "limits": {"memory": "2000000Ki"}},
				 "ports": [{"containerPort": 9000}], "livenessProbe": {"tcpSocket": {"port": 9000}}, "securityContext": {}}],
			"initContainers": [{"name": "first", "image": "first:1", "command": []}],
			"volumes": [{"name": "none", "emptyDir": {}}, {"name": "map", "configMap": {"name": "x"}}],
			"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": null}],
			"topologySpreadConstraints": [], "imagePullSecrets": [{"name": "pull"}], "priorityClassName": ""
		}}`)}})
	for n := range 3 {
		b.requests.Forget()
		b.wake("ordergrid", 1, func() { b.touch(&corev1.Pod{ObjectMeta: b.meta("rtd-s0-0")}, n) })
		b.wantOnlyReads("nothing has changed")
	}
}

// TestRestartInTrouble: the times at which conditions changed survive the operator, also of a degraded grid.
func TestRestartInTrouble(t *testing.T) {
	b := newBench(t)
	stop := b.operator()
	grid := b.gridOf(api.OrderGridSpec{})
	b.patch(grid, `{"spec":{"podTemplate":{"spec":{"serviceAccountName":"admin"}}}}`)
	b.until(grid, "the grid is degraded", func() bool { return is(grid.Status.Conditions, api.ConditionStalled) })
	times := func() string {
		b.there("the grid", grid)
		var out []string
		for _, c := range grid.Status.Conditions {
			out = append(out, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC()))
		}
		return strings.Join(out, "\n")
	}
	before := times()
	stop()
	defer b.operator()()
	for n := range 3 {
		b.wake("ordergrid", 1, func() { b.touch(&corev1.Pod{ObjectMeta: b.meta("rtd-s0-1")}, n) })
	}
	if after := times(); after != before {
		t.Errorf("conditions before the restart\n%s\nand after it\n%s", before, after)
	}
}
