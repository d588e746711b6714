package ordergrid

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

const secondBoot = "fedcba9876543210"

// pairInTrouble is a pair that served, whose pods are not ready any more; the operator noticed that some time ago.
func pairInTrouble(t *testing.T) (*bench, *api.OrderGrid) {
	t.Helper()
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.run(grid) // reads the partitions as unclaimed: they have no past that the nodes could know
	b.play(grid)
	b.run(grid)
	for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
		b.setReady(pod, corev1.ConditionFalse)
	}
	b.run(grid)
	if n := b.nodes.questions(); n != 0 || b.again <= 0 || b.again > troubleAfter {
		t.Fatalf("%d queries at once, again in %v; a take-over needs a moment", n, b.again)
	}
	b.clock.SetTime(b.clock.Now().Add(troubleAfter))
	return b, grid
}

func (b *bench) condition(grid *api.OrderGrid, kind string) metav1.Condition {
	b.t.Helper()
	c := meta.FindStatusCondition(grid.Status.Conditions, kind)
	if c == nil {
		b.t.Fatalf("no condition %s", kind)
	}
	return *c
}

func (b *bench) wantCondition(grid *api.OrderGrid, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	b.t.Helper()
	c := b.condition(grid, kind)
	if c.Status != status || c.Reason != reason {
		b.t.Errorf("%s is %s/%s, want %s/%s: %s", kind, c.Status, c.Reason, status, reason, c.Message)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			b.t.Errorf("%q is not in the message of %s: %s", text, kind, c.Message)
		}
	}
}

func (b *bench) annotate(p *api.GridPartition, key, value string) {
	b.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if err := b.client.Patch(b.t.Context(), p, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) wantAnnotation(p *api.GridPartition, key string, there bool) {
	b.t.Helper()
	b.get(p)
	if value, found := p.Annotations[key]; found != there {
		b.t.Errorf("annotation %s of %s: %q, there %v, want %v", key, p.Name, value, found, there)
	}
}

// TestLossIsSuspectedAndAccepted follows a pair from the restart of both its processes to its second lineage.
func TestLossIsSuspectedAndAccepted(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0, p1 := b.partition(grid, 0, 0), b.partition(grid, 0, 1)
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, "learner", p0, p1)
	}
	b.run(grid)
	if n := b.nodes.questions(); n != 2 {
		t.Errorf("%d queries for 2 pods", n)
	}
	command := "kubectl annotate -n " + b.namespace + " gridpartition rtd-p1 ordergrid.dev/accept-data-loss=2"
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", "2 of 2 partitions have lost every process", command,
		"rtd-p0 at epoch 2 (rtd-s0-0/0123456789abcdef is gone: its pod runs rtd-s0-0/fedcba9876543210 now, which is learner and holds entries up to 42; rtd-s0-1/0123456789abcdef is gone")
	b.wantEvent("Warning NoInSyncMemberLeft 2 of 2 partitions")
	if got := grid.Status.Partitions[0].Problem; got != "DataLossSuspected" {
		t.Errorf("problem of the partition is %q", got)
	}
	b.wantNoWrites(grid, "nothing happened")

	b.annotate(p0, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, true)
	if p0.Spec.AcceptDataLossEpoch != 2 {
		t.Fatalf("spec %+v", p0.Spec)
	}
	b.wantEvent("Warning AcceptingDataLoss the loss of what only the in-sync members of epoch 2 held is accepted")
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", "The loss is accepted: a grid node begins lineage 2", command)
	b.wantNoWrites(grid, "the grid nodes have not acted yet")

	// A learner begins the new lineage, with the permissions of its pod; the API server allows it for this epoch only.
	fresh := incarnation(grid, 0, 1, secondBoot)
	begin := func(p *api.GridPartition) error {
		p.Status = api.GridPartitionStatus{Epoch: 3, Lineage: 2, ChangeID: "fresh", Primary: &fresh, InSync: []api.Member{fresh}}
		return b.asPod(grid, 0).Status().Update(t.Context(), p)
	}
	if err := begin(p1.DeepCopy()); err == nil || !strings.Contains(err.Error(), "without an accepted loss") {
		t.Errorf("the other partition, without an accepted loss: %v", err)
	}
	if err := begin(p0); err != nil {
		t.Fatal(err)
	}
	b.nodes.says(grid, 1, secondBoot, "primary", p0)
	b.run(grid)
	b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, false)
	if p0.Spec.AcceptDataLossEpoch != 0 {
		t.Errorf("spec %+v", p0.Spec)
	}
	b.wantEvent("Normal DataLossAcceptanceOver epoch 2 is over: the partition is at epoch 3, lineage 2")
	b.wantEvent("Warning NewLineage rtd-p0: lineage is 2, was 1: rtd-s0-1 is primary at epoch 3")
	b.wantHistory(grid, "AcceptingDataLoss rtd-p0", "DataLossAcceptanceOver rtd-p0", "NewLineage rtd-p0")

	annotated := b.partition(grid, 0, 1)
	b.nodes.says(grid, 1, secondBoot, "learner", p0, annotated)
	b.annotate(annotated, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	if err := begin(b.partition(grid, 0, 1)); err != nil {
		t.Fatal(err)
	}
	b.setReady("rtd-s0-1", corev1.ConditionTrue)
	b.run(grid)
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionFalse, "MembersPresent")
	b.wantEvent("Normal MembersPresent")
	b.nodes.questions()
	b.wantNoWrites(grid, "the grid serves again")
	if n := b.nodes.questions(); n != 0 || b.again != 0 {
		t.Errorf("%d queries though the primaries are ready; again in %v", n, b.again)
	}

	// The next problem is handled separately.
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.setReady("rtd-s0-1", corev1.ConditionFalse)
	b.run(grid)
	if n := b.nodes.questions(); n != 0 || b.again != troubleAfter {
		t.Errorf("%d queries at once; again in %v", n, b.again)
	}
}

// TestWrongEpochIsRefused: only the present epoch is accepted, which shows that the user has seen the present state.
func TestWrongEpochIsRefused(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0, p1 := b.partition(grid, 0, 0), b.partition(grid, 0, 1)
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, "learner", p0, p1)
	}
	for _, wrong := range []string{"1", "3", "yes", "-2", ""} {
		b.annotate(p0, api.AnnotationAcceptDataLoss, wrong)
		b.run(grid)
		b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, false)
		b.wantEvent("Warning AcceptDataLossRefused annotation ordergrid.dev/accept-data-loss is refused and removed: ")
	}
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", `rtd-p0: ordergrid.dev/accept-data-loss was refused: "" is not an epoch; give the present one, 2`)
	if p0.Spec.AcceptDataLossEpoch != 0 {
		t.Fatalf("spec %+v", p0.Spec)
	}
}

// TestSilenceIsNoProof: a process that does not answer may be alive, and an acceptance waits while that is so.
func TestSilenceIsNoProof(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0, p1 := b.partition(grid, 0, 0), b.partition(grid, 0, 1)
	b.nodes.says(grid, 0, secondBoot, "learner", p0, p1)
	b.annotate(p0, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionUnknown, "MembersUnreachable", "rtd-s0-1/0123456789abcdef does not answer at 10.1.0.2:9400",
		"rtd-p0: accepting the loss of epoch 2 waits until it is known")
	b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, true)
	if p0.Spec.AcceptDataLossEpoch != 0 || b.again == 0 || b.again > lookAgain {
		t.Errorf("spec %+v, again in %v", p0.Spec, b.again)
	}
	b.wantNoWrites(grid, "it is still silent")

	// Another process at the address is no answer either.
	b.nodes.says(grid, 1, secondBoot, "learner", p0, p1)
	b.nodes.answers["10.1.0.2:9400"].Pod = "other-s0-1"
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionUnknown, "MembersUnreachable")

	// The silence ends: it was alive all the time.
	b.nodes.says(grid, 1, "0123456789abcdef", "backup", p0, p1)
	b.run(grid)
	b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, false)
	b.wantEvent("Warning AcceptDataLossRefused annotation ordergrid.dev/accept-data-loss is refused and removed: not every in-sync member is gone")
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionFalse, "MembersPresent", "was refused: not every in-sync member is gone: "+
		"rtd-s0-0/0123456789abcdef is gone: its pod runs rtd-s0-0/fedcba9876543210 now, which is learner and holds entries up to 42; rtd-s0-1/0123456789abcdef is alive: it is backup at epoch 2")
	if b.partition(grid, 0, 0).Spec.AcceptDataLossEpoch != 0 {
		t.Error("the loss of a living member was accepted")
	}
}

// TestAcceptanceIsTakenBack: a member that answers before a grid node acted on the acceptance revokes it.
func TestAcceptanceIsTakenBack(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0, p1 := b.partition(grid, 0, 0), b.partition(grid, 0, 1)
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, "learner", p0, p1)
	}
	b.annotate(p0, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	if b.partition(grid, 0, 0).Spec.AcceptDataLossEpoch != 2 {
		t.Fatal("not accepted")
	}
	b.nodes.says(grid, 1, "0123456789abcdef", "backup", p0, p1)
	b.run(grid)
	b.wantAnnotation(p0, api.AnnotationAcceptDataLoss, false)
	if p0.Spec.AcceptDataLossEpoch != 0 {
		t.Errorf("spec %+v", p0.Spec)
	}
}

// TestAcceptanceIsWithdrawn: the annotation is removed in time.
func TestAcceptanceIsWithdrawn(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0, p1 := b.partition(grid, 0, 0), b.partition(grid, 0, 1)
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, "learner", p0, p1)
	}
	b.annotate(p0, api.AnnotationAcceptDataLoss, "2")
	b.run(grid)
	if b.partition(grid, 0, 0).Spec.AcceptDataLossEpoch != 2 {
		t.Fatal("not accepted")
	}
	remove := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"ordergrid.dev/accept-data-loss":null}}}`))
	if err := b.client.Patch(t.Context(), p0, remove); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	if got := b.partition(grid, 0, 0).Spec.AcceptDataLossEpoch; got != 0 {
		t.Errorf("the loss of epoch %d is still accepted", got)
	}
}

// TestManualChangeOfSpec: a manual change of spec stays, and the operator does not interfere.
func TestManualChangeOfSpec(t *testing.T) {
	b, grid := pairInTrouble(t)
	p0 := b.partition(grid, 0, 0)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"acceptDataLossEpoch":2}}`))
	if err := b.client.Patch(t.Context(), p0, patch, client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	b.run(grid)
	if got := b.partition(grid, 0, 0).Spec.AcceptDataLossEpoch; got != 2 {
		t.Errorf("spec.acceptDataLossEpoch is %d", got)
	}
}

// behindCache makes the operator read an old list, as its cache does briefly after every change.
func (b *bench) behindCache(stale client.ObjectList) {
	b.t.Helper()
	b.reconcile.Client = b.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list) != reflect.TypeOf(stale) {
				return c.List(ctx, list, opts...)
			}
			reflect.ValueOf(list).Elem().Set(reflect.ValueOf(stale.DeepCopyObject()).Elem())
			return nil
		},
	})
}

// TestStaleRecordIsNoProof: the cache has the configuration before a take-over. Its members are gone, and the nodes are
// ahead of it; neither is a problem.
func TestStaleRecordIsNoProof(t *testing.T) {
	b, grid := pairInTrouble(t)
	stale := &api.GridPartitionList{}
	if err := b.client.List(t.Context(), stale, client.InNamespace(b.namespace)); err != nil {
		t.Fatal(err)
	}
	now := b.partition(grid, 0, 0)
	b.step(grid, now, incarnation(grid, 0, 1, "0123456789abcdef"))
	b.step(grid, now, incarnation(grid, 0, 1, "0123456789abcdef"))
	for i := range int32(2) {
		b.nodes.says(grid, i, secondBoot, "learner", now, b.partition(grid, 0, 1))
	}
	b.behindCache(stale)
	b.run(grid)
	b.wantCondition(grid, api.ConditionConfigurationRegressed, metav1.ConditionFalse, "RecordCurrent")
	if c := b.condition(grid, api.ConditionDataLossSuspected); !strings.Contains(c.Message, "1 of 2 partitions") || strings.Contains(c.Message, "rtd-p0 at epoch 2") {
		t.Errorf("a loss is suspected by a stale record: %s", c.Message)
	}
	if b.again == 0 {
		t.Error("no reconcile is scheduled")
	}
}

// TestStalePodsAreNoProof: the cache lacks existing pods.
func TestStalePodsAreNoProof(t *testing.T) {
	b, grid := pairInTrouble(t)
	b.behindCache(&corev1.PodList{})
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionUnknown, "MembersUnreachable", "rtd-s0-0/0123456789abcdef does not answer at 10.1.0.1:9400")
}

// TestPodsThatAreGone: the API server's state of pods is proof as well.
func TestPodsThatAreGone(t *testing.T) {
	b, grid := pairInTrouble(t)
	for i, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: b.namespace}}
		if err := b.client.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		b.run(grid)
		if i == 0 {
			b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionUnknown, "MembersUnreachable", "rtd-s0-0/0123456789abcdef is gone: its pod does not exist; rtd-s0-1/0123456789abcdef does not answer")
		}
	}
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", "rtd-s0-1/0123456789abcdef is gone: its pod does not exist")

	// The StatefulSet recreates it; there is no room for it.
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0-1", Namespace: b.namespace, Labels: shardLabels(grid, 0)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if err := b.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", "rtd-s0-1/0123456789abcdef is gone: its pod was created anew and waits for a Kubernetes node")
}

// TestTakeOverIsNoTrouble: a primary that is replaced within seconds causes no queries.
func TestTakeOverIsNoTrouble(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.run(grid) // reads the partitions as unclaimed: they have no past that the nodes could know
	b.play(grid)
	b.run(grid)
	b.setReady("rtd-s0-0", corev1.ConditionFalse)
	b.run(grid)
	taken := processOf(grid, 0, 1)
	record := b.partition(grid, 0, 0)
	record.Status.Epoch, record.Status.ChangeID, record.Status.Primary, record.Status.InSync = 3, "take-over", &taken, []api.Member{taken}
	if err := b.asPod(grid, 0).Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.clock.SetTime(b.clock.Now().Add(time.Minute))
		b.run(grid)
	}
	if n := b.nodes.questions(); n != 0 || b.again != 0 {
		t.Errorf("%d queries, again in %v", n, b.again)
	}
	if got := b.partition(grid, 0, 0).Spec.PreferredPod; got != "rtd-s0-0" {
		t.Errorf("preferredPod is %s after the failover: no hand-over to rtd-s0-0 would follow when it is back", got)
	}
}
