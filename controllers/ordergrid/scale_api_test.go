package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// scaling is a grid on the API server whose shards come and go; the test plays Kubernetes and the grid nodes.
type scaling struct {
	*bench
	grid *api.OrderGrid
}

func newScaling(t *testing.T, shards int32) *scaling {
	s := &scaling{bench: newBench(t)}
	s.grid = s.create("rtd", api.OrderGridSpec{Shards: shards, Sinks: []api.SinkSpec{{Name: "audit", Type: api.SinkFile, File: &api.FileSinkSpec{Volume: api.SinkVolumeClaim}}}})
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

// startShard plays the pods of a shard.
func (s *scaling) startShard(shard int32) {
	s.t.Helper()
	for ordinal := range s.grid.Spec.Replicas {
		s.startPod(s.grid, shard, ordinal)
	}
	for index := range s.grid.Spec.Replicas {
		s.claim(s.grid, shard, index)
	}
}

// nodesSay has the pods of a shard answer as processes that know what the records say now, and whose sink holds all but
// left entries.
func (s *scaling) nodesSay(shard int32, left uint64, closedFor time.Duration) {
	s.t.Helper()
	for ordinal := range s.grid.Spec.Replicas {
		m := processOf(s.grid, shard, ordinal)
		n := &nodestatus.Node{Grid: s.grid.Name, Pod: m.PodName, BootID: m.BootID}
		for index := range s.grid.Spec.Replicas {
			p := s.partition(s.grid, shard, index)
			begins := uint64(max(p.Spec.FirstSeq, 1))
			q := nodestatus.Partition{Record: p.Name, Member: m.ID, BootID: m.BootID, Role: "backup", Epoch: uint64(p.Status.Epoch), ChangeID: p.Status.ChangeID, Lineage: uint64(p.Status.Lineage),
				Closed: p.Spec.Admission != api.AdmissionOpen, AdmissionRevision: uint64(p.Spec.Layout.Revision), ClosedForNs: int64(closedFor),
				LastSeq: begins + 50, CommitSeq: begins + 50, DataSeq: begins + 49, CursorSeq: begins + 49 - left}
			if p.Status.Primary.ID == m.ID {
				q.Role = "primary"
			}
			n.Partitions = append(n.Partitions, q)
		}
		s.nodes.mu.Lock()
		s.nodes.answers[podIP(shard, ordinal)+":9400"] = n
		s.nodes.mu.Unlock()
	}
}

// layout is what all records say, one of them for all; admissions has a letter per shard.
func (s *scaling) layout() string {
	s.t.Helper()
	var list api.GridPartitionList
	if err := s.client.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	layouts, admissions := map[string]bool{}, map[string]bool{}
	for _, p := range list.Items {
		l := p.Spec.Layout
		layouts[fmt.Sprintf("%d:%d/%d-%d", l.Revision, l.Open, l.Shards, l.Removed)] = true
		admissions[fmt.Sprintf("s%d%s", p.Spec.Shard, p.Spec.Admission)] = true
	}
	text := fmt.Sprint(layouts, admissions)
	return strings.NewReplacer("map[", "", "]", "", ":true", "").Replace(text)
}

func (s *scaling) wantLayout(want string) {
	s.t.Helper()
	if got := s.layout(); got != want {
		s.t.Fatalf("records say %q, want %q", got, want)
	}
}

// killPods plays what becomes of pods whose StatefulSet is gone.
func (s *scaling) killPods(shard int32) {
	s.t.Helper()
	for ordinal := range s.grid.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName("rtd", shard, ordinal), Namespace: s.namespace}}
		if err := s.client.Delete(s.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// gone says which objects of a shard are left.
func (s *scaling) left(shard int32) (names []string) {
	s.t.Helper()
	for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &api.GridPartitionList{}} {
		if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{api.LabelShard: fmt.Sprint(shard)}); err != nil {
			s.t.Fatal(err)
		}
		switch l := list.(type) {
		case *appsv1.StatefulSetList:
			names = append(names, strings.Repeat("StatefulSet ", len(l.Items)))
		case *api.GridPartitionList:
			names = append(names, strings.Repeat("GridPartition ", len(l.Items)))
		case *corev1.ServiceList:
			names = append(names, strings.Repeat("Service ", len(l.Items)))
		case *corev1.ServiceAccountList:
			names = append(names, strings.Repeat("ServiceAccount ", len(l.Items)))
		case *rbacv1.RoleList:
			names = append(names, strings.Repeat("Role ", len(l.Items)))
		case *rbacv1.RoleBindingList:
			names = append(names, strings.Repeat("RoleBinding ", len(l.Items)))
		}
	}
	return strings.Fields(strings.Join(names, ""))
}

// restart is another operator, with nothing in its memory.
func (s *scaling) restart() {
	s.reconcile = &Reconciler{Client: s.reconcile.Client, Live: s.reconcile.Live, Recorder: s.reconcile.Recorder, Nodes: s.reconcile.Nodes,
		Clock: s.reconcile.Clock, Defaults: s.reconcile.Defaults}
}

// TestShardsComeAndGo: 1 to 3 to 2 and back to 3, the operator being another one after each pass.
func TestShardsComeAndGo(t *testing.T) {
	s := newScaling(t, 1)
	s.wantLayout("1:1/1-0 s0Open")
	template := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: s.namespace}}
	s.get(template)

	s.want(3)
	s.run(s.grid)
	s.wantLayout("1:1/1-0 s0Open s1Open s2Open") // nobody is told before they serve
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/AddingShards False/AsExpected")
	s.startShard(1)
	s.run(s.grid)
	s.wantLayout("2:2/2-0 s0Open s1Open s2Open")
	s.startShard(2)
	s.restart()
	s.run(s.grid)
	s.wantLayout("3:3/3-0 s0Open s1Open s2Open")
	s.run(s.grid)
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	now := template.DeepCopy()
	s.get(now)
	if now.Generation != template.Generation {
		t.Error("the StatefulSet of shard 0 has changed: its pods would be replaced because shards were added")
	}
	s.wantNoWrites(s.grid, "with three shards")

	s.want(2)
	s.run(s.grid)
	s.wantLayout("4:2/3-0 s0Open s1Open s2Draining")
	s.wantEvent("Normal ShardDraining")
	s.nodesSay(2, 7, time.Minute)
	s.restart()
	s.run(s.grid)
	if l := s.grid.Status.Leaving; len(l) != 1 || l[0].Shard != 2 || l[0].Stage != api.LeavingDraining || l[0].OrdersLeft == nil || *l[0].OrdersLeft != 14 || !strings.Contains(l[0].WaitsFor, "rtd-s2-p0 holds 7 entries that its sink does not") {
		t.Errorf("leaving %+v", l)
	}
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/RemovingShards False/AsExpected")
	if s.again == 0 || s.again > drainAgain {
		t.Errorf("looks again after %v", s.again)
	}
	s.nodesSay(2, 0, time.Minute)
	s.run(s.grid)
	s.wantLayout("4:2/3-0 s0Open s1Open s2Retired")
	s.wantEvent("Normal ShardDrained")
	if left := s.left(2); len(left) != 7 {
		t.Errorf("after it was retired, and before anybody was told, of shard 2 there are %v", left)
	}

	// From here on there is no way back: clients are told, then it goes, whoever carries it out and whatever spec says.
	s.want(3)
	s.restart()
	s.run(s.grid)
	s.wantLayout("4:2/3-0 5:2/2-1 s0Open s1Open s2Retired")
	s.restart()
	s.run(s.grid)
	if left := fmt.Sprint(s.left(2)); strings.Contains(left, "StatefulSet") || !strings.Contains(left, "Role") {
		t.Errorf("its pods go first; of shard 2 there are %v", left)
	}
	s.killPods(2)
	for range 8 { // one pass sees what the one before deleted
		s.restart()
		s.run(s.grid)
		if len(s.left(2)) == 0 {
			break
		}
	}
	s.wantEvent("Normal ShardRemoved")

	// And now it is made anew, as spec asks meanwhile.
	for range 3 {
		s.run(s.grid)
	}
	if left := s.left(2); len(left) != 7 {
		t.Errorf("of the new shard 2 there are %v", left)
	}
	s.startShard(2)
	s.run(s.grid)
	s.wantLayout("6:3/3-1 s0Open s1Open s2Open")
	s.run(s.grid)
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	if len(s.grid.Status.Leaving) != 0 || s.grid.Status.OpenShards != 3 || s.grid.Status.Selector == "" {
		t.Errorf("status %+v", s.grid.Status)
	}
}

// TestDrainIsTakenBack: a shard that drains takes orders again when spec asks for it again, and is not removed by what
// its nodes said before.
func TestDrainIsTakenBack(t *testing.T) {
	s := newScaling(t, 2)
	s.want(1)
	s.run(s.grid)
	s.wantLayout("2:1/2-0 s0Open s1Draining")
	s.want(2)
	s.run(s.grid)
	s.wantLayout("3:2/2-0 s0Open s1Open")
	s.wantEvent("Normal ShardOpened")
	s.nodesSay(1, 0, time.Minute)
	s.want(1)
	s.run(s.grid)
	s.wantLayout("4:1/2-0 s0Open s1Draining") // what the nodes say is of the decision before
	s.run(s.grid)
	s.wantLayout("4:1/2-0 s0Open s1Draining")
	if w := s.grid.Status.Leaving[0].WaitsFor; !strings.Contains(w, "has not heard that rtd-s1-p0 takes no more orders") {
		t.Errorf("waits for %q", w)
	}
}

// TestDrainIsRaced: a record that changes between the nodes' answers and the operator's write is not retired.
func TestDrainIsRaced(t *testing.T) {
	s := newScaling(t, 2)
	s.want(1)
	s.run(s.grid)
	s.nodesSay(1, 0, time.Minute)
	s.nodes.mu.Lock()
	s.nodes.onAsk = func() { // a hand-over is accepted while the nodes are asked
		record := s.partition(s.grid, 1, 0)
		other := processOf(s.grid, 1, 1)
		record.Status.Epoch, record.Status.ChangeID, record.Status.Primary = record.Status.Epoch+1, "handed-over", &other
		if err := s.asPod(s.grid, 1).Status().Update(s.t.Context(), record); err != nil {
			s.t.Error(err)
		}
	}
	s.nodes.mu.Unlock()
	s.run(s.grid)
	s.wantLayout("2:1/2-0 s0Open s1Draining")
	s.run(s.grid) // the nodes do not know of the hand-over
	s.wantLayout("2:1/2-0 s0Open s1Draining")
	s.nodesSay(1, 0, time.Minute)
	s.run(s.grid)
	s.wantLayout("2:1/2-0 s0Open s1Retired")
}

// TestNothingDownstreamIsRefused: what the API server let pass because the policy was another one.
func TestNothingDownstreamIsRefused(t *testing.T) {
	s := &scaling{bench: newBench(t)}
	s.grid = s.create("rtd", api.OrderGridSpec{Shards: 2, ScaleIn: api.ScaleInSpec{Policy: api.ScaleInDiscardOrders}})
	s.run(s.grid)
	s.play(s.grid)
	s.want(1)
	s.grid.Spec.ScaleIn.Policy = api.ScaleInWhenDownstream
	s.update(s.grid)
	s.run(s.grid)
	s.wantLayout("1:2/2-0 s0Open s1Open")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady True/DrainRefused")
	s.grid.Spec.ScaleIn.Policy = api.ScaleInDiscardOrders
	s.update(s.grid)
	s.run(s.grid)
	s.wantLayout("2:1/2-0 s0Open s1Draining")
	s.nodesSay(1, 50, time.Minute)
	s.run(s.grid)
	s.wantLayout("2:1/2-0 s0Open s1Retired")
	s.wantEvent("Normal ShardDrained")
}

// removeShard takes the highest shard away, of two, and the pods with it.
func (s *scaling) removeShard() {
	s.t.Helper()
	s.want(1)
	s.run(s.grid)
	s.nodesSay(1, 0, time.Minute)
	s.run(s.grid)
	for range 2 { // clients are told, then the StatefulSet goes
		s.run(s.grid)
	}
	s.killPods(1)
	for range 8 {
		s.restart()
		if s.run(s.grid); len(s.left(1)) == 0 {
			return
		}
	}
	s.t.Fatalf("of shard 1 there are %v", s.left(1))
}

// makeShard makes shard 1 anew and returns the numbers that its partitions begin with.
func (s *scaling) makeShard() (begins []int64) {
	s.t.Helper()
	s.want(2)
	s.run(s.grid)
	s.restart() // nothing of it is in the operator's memory
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.run(s.grid)
	s.startShard(1)
	for range 3 {
		s.run(s.grid)
	}
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	for index := range s.grid.Spec.Replicas {
		p := s.partition(s.grid, 1, index)
		if p.Status.Epoch == 0 {
			s.t.Errorf("%s is not claimed", p.Name)
		}
		begins = append(begins, p.Spec.FirstSeq)
	}
	return begins
}

// TestNewShardCountsElsewhere: partitions of a shard that is made anew begin above every number that those of the removed
// one reached, so that no order gets an id that was given before: without the operator's memory, without status, and with
// a clock that has gone back.
func TestNewShardCountsElsewhere(t *testing.T) {
	s := newScaling(t, 2)
	for shard := range int32(2) {
		for index := range s.grid.Spec.Replicas {
			if p := s.partition(s.grid, shard, index); p.Spec.FirstSeq != 0 {
				t.Errorf("%s begins with %d; a grid that is made begins with 1", p.Name, p.Spec.FirstSeq)
			}
		}
	}
	s.removeShard()
	if l := s.partition(s.grid, 0, 0).Spec.Layout; l.NextFirstSeq != 52 {
		t.Errorf("the records remember %d; the removed shard ended at 51", l.NextFirstSeq)
	}
	grid := s.grid.DeepCopy() // as from a backup that leaves status out
	grid.Status = api.OrderGridStatus{}
	if err := s.client.Status().Update(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	made := s.clock.Now()
	first := s.makeShard()
	for index, begins := range first {
		if begins != made.Unix()<<20+1 {
			t.Errorf("partition %d begins with %d, want it of the time it was made at, %d", index, begins, made.Unix()<<20+1)
		}
	}

	s.removeShard()
	s.clock.SetTime(time.Unix(1000, 0))
	for index, begins := range s.makeShard() {
		if want := first[0] + 51; begins != want {
			t.Errorf("partition %d begins with %d though the one before ended at %d, want %d", index, begins, want-1, want)
		}
	}
	p := s.partition(s.grid, 1, 0)
	p.Spec.FirstSeq++
	if err := s.client.Update(t.Context(), p); err == nil || !strings.Contains(err.Error(), "ids of orders were made from it") {
		t.Errorf("changed: %v, want a refusal", err)
	}
	s.wantNoWrites(s.grid, "with the new shard")
}
