package ordergrid

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// surgingPair is a pair on the API server whose pods are replaced with a third copy beside them. The test plays StatefulSet,
// scheduler, disruption controller and grid nodes.
type surgingPair struct {
	*rolling
	boots map[int32]string
}

func newSurging(t *testing.T) *surgingPair {
	return &surgingPair{newRollingWith(t, 1), map[int32]string{}}
}

// inSync plays the grid nodes: exactly these are in sync, one change at a time. One that leaves has handed over.
func (s *surgingPair) inSync(ordinals ...int32) {
	s.t.Helper()
	for index := range int32(2) {
		p := s.partition(s.grid, 0, index)
		var members []api.Member
		for _, ordinal := range ordinals {
			boot := s.boots[ordinal]
			if boot == "" {
				boot = "0123456789abcdef"
			}
			members = append(members, incarnation(s.grid, 0, ordinal, boot))
		}
		primary := *p.Status.Primary
		if !slices.Contains(members, primary) {
			primary = members[0]
		}
		p.Status.Epoch, p.Status.ChangeID, p.Status.Primary, p.Status.InSync = p.Status.Epoch+1, fmt.Sprint("surge-", p.Status.Epoch), &primary, members
		if err := s.asPod(s.grid, 0).Status().Update(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
}

// restart restarts the pod of an ordinal.
func (s *surgingPair) restart(ordinal int32, revision string) {
	s.t.Helper()
	s.boots[ordinal] = fmt.Sprintf("00000000000000b%d", ordinal)
	s.startPod(s.grid, 0, ordinal)
	s.label(ordinal, revision)
}

// unplaced plays the scheduler for a pod that no Kubernetes node has room for.
func (s *surgingPair) unplaced(ordinal int32) *corev1.Pod {
	s.t.Helper()
	pod := s.pod(ordinal)
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
	if err := s.client.Status().Update(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
	return pod
}

// pass reconciles once, by an operator with an empty memory, and returns the pods it evicted. No pod is evicted unless
// two others hold every order.
func (s *surgingPair) pass() (evicted []int32) {
	s.t.Helper()
	before := map[int32][]api.Member{}
	for index := range int32(2) {
		before[index] = s.partition(s.grid, 0, index).Status.InSync
	}
	r := s.reconcile
	s.reconcile = &Reconciler{Client: r.Client, Live: r.Live, Recorder: r.Recorder, Nodes: r.Nodes, KubeNodes: r.KubeNodes, Clock: r.Clock, Defaults: r.Defaults}
	for _, write := range s.run(s.grid) {
		pod, is := strings.CutSuffix(write, "/eviction")
		if !is {
			continue
		}
		ordinal := int32(pod[len(pod)-1] - '0')
		if !s.gone(ordinal) {
			continue // the budget refused
		}
		evicted = append(evicted, ordinal)
		for index, members := range before {
			if left := slices.DeleteFunc(slices.Clone(members), func(m api.Member) bool { return m.PodName == api.PodName("rtd", 0, ordinal) }); len(left) < 2 && s.grid.Spec.UpdateStrategy.WithoutRoom == api.WithoutRoomWait {
				s.t.Errorf("rtd-s0-%d is evicted, and leaves %d copies of partition %d", ordinal, len(left), index)
			}
		}
	}
	return evicted
}

// want compares the state of the shard: as for resizing, and the ready pods that an eviction must leave.
func (s *surgingPair) want(want string, evicted []int32, gone ...int32) {
	s.t.Helper()
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: s.namespace}}
	s.get(pdb)
	got := "all but one"
	if pdb.Spec.MinAvailable != nil {
		got = "keeps " + pdb.Spec.MinAvailable.String()
	}
	r := &resizing{bench: s.bench, grid: s.grid}
	got = fmt.Sprintf("%d pods, %s", *r.set(0).Spec.Replicas, got)
	for index := range int32(2) {
		p := s.partition(s.grid, 0, index).Spec
		got += fmt.Sprintf("; %d %d", p.Replicas, p.MaxInSync)
		namesFirst(s.t, 0, &p)
	}
	if got != want || !slices.Equal(evicted, gone) {
		s.t.Fatalf("%s, evicted %v\nwant %s, evicted %v", got, evicted, want, gone)
	}
}

// TestRollingUpdateWithSurge replaces both pods of a pair, with two copies throughout.
func TestRollingUpdateWithSurge(t *testing.T) {
	s := newSurging(t)
	s.want("2 pods, all but one; 2 0; 2 0", nil)
	s.change("once")
	s.revision("rev2")
	s.want("3 pods, keeps 2; 2 0; 2 0", s.pass())
	s.wantEvent("Normal AddingCopy shard 0 gets a third copy, rtd-s0-2, before one of its pods is replaced")
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass()) // the StatefulSet controller has not seen it yet
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating False/AsExpected")

	s.revision("rev2")
	s.restart(2, "rev2")
	s.budget(1)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass()) // it catches up
	s.inSync(0, 1, 2)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass(), 1)
	s.inSync(0, 2) // it handed over before it left
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating False/AsExpected")
	s.restart(1, "rev2")
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.inSync(0, 2, 1)
	s.budget(1)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass(), 0)
	s.inSync(2, 1)
	s.restart(0, "rev2")
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass()) // no pod is outdated any more, and one is not in sync
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating False/AsExpected")

	s.inSync(2, 1, 0)
	s.want("3 pods, keeps 2; 2 0; 2 0", s.pass())
	s.want("3 pods, keeps 2; 2 0; 2 0", s.pass()) // the third is still in sync
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Resizing False/AsExpected")
	s.inSync(1, 0)
	s.pass()
	s.wantEvent("Normal CopyGivenUp shard 0 has 2 copies; no record names the removed pods: rtd-s0-2")
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-2")
	s.revision("rev2")
	s.want("2 pods, all but one; 2 0; 2 0", s.pass())
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	if s.grid.Status.Pods != 2 || s.grid.Status.UpdatedPods != 2 {
		t.Errorf("status %+v", s.grid.Status)
	}
	s.wantNoWrites(s.grid, "every pod runs the present template")
}

// TestSurgeOfATemplateThatNeverWorked: the third pod shows it, and is removed when the change is reverted; no other was
// replaced.
func TestSurgeOfATemplateThatNeverWorked(t *testing.T) {
	s := newSurging(t)
	s.change("once")
	s.revision("rev2")
	s.pass()
	s.pass()
	s.revision("rev2")
	s.restart(2, "rev2")
	s.setReady("rtd-s0-2", corev1.ConditionFalse)
	s.clock.SetTime(s.pod(2).CreationTimestamp.Add(11 * time.Minute))
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating True/UpdateStuck")
	s.change("never")
	s.revision("rev1")
	s.pass()
	s.want("2 pods, all but one; 2 0; 2 0", s.pass())
	if s.gone(0) || s.gone(1) {
		t.Error("a pod was replaced")
	}
}

// TestThirdPodYieldsToTheShardsOwn: in a pool of two Kubernetes nodes one is lost while the third pod waits for room.
// The next place is for the lost pod: the third is removed until that has it.
func TestThirdPodYieldsToTheShardsOwn(t *testing.T) {
	s := newSurging(t)
	s.change("once")
	s.revision("rev2")
	s.pass()
	s.pass()
	s.revision("rev2")
	s.startPod(s.grid, 0, 2)
	s.label(2, "rev2")
	s.unplaced(2)
	for ordinal := range int32(2) {
		s.bind(ordinal, s.node(string('a'+ordinal)))
	}
	s.budget(1)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())

	s.inSync(0)
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-1") // with its Kubernetes node
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass())
	s.restart(1, "rev2")
	s.unplaced(1)
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass())
	s.wantConditions(s.grid, "True/Serving False/CopiesMissing True/Updating False/AsExpected")
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-2")

	s.bind(1, s.node("c"))
	s.setReady("rtd-s0-1", corev1.ConditionTrue)
	s.want("3 pods, keeps 1; 2 3; 2 3", s.pass())
	s.inSync(0, 1)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
}

// TestNoRoomForSurgeOnTheAPIServer: with Wait no pod is replaced and Stalled is set; with Proceed pods are replaced
// without it.
func TestNoRoomForSurgeOnTheAPIServer(t *testing.T) {
	s := newSurging(t)
	s.change("once")
	s.revision("rev2")
	s.pass()
	s.pass()
	s.revision("rev2")
	s.startPod(s.grid, 0, 2)
	s.label(2, "rev2")
	pod := s.unplaced(2)
	s.budget(1)
	s.clock.SetTime(pod.CreationTimestamp.Add(9 * time.Minute))
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating False/AsExpected")
	if s.again != time.Minute {
		t.Errorf("reconciles again after %v", s.again)
	}
	s.clock.SetTime(pod.CreationTimestamp.Add(11 * time.Minute))
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/Updating True/NoRoomForSurge")
	s.wantEvent("Warning NoRoomForSurge no Kubernetes node has room for rtd-s0-2, the third copy required before a pod of shard 0 is replaced (0/2 nodes are available)")

	s.grid.Spec.UpdateStrategy.WithoutRoom = api.WithoutRoomProceed
	if err := s.client.Update(t.Context(), s.grid, client.FieldOwner("person")); err != nil {
		t.Fatal(err)
	}
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass()) // the scheduler would give the third the place of the evicted pod
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-2")
	s.revision("rev2")
	s.budget(1)
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass(), 1)
	s.wantEvent("Normal ReplacingPod replacing pod rtd-s0-1 by one of the present template, 0 of 2 pods run it already; no Kubernetes node has room for a third copy, and orders are on one copy meanwhile")
	s.inSync(0)
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass())
	s.restart(1, "rev2")
	s.inSync(0, 1)
	s.budget(1)
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass(), 0)
	s.inSync(1)
	s.restart(0, "rev2")
	s.inSync(1, 0)
	s.want("2 pods, all but one; 2 0; 2 0", s.pass())
}
