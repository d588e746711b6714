package ordergrid

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestThreePairs follows a grid of three pairs from its creation until it is at rest.
func TestThreePairs(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Shards: 3, Replicas: 2})

	writes := b.run(grid)
	if len(writes) != 3*(2*2+3+3)+1+1+1 {
		t.Errorf("%d writes for 3 shards of 2 partitions and their stamps, 3 identity objects, 2 services or budgets and a StatefulSet, the client Service, the peer key and status:\n%s", len(writes), strings.Join(writes, "\n"))
	}
	b.wantObjects(grid)
	b.wantConditions(grid, "False/NotClaimed False/CopiesMissing True/Starting False/AsExpected")
	if grid.Status.ObservedGeneration != grid.Generation || grid.Status.Shards != 3 || grid.Status.Endpoint != "rtd-client."+b.namespace+".svc:7400" {
		t.Errorf("status %+v", grid.Status)
	}
	b.wantNoWrites(grid, "nothing happened")

	b.play(grid)
	b.run(grid)
	b.wantConditions(grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	if grid.Status.ReadyShards != 3 || len(grid.Status.Partitions) != 6 {
		t.Errorf("status %+v", grid.Status)
	}
	for i, p := range grid.Status.Partitions {
		shard, index := int32(i%3), int32(i/3)
		want := api.PartitionSummary{Name: api.PartitionName("rtd", int32(i)), Shard: shard, Primary: api.PodName("rtd", shard, index), Epoch: 2, Lineage: 1, InSync: 2}
		if p != want {
			t.Errorf("partition %+v, want %+v", p, want)
		}
	}
	b.wantNoWrites(grid, "the grid is healthy")
	b.wantEvent("Normal ShardCreated created shard 2 with 2 pods")
	b.wantEvent("Normal Serving all 6 partitions have a primary that serves")
}

// TestMirrorsTheConfiguration: the operator mirrors the decisions of the nodes, and makes none itself.
func TestMirrorsTheConfiguration(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)

	// Pod 0 dies, pod 1 takes over.
	record := b.partition(grid, 0, 0)
	taken := processOf(grid, 0, 1)
	record.Status.Epoch, record.Status.ChangeID, record.Status.Primary, record.Status.InSync = 3, "take-over", &taken, []api.Member{taken}
	if err := b.asPod(grid, 0).Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	b.setReady("rtd-s0-0", corev1.ConditionFalse)
	writes := b.run(grid)
	if len(writes) != 1 || !strings.HasSuffix(writes[0], "/ordergrids/rtd/status") {
		t.Errorf("writes %v", writes)
	}
	b.wantConditions(grid, "True/Serving False/CopiesMissing True/Starting False/AsExpected")
	b.wantEvent("Warning CopiesMissing 2 of 2 partitions lack a copy")
	b.wantEvent("Normal PrimaryChanged rtd-p0: primary is rtd-s0-1, was rtd-s0-0; epoch 3, 1 in sync")
	b.wantNoWrites(grid, "the failover is over")
}

// TestPutsRightWhatOthersChange reverts changes by others, and keeps their additions.
func TestPutsRightWhatOthersChange(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	ctx := t.Context()

	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: b.namespace}}
	b.get(set)
	set.Spec.Replicas = ptr.To[int32](5)
	if err := b.client.Update(ctx, set); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rtd-client", Namespace: b.namespace}}
	if err := b.client.Delete(ctx, service); err != nil {
		t.Fatal(err)
	}
	if writes := b.run(grid); len(writes) != 2 {
		t.Errorf("writes %v", writes)
	}
	b.get(service)
	if b.get(set); *set.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *set.Spec.Replicas)
	}

	set.Labels["desk"], set.Annotations["note"] = "emea", "theirs"
	set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
	if err := b.client.Update(ctx, set); err != nil {
		t.Fatal(err)
	}
	b.wantNoWrites(grid, "others added a label, an annotation and a container")
}

// TestSpecChange: only the objects affected by a change are written.
func TestSpecChange(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	grid.Spec.Memory = resource.MustParse("2Gi")
	b.update(grid)
	writes := b.run(grid)
	if len(writes) != 2 || !slices.ContainsFunc(writes, func(w string) bool { return strings.HasSuffix(w, "/statefulsets/rtd-s0") }) {
		t.Errorf("writes %v; want the StatefulSet and status", writes)
	}
	if grid.Status.ObservedGeneration != grid.Generation {
		t.Errorf("observed generation %d of %d", grid.Status.ObservedGeneration, grid.Generation)
	}

	// The nodes learn of it from their partitions; no pod has to be replaced.
	grid.Spec.MinInSync = 2
	b.update(grid)
	writes = b.run(grid)
	if len(writes) != 3 || slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "statefulsets") }) || b.partition(grid, 0, 1).Spec.MinInSync != 2 {
		t.Errorf("writes %v; want two GridPartitions and status", writes)
	}

	grid.Spec.Shards = 2
	b.update(grid)
	b.run(grid)
	b.wantObjects(grid)
	if grid.Status.Shards != 2 {
		t.Errorf("%d shards after scaling out", grid.Status.Shards)
	}
}

// TestBrokenOverlay: nothing is written before the template is valid, and the condition has the remedy.
func TestBrokenOverlay(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{PodTemplate: raw(`{"spec":{"serviceAccountName":"admin"}}`)})
	if writes := b.run(grid); len(writes) != 1 {
		t.Errorf("writes %v", writes)
	}
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled)
	if c.Status != metav1.ConditionTrue || c.Reason != "PodTemplateInvalid" || !strings.Contains(c.Message, `"admin" would replace "rtd-s0"`) {
		t.Errorf("condition %+v", c)
	}
	b.wantEvent(`Warning PodTemplateInvalid spec.podTemplate.spec.serviceAccountName: "admin" would replace`)
	b.wantNoWrites(grid, "the overlay is still broken")

	grid.Spec.PodTemplate = raw(`{"spec":{"enableServiceLinks":true}}`)
	b.update(grid)
	b.run(grid)
	b.wantObjects(grid)
	if c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled); c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
}

// TestNameTaken: a foreign Service of the same name is not changed.
func TestNameTaken(t *testing.T) {
	b := newBench(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rtd-client", Namespace: b.namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := b.client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	grid := b.create("rtd", api.OrderGridSpec{})
	b.runExpectingError(grid)
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled)
	if c == nil || c.Reason != "NameTaken" || !strings.Contains(c.Message, "rtd-client exists already and has no controller; delete or rename it, or give this object another name") {
		t.Errorf("condition %+v", c)
	}
	b.get(service)
	if len(service.Spec.Selector) != 0 || service.Spec.Ports[0].Port != 80 {
		t.Errorf("the foreign Service was changed: %+v", service.Spec)
	}
	if err := b.client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	b.wantObjects(grid)
}

// TestLostRecord: a configuration record that was deleted by mistake is not replaced by an empty one, in which a pod
// without the orders could make itself primary.
func TestLostRecord(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)

	// Before it is claimed, nothing is lost with it.
	if err := b.client.Delete(t.Context(), b.partition(grid, 0, 0)); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	b.play(grid)
	b.run(grid)

	if err := b.client.Delete(t.Context(), b.partition(grid, 0, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.runExpectingError(grid)
		c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled)
		if c.Status != metav1.ConditionTrue || c.Reason != "PartitionRecordLost" || !strings.Contains(c.Message, "GridPartition rtd-p0 is gone although it had reached epoch 2") {
			t.Fatalf("condition %+v", c)
		}
	}
	var list api.GridPartitionList
	if err := b.client.List(t.Context(), &list, client.InNamespace(b.namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d GridPartitions, error %v", len(list.Items), err)
	}
}

// TestRecordMadeAgain: a record that is recreated without its status is marked as a copy, with the annotation of the
// previous one or without.
func TestRecordMadeAgain(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	first := b.partition(grid, 0, 0)
	if stamp := first.Annotations[api.AnnotationRecord]; stamp != string(first.UID) || kube.FromObject(first).Copied {
		t.Fatalf("annotation %q of %s", stamp, first.UID)
	}
	for _, annotations := range []map[string]string{nil, first.Annotations} { // from an earlier manifest; kubectl replace --force
		if err := b.client.Delete(t.Context(), b.partition(grid, 0, 0)); err != nil {
			t.Fatal(err)
		}
		again := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: first.Namespace, Labels: first.Labels, OwnerReferences: first.OwnerReferences, Annotations: annotations}, Spec: first.Spec}
		if err := b.client.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		b.run(grid)
		if now := b.partition(grid, 0, 0); now.Status.Epoch != 0 || !kube.FromObject(now).Copied {
			t.Errorf("annotations %v: epoch %d, annotation %q of %s: it would be claimed", annotations, now.Status.Epoch, now.Annotations[api.AnnotationRecord], now.UID)
		}
	}
}

// TestDeletion: a grid that is being deleted is left to the garbage collector, which this API server does not have; so
// every object must name the grid as its controller, and none may be created any more.
func TestDeletion(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Shards: 2})
	b.run(grid)
	b.wantObjects(grid)
	grid.Finalizers = []string{"test.example/hold"}
	b.update(grid)
	if err := b.client.Delete(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s1", Namespace: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	b.wantNoWrites(grid, "the grid is being deleted")
	grid.Finalizers = nil
	b.update(grid)
	if _, err := b.reconcile.Reconcile(t.Context(), request(grid)); err != nil {
		t.Errorf("reconcile of a deleted grid: %v", err)
	}
}

// wantObjects lists everything in the namespace and compares it with what the grid should have.
func (b *bench) wantObjects(grid *api.OrderGrid) {
	b.t.Helper()
	for _, kind := range []struct {
		list client.ObjectList
		want int32
	}{
		{&api.GridPartitionList{}, grid.Spec.Partitions},
		{&appsv1.StatefulSetList{}, grid.Spec.Shards},
		{&corev1.ServiceList{}, grid.Spec.Shards + 1},
		{&corev1.ServiceAccountList{}, grid.Spec.Shards},
		{&rbacv1.RoleList{}, grid.Spec.Shards},
		{&rbacv1.RoleBindingList{}, grid.Spec.Shards},
		{&policyv1.PodDisruptionBudgetList{}, grid.Spec.Shards},
		{&corev1.ConfigMapList{}, 0},
	} {
		if err := b.client.List(b.t.Context(), kind.list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		items, err := meta.ExtractList(kind.list)
		if err != nil {
			b.t.Fatal(err)
		}
		if int32(len(items)) != kind.want {
			b.t.Errorf("%d %T, want %d", len(items), kind.list, kind.want)
		}
		for _, item := range items {
			if o := item.(client.Object); !owned(grid, o) {
				b.t.Errorf("%T %s is not controlled by the grid: %+v", o, o.GetName(), o.GetOwnerReferences())
			}
		}
	}
}

// wantConditions compares Available, Redundant, Progressing and Stalled. The others are expected to be good unless
// given.
func (b *bench) wantConditions(grid *api.OrderGrid, want string) {
	b.t.Helper()
	if strings.Count(want, "/") == 4 {
		want += " False/MembersPresent False/RecordCurrent"
	}
	var got []string
	for _, c := range grid.Status.Conditions {
		if c.Type == api.ConditionSchedulable && b.reconcile.KubeNodes == nil {
			continue // no node is read, and nothing is scheduled
		}
		if c.Type == api.ConditionSecure {
			continue // depends on security settings, which these tests do not use
		}
		if c.Type == api.ConditionAcceptingOrders {
			continue // TestFullGrid
		}
		got = append(got, string(c.Status)+"/"+c.Reason)
		if c.ObservedGeneration != grid.Generation {
			b.t.Errorf("condition %s observed generation %d of %d", c.Type, c.ObservedGeneration, grid.Generation)
		}
	}
	if strings.Join(got, " ") != want {
		b.t.Errorf("conditions\n got: %s\nwant: %s", strings.Join(got, " "), want)
	}
}

func (b *bench) wantNoWrites(grid *api.OrderGrid, when string) {
	b.t.Helper()
	if writes := b.run(grid); len(writes) != 0 {
		b.t.Errorf("%s, yet %d writes: %v", when, len(writes), writes)
	}
}

func (b *bench) wantEvent(prefix string) {
	b.t.Helper()
	envtest.WantEvent(b.t, b.events, prefix)
}

// partition is the record of the index-th partition of a shard where nothing has moved.
func (b *bench) partition(grid *api.OrderGrid, shard, index int32) *api.GridPartition {
	b.t.Helper()
	record := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName(grid.Name, numberOf(grid, shard, index)), Namespace: grid.Namespace}}
	b.get(record)
	return record
}

func (b *bench) update(grid *api.OrderGrid) {
	b.t.Helper()
	if err := b.client.Update(b.t.Context(), grid); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) runExpectingError(grid *api.OrderGrid) {
	b.t.Helper()
	if _, err := b.reconcile.Reconcile(b.t.Context(), request(grid)); err == nil {
		b.t.Error("no error, so the work queue would not try again")
	}
	b.get(grid)
}
