package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// scaling is a grid of six partitions on the API server whose shards are added and removed; the test plays Kubernetes
// and the grid nodes.
type scaling struct {
	*bench
	grid *api.OrderGrid
}

func newScaling(t *testing.T, shards int32) *scaling {
	s := &scaling{bench: newBench(t)}
	s.grid = s.create("rtd", api.OrderGridSpec{Shards: shards, Partitions: 6})
	s.run(s.grid)
	s.play(s.grid)
	s.run(s.grid)
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	return s
}

func (s *scaling) want(shards int32) {
	s.t.Helper()
	s.get(s.grid)
	s.grid.Spec.Shards = shards
	s.update(s.grid)
}

func (s *scaling) startPods(shard int32) {
	s.t.Helper()
	for ordinal := range s.grid.Spec.Replicas {
		s.startPod(s.grid, shard, ordinal)
	}
}

func (s *scaling) records() []api.GridPartition {
	s.t.Helper()
	var list api.GridPartitionList
	if err := s.client.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b api.GridPartition) int { return int(a.Spec.Partition - b.Spec.Partition) })
	return list.Items
}

// step is the primary's next change of a partition's configuration towards the pods in the record: one is added, then
// the primary is handed over, then one is removed. It reports whether there was one to make.
func (s *scaling) step(p *api.GridPartition) bool {
	s.t.Helper()
	member := func(pod string) api.Member {
		shard, _ := shardOf(s.grid, pod)
		return processOf(s.grid, shard, int32(pod[len(pod)-1]-'0'))
	}
	has := func(pod string) bool {
		return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == pod })
	}
	st := p.Status.DeepCopy()
	missing := slices.IndexFunc(p.Spec.Pods, func(pod string) bool { return !has(pod) })
	extra := slices.IndexFunc(st.InSync, func(m api.Member) bool { return !slices.Contains(p.Spec.Pods, m.PodName) })
	switch {
	case missing >= 0:
		st.InSync = append(st.InSync, member(p.Spec.Pods[missing]))
	case st.Primary.PodName != p.Spec.PreferredPod:
		m := member(p.Spec.PreferredPod)
		st.Primary = &m
	case extra >= 0:
		st.InSync = slices.Delete(st.InSync, extra, extra+1)
	default:
		return false
	}
	st.Epoch, st.ChangeID = st.Epoch+1, fmt.Sprint("step-", st.Epoch+1)
	p.Status = *st
	shard, _ := shardOf(s.grid, st.Primary.PodName)
	if err := s.asPod(s.grid, shard).Status().Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// homes is how many partitions each shard should have, and how many are moving.
func (s *scaling) homes() string {
	s.t.Helper()
	var counts [3]int
	moving := 0
	for _, p := range s.records() {
		counts[p.Spec.Shard]++
		if moves(s.grid, &p) {
			moving++
		}
		if len(p.Status.InSync) < 2 {
			s.t.Errorf("%s has %d copies", p.Name, len(p.Status.InSync))
		}
	}
	return fmt.Sprint(counts, " ", moving)
}

func (s *scaling) wantHomes(want string) {
	s.t.Helper()
	if got := s.homes(); got != want {
		s.t.Fatalf("partitions by shard, and those moving: %s, want %s", got, want)
	}
}

// settle has the nodes follow the records, with a new operator each time, until nothing is left to do.
func (s *scaling) settle() {
	s.t.Helper()
	for range 60 {
		again := false
		for _, p := range s.records() {
			again = s.step(&p) || again
		}
		s.restart()
		s.run(s.grid)
		if n := len(s.grid.Status.Moves); n > concurrentMoves(s.grid) {
			s.t.Fatalf("%d partitions are moving", n)
		}
		s.homes()
		if !again && len(s.grid.Status.Moves) == 0 && s.grid.Status.MovesLeft == 0 {
			return
		}
	}
	s.t.Fatal("it does not end")
}

// killPods plays the end of pods whose StatefulSet is gone.
func (s *scaling) killPods(shard int32) {
	s.t.Helper()
	for ordinal := range s.grid.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName("rtd", shard, ordinal), Namespace: s.namespace}}
		if err := s.client.Delete(s.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// left lists the existing objects of a shard.
func (s *scaling) left(shard int32) (kinds []string) {
	s.t.Helper()
	for kind, list := range map[string]client.ObjectList{"StatefulSet": &appsv1.StatefulSetList{}, "Service": &corev1.ServiceList{}, "ServiceAccount": &corev1.ServiceAccountList{},
		"Role": &rbacv1.RoleList{}, "RoleBinding": &rbacv1.RoleBindingList{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{}, "GridPartition": &api.GridPartitionList{}} {
		if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{api.LabelShard: fmt.Sprint(shard)}); err != nil {
			s.t.Fatal(err)
		}
		if n := listLength(list); n > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func listLength(list client.ObjectList) int {
	switch l := list.(type) {
	case *appsv1.StatefulSetList:
		return len(l.Items)
	case *corev1.ServiceList:
		return len(l.Items)
	case *corev1.ServiceAccountList:
		return len(l.Items)
	case *rbacv1.RoleList:
		return len(l.Items)
	case *rbacv1.RoleBindingList:
		return len(l.Items)
	case *policyv1.PodDisruptionBudgetList:
		return len(l.Items)
	case *api.GridPartitionList:
		return len(l.Items)
	}
	panic("another kind")
}

// restart is another operator, with an empty memory.
func (s *scaling) restart() {
	s.reconcile = &Reconciler{Client: s.reconcile.Client, Live: s.reconcile.Live, Recorder: s.reconcile.Recorder, Nodes: s.reconcile.Nodes,
		Clock: s.reconcile.Clock, Defaults: s.reconcile.Defaults}
}

// TestShardsComeAndGo: 1 to 3 to 2, with a new operator after each pass. Every partition has its copies throughout, two
// move at most, and a shard is removed only when nothing is on it.
func TestShardsComeAndGo(t *testing.T) {
	s := newScaling(t, 1)
	template := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: s.namespace}}
	s.get(template)
	s.want(3)
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/MovingPartitions False/AsExpected")
	s.startPods(1)
	s.startPods(2)
	s.run(s.grid)
	s.wantHomes("[4 1 1] 2")
	s.wantEvent("Normal PartitionMoves p0 moves from shard 0 to shard 1")
	if m := s.grid.Status.Moves; len(m) != 2 || m[0].Partition != 0 || !slices.Equal(m[0].From, []int32{0}) || m[0].To != 1 || s.grid.Status.MovesLeft != 2 {
		t.Errorf("moves %+v, %d left", m, s.grid.Status.MovesLeft)
	}
	s.settle()
	s.wantHomes("[2 2 2] 0")
	s.wantEvent("Normal PartitionMoved p0 is on shard 1, 2 copies")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	now := template.DeepCopy()
	s.get(now)
	if now.Generation != template.Generation {
		t.Error("the StatefulSet of shard 0 has changed: its pods would be replaced because shards were added")
	}
	s.wantNoWrites(s.grid, "with three shards")

	s.want(2)
	s.run(s.grid)
	s.wantHomes("[3 3 0] 2")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/RemovingShards False/AsExpected")
	if l := s.grid.Status.Leaving; len(l) != 1 || l[0].Shard != 2 || l[0].Stage != api.LeavingMoving || l[0].Partitions != 2 {
		t.Errorf("leaving %+v", l)
	}
	if !slices.Contains(s.left(2), "StatefulSet") {
		t.Error("the pods of shard 2 are gone, and partitions have their copies there")
	}
	s.settle()
	s.wantHomes("[3 3 0] 0")
	s.run(s.grid)
	if left := s.left(2); slices.Contains(left, "StatefulSet") || !slices.Contains(left, "Role") {
		t.Errorf("its pods go first; of shard 2 there are %v", left)
	}
	s.restart()
	s.run(s.grid)
	if l := s.grid.Status.Leaving; len(l) != 1 || l[0].Stage != api.LeavingRemoving || l[0].WaitsFor != "2 pods to end" {
		t.Errorf("leaving %+v", l)
	}
	s.killPods(2)
	for range 8 { // one pass sees what the previous one deleted
		s.restart()
		s.run(s.grid)
	}
	if left := s.left(2); len(left) > 0 {
		t.Errorf("of shard 2 there are %v", left)
	}
	s.wantEvent("Normal ShardRemoved")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	if len(s.grid.Status.Leaving) != 0 || s.grid.Status.Shards != 2 || s.grid.Status.Selector == "" {
		t.Errorf("status %+v", s.grid.Status)
	}
	s.wantNoWrites(s.grid, "with two shards")
}

// TestScaleInIsTakenBack: a shard that gives its partitions away keeps its pods and gets partitions again.
func TestScaleInIsTakenBack(t *testing.T) {
	s := newScaling(t, 2)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s1", Namespace: s.namespace}}
	s.get(set)
	before := set.UID
	s.want(1)
	s.run(s.grid)
	s.wantHomes("[5 1 0] 2")
	p := s.records()[1]
	s.step(&p)
	s.want(2)
	s.run(s.grid)
	s.settle()
	s.wantHomes("[3 3 0] 0")
	if s.get(set); set.UID != before {
		t.Error("the pods of shard 1 were recreated")
	}
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
}

// TestShardStaysWhileSomethingIsUnknown: what blocks the removal of a shard that no record names.
func TestShardStaysWhileSomethingIsUnknown(t *testing.T) {
	s := newScaling(t, 2)
	s.want(1)
	s.run(s.grid)
	p := s.records()[1]
	m := processOf(s.grid, 1, 0)
	s.nodes.mu.Lock() // it has a later configuration than the record, as after that went back
	s.nodes.answers[podIP(1, 0)+":9400"] = &nodestatus.Node{Grid: "rtd", Pod: m.PodName, BootID: m.BootID, Partitions: []nodestatus.Partition{
		{Record: p.Name, Member: m.ID, BootID: m.BootID, Role: "primary", Epoch: uint64(p.Status.Epoch) + 100, ChangeID: "later", Lineage: 1}}}
	s.nodes.mu.Unlock()
	for range 20 {
		for _, p := range s.records() {
			s.step(&p)
		}
		if s.run(s.grid); s.homes() == "[6 0 0] 0" {
			break
		}
	}
	waits := func() string {
		s.run(s.grid)
		if l := s.grid.Status.Leaving; len(l) == 1 && l[0].Stage == api.LeavingRemoving {
			return l[0].WaitsFor
		}
		return fmt.Sprintf("%+v", s.grid.Status.Leaving)
	}
	if got := waits(); !strings.Contains(got, "rtd-s1-0 has a later configuration of p1 than its record") {
		t.Errorf("waits for %q", got)
	}
	s.nodes.mu.Lock()
	delete(s.nodes.answers, podIP(1, 0)+":9400")
	s.nodes.mu.Unlock()
	// A record is gone.
	backup := s.records()[3]
	if err := s.client.Delete(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile.Reconcile(t.Context(), request(s.grid)); err == nil || !slices.Contains(s.left(1), "StatefulSet") {
		t.Errorf("without a record: %v, of shard 1 there are %v", err, s.left(1))
	}
}

// TestLayoutBeforeIsRefused: a grid created when shards had partitions of their own is not changed, and the message has
// the remedy.
func TestLayoutBeforeIsRefused(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Shards: 2})
	record := recordOf(grid, 0, 0)
	record.Name, record.Namespace = "rtd-s0-p0", b.namespace
	record.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(grid, api.GroupVersion.WithKind("OrderGrid"))}
	if err := b.client.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if writes := b.run(grid); len(writes) != 1 || !strings.Contains(writes[0], "ordergrids") {
		t.Errorf("writes %v, want that of status alone", writes)
	}
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionTrue, "LayoutBefore", "GridPartition rtd-s0-p0 is of a release", "Create a second OrderGrid, move the clients to it, and delete this one")
	b.wantNoWrites(grid, "nothing has changed")
}

// TestRecordThatChangedIsNotOverwritten: a decision by an old cached record does not send its partition back.
func TestRecordThatChangedIsNotOverwritten(t *testing.T) {
	s := newScaling(t, 2)
	before := s.records()[1]
	moved := before.DeepCopy()
	goHome(moved, 0)
	if err := s.client.Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	r := &run{Reconciler: s.reconcile, observation: &observation{grid: s.grid, partitions: []api.GridPartition{before}}, remembered: &gridMemory{}}
	r.applier.Client, r.applier.Live = staleReader{s.client, &before}, s.client
	r.findings = map[string]*finding{before.Name: {record: &before, memory: &recollection{}}}
	before.Spec.MinInSync = 1
	copies := atRest(s.grid, 1)
	copies.needed = 2
	err := r.applyPartition(t.Context(), copies, 1, "rtd-s1-0", requested{})
	if _, is := err.(*movedError); !is { //nolint:errorlint // not wrapped
		t.Errorf("%v, want that the record has moved", err)
	}
	if p := s.records()[1]; p.Spec.Shard != 0 {
		t.Errorf("the partition was sent back to shard %d", p.Spec.Shard)
	}
}

// TestMovesWaitForManualAction: nothing begins to move while a partition may have lost orders; moves continue when that is
// resolved.
func TestMovesWaitForManualAction(t *testing.T) {
	s := newScaling(t, 1)
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	p := s.records()[5]
	for ordinal := range int32(2) { // other processes are in its pods
		m := incarnation(s.grid, 0, ordinal, secondBoot)
		n := &nodestatus.Node{Grid: "rtd", Pod: m.PodName, BootID: secondBoot}
		for _, r := range s.records() {
			id := processOf(s.grid, 0, ordinal).ID
			if r.Name == p.Name {
				id = m.ID
			}
			n.Partitions = append(n.Partitions, nodestatus.Partition{Record: r.Name, Member: id, BootID: secondBoot, Role: "learner", Epoch: uint64(r.Status.Epoch), ChangeID: r.Status.ChangeID, Lineage: 1})
		}
		s.nodes.mu.Lock()
		s.nodes.answers[podIP(0, ordinal)+":9400"] = n
		s.nodes.mu.Unlock()
	}
	s.setReady(p.Status.Primary.PodName, corev1.ConditionFalse)
	s.run(s.grid)
	s.clock.SetTime(s.clock.Now().Add(2 * troubleAfter))
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	c := s.condition(s.grid, api.ConditionProgressing)
	if !strings.Contains(c.Message, "rtd-p5: DataLossSuspected, and no partition begins to move") {
		t.Error(c.Message)
	}
	s.setReady(p.Status.Primary.PodName, corev1.ConditionTrue)
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.run(s.grid)
	s.wantHomes("[4 2 0] 2")
}

// staleReader is a cache with one old object.
type staleReader struct {
	client.Client
	record *api.GridPartition
}

func (c staleReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if p, is := obj.(*api.GridPartition); is && key.Name == c.record.Name {
		*p = *c.record.DeepCopy()
		return nil
	}
	return c.Client.Get(ctx, key, obj, opts...)
}
