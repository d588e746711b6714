package ordergrid

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// refuse makes the API server refuse all objects of the kind in the test's namespace, like an administrator's policy,
// until allow is called. probe is one that it would accept otherwise.
func (b *bench) refuse(resource string, probe client.Object) (allow func()) {
	b.t.Helper()
	group := probe.GetObjectKind().GroupVersionKind().Group
	name := b.namespace + "-" + resource
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}},
		},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "frozen by the network team"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	for _, o := range []client.Object{policy, binding} {
		if err := b.client.Create(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = b.client.Delete(context.Background(), o) })
	}
	refused := func(ctx context.Context) bool {
		return apierrors.IsInvalid(b.client.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll))
	}
	eventually(b.t, "the policy is in force", refused)
	return func() {
		b.t.Helper()
		if err := b.client.Delete(b.t.Context(), binding); err != nil {
			b.t.Fatal(err)
		}
		eventually(b.t, "the policy is gone", func(ctx context.Context) bool { return !refused(ctx) })
	}
}

// TestFailingStepStopsNoOther: an object that the API server refuses blocks nothing else. A pod on a lost Kubernetes
// node is replaced, changes of spec reach the records, and status has the failure.
func TestFailingStepStopsNoOther(t *testing.T) {
	for _, test := range []struct {
		resource string
		probe    func(namespace string) client.Object
		restrict bool   // with the policy of spec.security.networkPolicy
		gone     string // an object that the operator has to recreate
		failed   string // step
	}{
		{"networkpolicies", func(ns string) client.Object {
			return &networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}}
		}, true, "", "network policy"},
		{"poddisruptionbudgets", func(ns string) client.Object {
			return &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}}
		}, false, "rtd-s0", "shards"},
		{"rolebindings", func(ns string) client.Object {
			return &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "none"}}
		}, false, "rtd-s0", "shards"},
	} {
		t.Run(test.resource, func(t *testing.T) {
			l := newLosing(t)
			probe := test.probe(l.namespace)
			l.lose(t)
			l.takeOver(t)
			allow := l.refuse(test.resource, probe)
			if test.gone != "" {
				object := test.probe(l.namespace)
				object.SetName(test.gone)
				if err := l.client.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if test.restrict {
				l.grid.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted
			}
			l.grid.Spec.MinInSync = 2
			l.update(l.grid)
			l.clock.SetTime(l.lostAt.Add(time.Minute))
			l.runExpectingError(l.grid)

			if !l.gone(1) || l.gone(0) {
				t.Errorf("rtd-s0-1 gone: %v, rtd-s0-0: %v; the one on the lost node is to be deleted", l.gone(1), l.gone(0))
			}
			if n := l.partition(l.grid, 0, 1).Spec.MinInSync; n != 2 {
				t.Errorf("spec.minInSync of a record is %d, want 2 as in spec", n)
			}
			if l.grid.Status.ObservedGeneration != l.grid.Generation {
				t.Errorf("status is of generation %d, want %d", l.grid.Status.ObservedGeneration, l.grid.Generation)
			}
			l.wantCondition(l.grid, api.ConditionStalled, metav1.ConditionTrue, reasonApplyRefused, "frozen by the network team")
			l.wantCondition(l.grid, api.ConditionStalled, metav1.ConditionTrue, reasonApplyRefused, "Failed: "+test.failed)
			l.wantEvent("Warning ApplyRefused apply " + probe.GetObjectKind().GroupVersionKind().Kind)

			allow()
			l.run(l.grid)
			l.wantCondition(l.grid, api.ConditionStalled, metav1.ConditionFalse, reasonAsExpected, "")
			l.wantNoWrites(l.grid, "the refused object is created")
		})
	}
}

// TestUpdateWhileAnObjectIsRefused: pods are replaced although an object that they do not need is refused, but not
// while their disruption budget cannot be applied.
func TestUpdateWhileAnObjectIsRefused(t *testing.T) {
	probe := &networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}}
	budget := &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}}
	for _, test := range []struct {
		resource string
		probe    client.Object
		goes     bool
	}{{"networkpolicies", probe, true}, {"poddisruptionbudgets", budget, false}} {
		t.Run(test.resource, func(t *testing.T) {
			r := newRolling(t)
			r.grid.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted
			r.grid.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"restarted":"1"}}}`)
			r.update(r.grid)
			object := test.probe.DeepCopyObject().(client.Object)
			object.SetNamespace(r.namespace)
			object.SetName("probe")
			r.refuse(test.resource, object)
			object.SetName("rtd-s0")
			if err := r.client.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			r.runExpectingError(r.grid)
			if !test.goes {
				r.revision("rev1")
				r.runExpectingError(r.grid)
				if r.gone(0) || r.gone(1) {
					t.Error("a pod was evicted past its disruption budget")
				}
				r.wantCondition(r.grid, api.ConditionStalled, metav1.ConditionTrue, reasonApplyRefused, "not done because of that: update")
				return
			}
			r.revision("rev2")
			r.clock.SetTime(r.clock.Now().Add(time.Minute))
			r.runExpectingError(r.grid)
			if r.gone(0) == r.gone(1) {
				t.Errorf("rtd-s0-0 gone: %v, rtd-s0-1: %v; one of them is to be replaced", r.gone(0), r.gone(1))
			}
		})
	}
}

// TestNewShardWaitsForItsGuards: pods of a grid with a NetworkPolicy are not created without it; its other shards are
// reconciled.
func TestNewShardWaitsForItsGuards(t *testing.T) {
	b := newBench(t)
	allow := b.refuse("networkpolicies", &networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"}})
	grid := b.create("rtd", api.OrderGridSpec{Security: api.SecuritySpec{NetworkPolicy: api.NetworkPolicySpec{Type: api.NetworkPolicyRestricted}}})
	b.runExpectingError(grid)
	if grid.Status.Shards != 0 || len(grid.Status.Partitions) != 2 {
		t.Errorf("%d StatefulSets and %d records without the NetworkPolicy, want none and 2", grid.Status.Shards, len(grid.Status.Partitions))
	}
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled)
	if c == nil || c.Reason != reasonApplyRefused || !strings.Contains(c.Message, "Failed: network policy, shards") {
		t.Errorf("condition %+v", c)
	}
	allow()
	b.run(grid)
	b.wantObjects(grid)
}

// intercepted is a client of the API server some of whose calls fail.
func (b *bench) intercepted(funcs interceptor.Funcs) client.Client {
	b.t.Helper()
	real, err := client.NewWithWatch(envtest.Config(b.t), client.Options{Scheme: envtest.Scheme()})
	if err != nil {
		b.t.Fatal(err)
	}
	return interceptor.NewClient(real, funcs)
}

// TestFailureThatMayBeOverSoon: a failure that does not require action yet is in status too.
func TestFailureThatMayBeOverSoon(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	well := b.reconcile.Client
	b.reconcile.Client = b.intercepted(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if named, is := o.(interface{ GetKind() string }); is && named.GetKind() == "Service" {
			return apierrors.NewInternalError(errors.New("failed calling webhook: no endpoints available"))
		}
		return c.Apply(ctx, o, opts...)
	}})
	b.runExpectingError(grid)
	if len(grid.Status.Partitions) != 2 || grid.Status.Shards != 0 {
		t.Errorf("%d records and %d StatefulSets, want 2 and none: their Service is missing", len(grid.Status.Partitions), grid.Status.Shards)
	}
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionUnknown, reasonStepFailed, "failed calling webhook", "Failed: client Service, shards; not done because of that: update")
	b.wantEvent("Warning StepFailed apply Service")
	b.reconcile.Client = well
	b.run(grid)
	b.wantObjects(grid)
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionFalse, reasonAsExpected)
}

// TestInquiryThatFails: it is unknown who holds what, so no step depends on it, and its conditions stay.
func TestInquiryThatFails(t *testing.T) {
	b, grid := pairInTrouble(t)
	b.reconcile.Live = b.intercepted(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*corev1.Pod); is {
			return apierrors.NewInternalError(errors.New("etcd is busy"))
		}
		return c.Get(ctx, key, o, opts...)
	}})
	for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
		if err := b.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: pod}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	before := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionDataLossSuspected).DeepCopy()
	grid.Spec.MinInSync = 2
	b.update(grid)
	b.runExpectingError(grid)
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionUnknown, reasonStepFailed, "etcd is busy", "Failed: inquiry")
	b.wantCondition(grid, api.ConditionDataLossSuspected, before.Status, before.Reason, before.Message)
	if n := b.partition(grid, 0, 0).Spec.MinInSync; n != 1 {
		t.Errorf("spec.minInSync of a record is %d although it is not known who holds it", n)
	}
	b.reconcile.Live = b.client
	b.run(grid)
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionFalse, reasonAsExpected)
}

// TestBrokenOverlayOfAGridThatRuns: it keeps its template, and is reconciled otherwise.
func TestBrokenOverlayOfAGridThatRuns(t *testing.T) {
	l := newLosing(t)
	l.lose(t)
	l.takeOver(t)
	before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: l.namespace}}
	l.get(before)
	l.grid.Spec.PodTemplate = raw(`{"spec":{"serviceAccountName":"admin"}}`)
	l.grid.Spec.MinInSync = 2
	l.update(l.grid)
	l.clock.SetTime(l.lostAt.Add(time.Minute))
	l.run(l.grid)
	l.wantCondition(l.grid, api.ConditionStalled, metav1.ConditionTrue, reasonPodTemplateInvalid, `"admin" would replace "rtd-s0"`, "Failed: pod template")
	if !l.gone(1) || l.gone(0) || l.partition(l.grid, 0, 0).Spec.MinInSync != 2 {
		t.Errorf("rtd-s0-1 gone: %v, rtd-s0-0: %v, spec.minInSync of a record %d", l.gone(1), l.gone(0), l.partition(l.grid, 0, 0).Spec.MinInSync)
	}
	after := before.DeepCopy()
	if l.get(after); !equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		t.Errorf("the StatefulSet was changed:\n%+v\nfrom\n%+v", after.Spec, before.Spec)
	}
	l.run(l.grid)
	l.wantNoWrites(l.grid, "the overlay is still broken")
}
