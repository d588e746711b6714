package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// The garbage collector and the StatefulSet controller are Kubernetes' own here.
func (b *bench) withKubernetes() {
	b.t.Helper()
	envtest.Controllers(b.t, "statefulset-controller", "garbage-collector-controller")
}

// gridOfKubernetes is gridOf where StatefulSets make their pods.
func (b *bench) gridOfKubernetes() *api.OrderGrid {
	b.t.Helper()
	grid := &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	b.create(grid)
	for ordinal := range int32(2) {
		b.there("the StatefulSet controller has made pods", &corev1.Pod{ObjectMeta: b.meta(api.PodName("rtd", 0, ordinal))})
	}
	b.there("the grid", grid)
	envtest.Serve(b.t, b.client, grid)
	b.serves(grid)
	return grid
}

// left lists a grid's objects in the namespace, by kind and name.
func (b *bench) left(ctx context.Context) (names []string, err error) {
	for _, list := range []client.ObjectList{
		&api.OrderGridList{}, &api.GridPartitionList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
		&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &appsv1.ControllerRevisionList{},
	} {
		if err := b.client.List(ctx, list, client.InNamespace(b.namespace)); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			names = append(names, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
		}
	}
	return names, nil
}

// TestDeletionCascades: all objects of a grid are deleted with it, in the background or before the grid itself, and the
// operator does not recreate them meanwhile.
func TestDeletionCascades(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t)
			b.withKubernetes()
			defer b.operator()()
			grid := b.gridOfKubernetes()
			if len(grid.Finalizers) != 0 {
				t.Errorf("finalizers %v: a grid can be deleted without an operator", grid.Finalizers)
			}
			b.quiet() // a pass that is under way finishes its writes
			b.requests.Forget()
			if err := b.client.Delete(t.Context(), grid, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			envtest.Eventually(t, "everything is gone", func(ctx context.Context) error {
				names, err := b.left(ctx)
				if err == nil && len(names) > 0 {
					err = errors.New(strings.Join(names, ", "))
				}
				return err
			})
			b.quiet()
			if writes := b.writesOf(); len(writes) != 0 {
				t.Errorf("the operator wrote:\n%s", strings.Join(writes, "\n"))
			}
			if names, err := b.left(t.Context()); err != nil || len(names) > 0 {
				t.Errorf("objects were recreated: %v, %v", names, err)
			}
		})
	}
}

// TestOrphans: deleting a grid with --cascade=orphan keeps its pods and records, running and without owner. A new grid
// of the same name does not take them over silently.
func TestOrphans(t *testing.T) {
	b := newBench(t)
	b.withKubernetes()
	defer b.operator()()
	grid := b.gridOfKubernetes()
	if err := b.client.Delete(t.Context(), grid, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the grid is gone", func(ctx context.Context) error {
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(grid), grid); err != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it still exists")
	})
	b.quiet()
	record, set := &api.GridPartition{ObjectMeta: b.meta("rtd-p0")}, &appsv1.StatefulSet{ObjectMeta: b.meta("rtd-s0")}
	for _, o := range []client.Object{record, set, &corev1.Pod{ObjectMeta: b.meta("rtd-s0-1")}, &corev1.Service{ObjectMeta: b.meta("rtd-client")}} {
		b.there("the object", o)
		if ref := metav1.GetControllerOf(o); ref != nil && ref.Kind == "OrderGrid" {
			t.Errorf("%T %s still has its grid as owner", o, o.GetName())
		}
		if o.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is being deleted", o, o.GetName())
		}
	}
	if record.Status.Epoch != 2 {
		t.Errorf("epoch of the record is %d", record.Status.Epoch)
	}

	again := &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	b.create(again)
	b.until(again, "the new grid reports that the names are taken", func() bool {
		c := meta.FindStatusCondition(again.Status.Conditions, api.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "NameTaken"
	})
}

// TestInjectedSidecar: pods that admission changes, as a service mesh does, do not count as outdated, and objects that
// admission changes before they are stored are not applied repeatedly.
func TestInjectedSidecar(t *testing.T) {
	b := newBench(t)
	b.withKubernetes()
	b.inject()
	defer b.operator()()
	b.gridOfKubernetes()
	pod := &corev1.Pod{ObjectMeta: b.meta("rtd-s0-0")}
	b.there("the pod", pod)
	if n := len(pod.Spec.Containers); n != 2 || pod.Labels["mesh"] != "on" {
		t.Fatalf("%d containers, labels %v: nothing was injected, so this test proves nothing", n, pod.Labels)
	}
	versions := b.versions()
	for n := range 3 {
		b.wake("ordergrid", 1, func() {
			b.touch(pod, n)
			versions = b.versions()
		})
		b.wantOnlyReads("admission has changed pods")
		if after := b.versions(); after != versions {
			t.Errorf("objects were\n%s\nand are\n%s", versions, after)
		}
	}
}

// inject makes the API server add a container and a label to every pod of the namespace.
func (b *bench) inject() {
	b.t.Helper()
	name := "mesh-" + b.namespace
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"mesh": "on"}},
					spec: Object.spec{containers: [Object.spec.containers{name: "mesh", image: "mesh:1"}]}}`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	for _, o := range []client.Object{policy, binding} {
		b.create(o)
		b.t.Cleanup(func() { _ = b.client.Delete(context.Background(), o) })
	}
	envtest.Eventually(b.t, "the API server injects", func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: b.meta("try"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}}}
		if err := b.client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if len(pod.Spec.Containers) != 2 {
			return errors.New("one container")
		}
		return nil
	})
}
