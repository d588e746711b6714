package ordergrid

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// regressedPair is a healthy pair whose etcd was restored from a backup that is five epochs old. current is the record
// before that.
func regressedPair(t *testing.T) (b *bench, grid *api.OrderGrid, current *api.GridPartition) {
	t.Helper()
	b = newBench(t)
	grid = b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.run(grid)
	b.play(grid)
	b.run(grid)
	backup := envtest.Save(t, api.GroupVersion.WithResource("gridpartitions").GroupResource(), b.namespace, "rtd-p0")
	current = b.partition(grid, 0, 0)
	for range 5 {
		b.step(grid, current, processOf(grid, 0, 0))
	}
	b.run(grid)
	for i := range int32(2) {
		b.nodes.says(grid, i, "0123456789abcdef", []string{"primary", "learner"}[i], current, b.partition(grid, 0, 1))
	}
	b.nodes.questions()
	backup.Restore(t)
	eventually(t, "the API server shows the restored record", func(context.Context) bool { return b.partition(grid, 0, 0).Status.Epoch == 2 })
	return b, grid, current
}

// step changes the configuration like a grid node: the next epoch, alone.
func (b *bench) step(grid *api.OrderGrid, p *api.GridPartition, m api.Member) {
	b.t.Helper()
	p.Status.Epoch++
	p.Status.ChangeID, p.Status.Primary, p.Status.InSync = fmt.Sprint("step-", p.Status.Epoch), &m, []api.Member{m}
	if err := b.asPod(grid, 0).Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

// TestRecordGoesBack: etcd is restored from a backup under a grid that keeps serving.
func TestRecordGoesBack(t *testing.T) {
	b, grid, current := regressedPair(t)
	b.run(grid)
	command := "kubectl annotate -n " + b.namespace + " gridpartition rtd-p0 ordergrid.dev/reassert-configuration=step-7"
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "1 of 2 partitions show an older configuration", command,
		"rtd-p0 shows epoch 2 (change change-1), but epoch 7 (change step-7) was seen; rtd-s0-0/0123456789abcdef (primary) and rtd-s0-1/0123456789abcdef (learner) use it")
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionFalse, "MembersPresent")
	b.wantEvent("Warning RecordBehind")
	if got := grid.Status.Partitions[0]; got.Problem != "ConfigurationRegressed" || got.Epoch != 2 {
		t.Errorf("mirror %+v", got)
	}
	b.wantNoWrites(grid, "no annotation is set yet")

	// The record's former members are not the ones to be given up.
	p := b.partition(grid, 0, 0)
	b.annotate(p, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	b.wantEvent("Warning AcceptDataLossRefused annotation ordergrid.dev/accept-data-loss is refused and removed: the record has gone back, and epoch 7 is served")

	// Neither an unknown change is accepted, nor one that a later one followed.
	older := current.DeepCopy()
	older.Status.Epoch, older.Status.ChangeID = 6, "step-6"
	b.nodes.says(grid, 1, "0123456789abcdef", "fenced", older, b.partition(grid, 0, 1))
	b.annotate(p, api.AnnotationReassert, "step-6")
	b.run(grid)
	b.wantEvent(`Warning ReassertRefused annotation ordergrid.dev/reassert-configuration is refused and removed: change "step-6" is not the latest that a grid node has, which is step-7`)
	b.annotate(p, api.AnnotationReassert, "step-9")
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationReassert, false)
	b.wantEvent(`Warning ReassertRefused annotation ordergrid.dev/reassert-configuration is refused and removed: change "step-9" is not the latest that a grid node has, which is step-7 at epoch 7`)
	b.nodes.silence(1) // it may have a later one that no other node knows
	b.annotate(p, api.AnnotationReassert, "step-7")
	b.run(grid)
	b.get(p)
	if p.Spec.ReassertChangeID != "" {
		t.Fatalf("with a pod silent: spec %+v", p.Spec)
	}
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "asserting change step-7 waits: a pod of the grid does not answer; delete one that is gone for good")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName("rtd", 0, 1), Namespace: b.namespace}}
	b.get(pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	if err := b.client.Status().Update(t.Context(), pod); err != nil { // its process has ended, and the next is empty
		t.Fatal(err)
	}
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationReassert, true)
	if p.Spec.ReassertChangeID != "step-7" {
		t.Fatalf("spec %+v", p.Spec)
	}
	b.wantEvent("Warning ReassertingConfiguration the configuration of epoch 7, change step-7, is written again")

	// The primary advances, one epoch at a time.
	for p.Status.Epoch < 8 {
		b.run(grid)
		b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "Change step-7 is being written again")
		b.get(p)
		p.Status.Epoch++
		m := processOf(grid, 0, 0)
		p.Status.ChangeID, p.Status.Primary, p.Status.InSync = fmt.Sprint("climb-", p.Status.Epoch), &m, []api.Member{m}
		if err := b.asPod(grid, 0).Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	*current = *p
	b.nodes.says(grid, 0, "0123456789abcdef", "primary", current, b.partition(grid, 0, 1))
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationReassert, false)
	if p.Spec.ReassertChangeID != "" {
		t.Errorf("spec %+v", p.Spec)
	}
	b.wantEvent("Normal ConfigurationReasserted the record is at epoch 8, ahead of change step-7")
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionFalse, "RecordCurrent")
	b.wantEvent("Normal RecordCurrent")
	b.nodes.questions()
	b.wantNoWrites(grid, "the record is ahead again")
	if n := b.nodes.questions(); n != 0 || b.again != 0 {
		t.Errorf("%d queries, again in %v", n, b.again)
	}
}

// TestRecordMadeAgainIsPutRight: the operator queries the nodes about a record that was recreated without its status,
// and has the configuration of the annotation written again. While no node knows one, the message explains how to start
// anew.
func TestRecordMadeAgainIsPutRight(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	first := b.partition(grid, 0, 0)
	if err := b.client.Delete(t.Context(), first.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: first.Namespace, Labels: first.Labels, OwnerReferences: first.OwnerReferences, Annotations: first.Annotations}, Spec: first.Spec}
	if err := b.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "rtd-p0 was deleted and recreated without its status", "Wait until all its pods answer")
	unknown := p.DeepCopy()
	for i := range int32(2) {
		b.nodes.says(grid, i, "0123456789abcdef", "claiming", unknown, b.partition(grid, 0, 1))
	}
	b.run(grid)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "kubectl annotate --overwrite -n "+b.namespace+" gridpartition rtd-p0 ordergrid.dev/record="+string(p.UID))
	if got := grid.Status.Partitions[0]; got.Problem != "ConfigurationRegressed" || b.again == 0 {
		t.Errorf("mirror %+v, again in %v", got, b.again)
	}

	b.nodes.says(grid, 0, "0123456789abcdef", "primary", first, b.partition(grid, 0, 1))
	b.run(grid)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "rtd-p0 shows epoch 0 (change none), but epoch 2 (change change-1) was seen",
		"kubectl annotate -n "+b.namespace+" gridpartition rtd-p0 ordergrid.dev/reassert-configuration=change-1")
	b.annotate(p, api.AnnotationReassert, "change-1")
	b.run(grid)
	b.get(p)
	if p.Spec.ReassertChangeID != "change-1" {
		t.Fatalf("spec %+v", p.Spec)
	}
	b.wantEvent("Warning ReassertingConfiguration the configuration of epoch 2, change change-1, is written again")
	for p.Status.Epoch < 3 {
		b.get(p)
		if p.Status.Epoch == 0 {
			p.Status.Lineage = 1
		}
		b.step(grid, p, processOf(grid, 0, 0))
		b.nodes.says(grid, 0, "0123456789abcdef", "primary", map[bool]*api.GridPartition{true: first, false: p}[p.Status.Epoch < 3], b.partition(grid, 0, 1))
		b.run(grid)
	}
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionFalse, "RecordCurrent")
	b.wantAnnotation(p, api.AnnotationReassert, false)
}

// TestNodesKnowBetterThanANewOperator: an operator that has just started uses the nodes' reports.
func TestNodesKnowBetterThanANewOperator(t *testing.T) {
	b, grid, _ := regressedPair(t)
	b.reconcile.memory = memory{}
	b.run(grid)
	if n := b.nodes.questions(); n != 2 {
		t.Errorf("%d queries for 2 pods", n)
	}
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "epoch 7 (change step-7) was seen; rtd-s0-0/0123456789abcdef (primary)")
}

// TestMembersOfOldAreNotLost: the restored record names processes that no longer exist. The present ones hold the
// orders.
func TestMembersOfOldAreNotLost(t *testing.T) {
	b, grid, current := regressedPair(t)
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, []string{"primary", "backup"}[i], current, current)
		b.setReady(api.PodName("rtd", 0, i), corev1.ConditionFalse)
	}
	b.run(grid)
	b.clock.SetTime(b.clock.Now().Add(troubleAfter))
	b.run(grid)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "rtd-p0 shows epoch 2")
	if c := b.condition(grid, api.ConditionDataLossSuspected); strings.Contains(c.Message, "rtd-p0") {
		t.Errorf("the message advises to give up what is not lost: %s", c.Message)
	}
}

// TestLaterConfigurationLost: only the operator remembers it, and the annotation gives it up.
func TestLaterConfigurationLost(t *testing.T) {
	b, grid, _ := regressedPair(t)
	p := b.partition(grid, 0, 0)
	b.nodes.silence(1)
	b.nodes.says(grid, 0, secondBoot, "learner", p, b.partition(grid, 0, 1))
	b.run(grid)
	keep := "To keep the record as it stands: kubectl annotate -n " + b.namespace + " gridpartition rtd-p0 ordergrid.dev/reassert-configuration=change-1"
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "no grid node that answers has it any more", keep)

	b.annotate(p, api.AnnotationReassert, "change-1")
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationReassert, true)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionTrue, "RecordBehind", "rtd-p0: asserting change change-1 waits: a pod of the grid does not answer")

	b.nodes.says(grid, 1, secondBoot, "learner", p, b.partition(grid, 0, 1))
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationReassert, false)
	b.wantEvent("Normal ConfigurationKept epoch 2, change change-1, is kept as it stands")
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionFalse, "RecordCurrent")
	if p.Spec.ReassertChangeID != "" {
		t.Errorf("spec %+v", p.Spec)
	}
}

// TestHealthyGridIsLeftAlone: the nodes of a healthy grid are queried once by an operator that has just started, and
// then never.
func TestHealthyGridIsLeftAlone(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.run(grid)
	b.play(grid)
	for range 3 {
		b.run(grid)
		b.clock.SetTime(b.clock.Now().Add(time.Hour))
	}
	if n := b.nodes.questions(); n != 0 || b.again != 0 {
		t.Errorf("%d queries, again in %v", n, b.again)
	}
	for i := range int32(2) {
		b.nodes.says(grid, i, "0123456789abcdef", "backup", b.partition(grid, 0, 0), b.partition(grid, 0, 1))
	}
	b.reconcile.memory = memory{}
	for range 3 {
		b.wantNoWrites(grid, "the operator was restarted")
	}
	if n := b.nodes.questions(); n != 2 || b.again != 0 {
		t.Errorf("%d queries by a restarted operator, want one per pod; again in %v", n, b.again)
	}
}

// TestPreferredPod: the annotation selects the primary, and nothing else changes it.
func TestPreferredPod(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	p := b.partition(grid, 0, 0)
	b.annotate(p, api.AnnotationPreferredPod, "rtd-s0-1")
	b.run(grid)
	if b.get(p); p.Spec.PreferredPod != "rtd-s0-1" {
		t.Errorf("preferredPod %s", p.Spec.PreferredPod)
	}
	b.wantAnnotation(p, api.AnnotationPreferredPod, true)
	b.wantNoWrites(grid, "it stays")
	b.annotate(p, api.AnnotationPreferredPod, "rtd-s1-0")
	b.run(grid)
	b.wantAnnotation(p, api.AnnotationPreferredPod, false)
	b.wantEvent(`Warning PreferredPodRefused annotation ordergrid.dev/preferred-pod is refused and removed: "rtd-s1-0" is not a pod that keeps a copy of the partition; allowed are [rtd-s0-0 rtd-s0-1]`)
	if other := b.partition(grid, 0, 1).Spec.PreferredPod; p.Spec.PreferredPod != "rtd-s0-1" || other != "rtd-s0-0" {
		t.Errorf("preferredPod %s and %s, want one on each pod", p.Spec.PreferredPod, other)
	}
	b.setReady("rtd-s0-0", corev1.ConditionTrue)
	b.wantNoWrites(grid, "it is as before")
}
