package ordergrid

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// node creates a Kubernetes node.
func (s *surgingPair) node(name string) *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + s.namespace}}
	if err := s.client.Create(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.client.Delete(s.t.Context(), n) })
	return n
}

// bind plays the scheduler.
func (s *surgingPair) bind(ordinal int32, node *corev1.Node) {
	s.t.Helper()
	b := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
	if err := s.client.SubResource("binding").Create(s.t.Context(), s.pod(ordinal), b); err != nil {
		s.t.Fatal(err)
	}
}

// drain evicts a pod, as kubectl drain does.
func (s *surgingPair) drain(ordinal int32) error {
	pod := s.pod(ordinal)
	return s.client.SubResource("eviction").Create(s.t.Context(), pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

// judged is the reason of a condition, and its message.
func (s *surgingPair) judged(condition string) (reason, message string) {
	c := meta.FindStatusCondition(s.grid.Status.Conditions, condition)
	return c.Reason, c.Message
}

// TestDrainOfAPair: the budget allows no eviction from a whole pair. When a Kubernetes node is cordoned a third copy is
// added, and with it the drain continues; when the pod is back the budget is closed before the third is removed.
func TestDrainOfAPair(t *testing.T) {
	s := newSurging(t)
	a, b, c := s.node("a"), s.node("b"), s.node("c")
	s.bind(0, a)
	s.bind(1, b)
	s.reconcile.KubeNodes = s.client
	s.want("2 pods, keeps 2; 2 0; 2 0", s.pass())
	s.budget(0)
	if err := s.drain(0); !apierrors.IsTooManyRequests(err) {
		t.Fatalf("a pod of a pair is evicted: %v", err)
	}

	a.Spec.Unschedulable = true
	if err := s.client.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.reconcile.gridsOfNode(t.Context(), a), request(s.grid)) {
		t.Error("a cordoned Kubernetes node does not trigger a reconcile of the grid with a pod on it")
	}
	s.want("3 pods, keeps 2; 2 0; 2 0", s.pass())
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	s.wantEvent("Normal AddingCopy shard 0 gets a third copy, rtd-s0-2, before one of its pods is replaced")
	if _, text := s.judged(api.ConditionProgressing); !strings.Contains(text, "because rtd-s0-0 is on "+a.Name+", which is being emptied") {
		t.Error(text)
	}
	s.revision("rev1")
	s.restart(2, "rev1")
	s.bind(2, c)
	s.inSync(0, 1, 2)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass()) // the operator itself evicts no pod
	s.budget(1)
	if err := s.drain(0); err != nil {
		t.Fatal(err)
	}
	s.inSync(1, 2)
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	if reason, text := s.judged(api.ConditionRedundant); reason != reasonFullyInSync {
		t.Error(text)
	}
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-0") // its grace period is over
	s.restart(0, "rev1")
	s.bind(0, s.node("d"))
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())

	s.inSync(1, 2, 0)
	s.want("3 pods, keeps 3; 2 3; 2 3", s.pass())
	s.want("3 pods, keeps 3; 2 3; 2 3", s.pass()) // the disruption controller has not seen it yet
	s.budget(0)
	s.want("3 pods, keeps 3; 2 0; 2 0", s.pass())
	s.inSync(1, 0)
	s.want("2 pods, keeps 3; 2 0; 2 0", s.pass())
	(&resizing{bench: s.bench, grid: s.grid}).deletePod("rtd-s0-2")
	s.revision("rev1")
	s.want("2 pods, keeps 2; 2 0; 2 0", s.pass())
	if reason, text := s.judged(api.ConditionProgressing); reason != reasonSteady {
		t.Error(text)
	}

	s.setReady("rtd-s0-1", corev1.ConditionFalse) // a failure: the remainder must not block giving up the lost pod
	s.want("2 pods, keeps 1; 2 0; 2 0", s.pass())
}

// TestDrainWithoutRoom: where the third copy cannot be placed, the drain waits for manual action.
func TestDrainWithoutRoom(t *testing.T) {
	s := newSurging(t)
	a := s.node("a")
	s.bind(0, a)
	s.bind(1, s.node("b"))
	s.reconcile.KubeNodes = s.client
	a.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	if err := s.client.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.pass()
	s.pass()
	s.startPod(s.grid, 0, 2)
	s.unplaced(2)
	s.clock.SetTime(s.pod(2).CreationTimestamp.Add(11 * time.Minute))
	s.want("3 pods, keeps 2; 2 3; 2 3", s.pass())
	if reason, text := s.judged(api.ConditionStalled); reason != reasonNoRoomForSurge {
		t.Error(text)
	}
	s.grid.Spec.UpdateStrategy.WithoutRoom = api.WithoutRoomProceed
	if err := s.client.Update(t.Context(), s.grid); err != nil {
		t.Fatal(err)
	}
	s.want("2 pods, keeps 1; 2 3; 2 3", s.pass())
	if _, text := s.judged(api.ConditionProgressing); !strings.Contains(text, "orders are on one copy meanwhile") {
		t.Error(text)
	}
}
