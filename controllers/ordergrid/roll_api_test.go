package ordergrid

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// rolling is a healthy pair on the API server; the test plays StatefulSet and disruption controller.
type rolling struct {
	*bench
	grid *api.OrderGrid
}

// newRolling has no third copy while pods are replaced.
func newRolling(t *testing.T) *rolling { return newRollingWith(t, 0) }

func newRollingWith(t *testing.T, surge int32) *rolling {
	r := &rolling{bench: newBench(t)}
	r.grid = r.create("rtd", api.OrderGridSpec{UpdateStrategy: api.UpdateStrategySpec{Surge: ptr.To(surge)}})
	r.run(r.grid)
	r.play(r.grid)
	r.revision("rev1")
	r.label(0, "rev1")
	r.label(1, "rev1")
	r.budget(1)
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	return r
}

// revision plays the StatefulSet controller for the present template.
func (r *rolling) revision(name string) {
	r.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: r.namespace}}
	r.get(set)
	set.Status.ObservedGeneration, set.Status.UpdateRevision = set.Generation, name
	if err := r.client.Status().Update(r.t.Context(), set); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rolling) label(ordinal int32, revision string) {
	r.t.Helper()
	pod := r.pod(ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	if err := r.client.Update(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning // the budget is not consulted for a pod that is not running
	if err := r.client.Status().Update(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rolling) pod(ordinal int32) *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName("rtd", 0, ordinal), Namespace: r.namespace}}
	r.get(pod)
	return pod
}

func (r *rolling) gone(ordinal int32) bool {
	return apierrors.IsNotFound(r.client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: api.PodName("rtd", 0, ordinal)}, &corev1.Pod{}))
}

// budget sets what the disruption controller allows.
func (r *rolling) budget(allowed int32) {
	r.t.Helper()
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: r.namespace}}
	r.get(pdb)
	pdb.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: pdb.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 2}
	if err := r.client.Status().Update(r.t.Context(), pdb); err != nil {
		r.t.Fatal(err)
	}
}

// change sets another template.
func (r *rolling) change(restarted string) {
	r.t.Helper()
	r.grid.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"restarted":"` + restarted + `"}}}`)
	r.update(r.grid)
	r.run(r.grid)
}

// back is the replaced pod, in sync again.
func (r *rolling) back(ordinal int32, revision, boot string) {
	r.t.Helper()
	r.startPod(r.grid, 0, ordinal)
	r.label(ordinal, revision)
	m := incarnation(r.grid, 0, ordinal, boot)
	for index := range int32(2) {
		p := r.partition(r.grid, 0, index)
		others := slices.DeleteFunc(slices.Clone(p.Status.InSync), func(o api.Member) bool { return o.PodName == m.PodName })
		primary := *p.Status.Primary
		if primary.PodName == m.PodName {
			primary = others[0]
		}
		for i, inSync := range [][]api.Member{others, append(slices.Clone(others), m)} { // it left, and joined
			p = r.partition(r.grid, 0, index)
			p.Status.Epoch, p.Status.ChangeID, p.Status.Primary, p.Status.InSync = p.Status.Epoch+1, boot+string(rune('a'+i)), &primary, inSync
			if err := r.asPod(r.grid, 0).Status().Update(r.t.Context(), p); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

func evictions(writes []string) (n int) {
	for _, w := range writes {
		if strings.HasSuffix(w, "/eviction") {
			n++
		}
	}
	return n
}

// TestRollingUpdate replaces both pods of a pair, one after the other, and then writes nothing.
func TestRollingUpdate(t *testing.T) {
	r := newRolling(t)
	r.change("once")
	if writes := r.run(r.grid); evictions(writes) != 0 {
		t.Errorf("the StatefulSet controller has not seen the template yet: %v", writes)
	}
	r.revision("rev2")
	if writes := r.run(r.grid); evictions(writes) != 1 || !r.gone(1) || r.gone(0) {
		t.Fatalf("writes %v; rtd-s0-1 is to be replaced, and only that", writes)
	}
	r.wantEvent("Normal ReplacingPod replacing pod rtd-s0-1 by one of the present template, 0 of 2 pods run it already")
	r.wantConditions(r.grid, "False/PrimaryNotReady False/CopiesMissing True/Updating False/AsExpected") // take-overs are not played
	if writes := r.run(r.grid); evictions(writes) != 0 || r.gone(0) {
		t.Fatalf("writes %v while a copy is missing", writes)
	}

	r.back(1, "rev2", "00000000000000b1")
	r.budget(0) // the disruption controller is slow, or a node is being drained
	if writes := r.run(r.grid); evictions(writes) != 1 || r.gone(0) || r.again == 0 {
		t.Fatalf("writes %v, reconciles again after %v; the budget refuses", writes, r.again)
	}
	r.budget(1)
	if writes := r.run(r.grid); evictions(writes) != 1 || !r.gone(0) {
		t.Fatalf("writes %v; rtd-s0-0 is to be replaced", writes)
	}
	r.back(0, "rev2", "00000000000000b0")
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	if r.grid.Status.Pods != 2 || r.grid.Status.UpdatedPods != 2 {
		t.Errorf("status %+v", r.grid.Status)
	}
	r.wantNoWrites(r.grid, "every pod runs the present template")
}

// TestUpdateThatIsNotWanted: nothing is evicted against the update strategy.
func TestUpdateThatIsNotWanted(t *testing.T) {
	r := newRolling(t)
	r.grid.Spec.UpdateStrategy.Type = api.UpdateOnDelete
	r.change("once")
	r.revision("rev2")
	if writes := r.run(r.grid); evictions(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/PodsOutdated False/AsExpected")

	r.grid.Spec.UpdateStrategy.Type = api.UpdatePaused
	r.update(r.grid)
	if writes := r.run(r.grid); evictions(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/Updating False/AsExpected")
}
