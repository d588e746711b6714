package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// gridBench has grid g of one shard with two copies, partition g-p0 led by g-s0-0.
func gridBench(t *testing.T) (*bench, *Grid, *api.OrderGrid, *api.GridPartition) {
	b := newBench(t)
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	b.create(grid)
	p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: "g-p0"}, Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "g"}, Replicas: 2, MinInSync: 1, PreferredPod: "g-s0-0"}}
	b.create(p)
	b.lead(p, "g-s0-0")
	b.lead(p, "g-s0-0", "g-s0-1")
	return b, &Grid{Client: b.client}, grid, p
}

// lead makes the first pod primary, the others backups.
func (b *bench) lead(p *api.GridPartition, pods ...string) {
	b.t.Helper()
	if err := b.get(p); err != nil {
		b.t.Fatal(err)
	}
	var members []api.Member
	for _, name := range pods {
		members = append(members, api.Member{ID: name + "/0123456789abcdef", PodName: name, BootID: "0123456789abcdef", Address: "10.1.0.1" + name[len(name)-1:] + ":7400"})
	}
	p.Status = api.GridPartitionStatus{Epoch: p.Status.Epoch + 1, Lineage: 1, ChangeID: "c" + pods[0] + string(rune('a'+p.Status.Epoch)), Primary: &members[0], InSync: members}
	if err := b.client.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

func TestHandOver(t *testing.T) {
	b, g, _, p := gridBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultHandOver})
	f.Partitions = []string{"g-p0"}
	b.mustState(g, f, Gone)
	for range 2 {
		if err := g.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	b.mustState(g, f, Pending)
	if err := b.get(p); err != nil || p.Annotations[api.AnnotationPreferredPod] != "g-s0-1" {
		t.Fatalf("%v, %v", p.Annotations, err)
	}
	b.lead(p, "g-s0-1", "g-s0-0")
	b.mustState(g, f, Injected)
	if left, err := g.Leftovers(t.Context(), f.Drill); err != nil || len(left) != 1 || !strings.Contains(left[0], "g-p0") {
		t.Errorf("%q, %v", left, err)
	}
	another := *f
	another.Step++
	if err := g.Inject(t.Context(), &another); err == nil || !strings.Contains(err.Error(), "another step") {
		t.Errorf("two steps move the same partition: %v", err)
	}
	for range 2 {
		if err := g.Recover(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	b.mustState(g, f, Gone)
	if err := b.get(p); err != nil || len(p.Annotations) != 0 {
		t.Errorf("%v, %v", p.Annotations, err)
	}
}

// Annotations set by the user are restored afterwards, also if only the drill is known.
func TestHandOverKeepsThePreferredPod(t *testing.T) {
	b, g, _, p := gridBench(t)
	p.Annotations = map[string]string{api.AnnotationPreferredPod: "g-s0-0", "mine": "1"}
	if err := b.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f := b.fault(api.DrillFault{Type: api.FaultHandOver})
	f.Partitions, f.Peers = []string{"g-p0"}, []corev1.Pod{podOf("g-s0-1")}
	if err := g.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := g.RecoverAll(t.Context(), f.Drill); err != nil {
		t.Fatal(err)
	}
	if err := b.get(p); err != nil || p.Annotations[api.AnnotationPreferredPod] != "g-s0-0" || p.Annotations["mine"] != "1" || len(p.Annotations) != 2 {
		t.Errorf("%v, %v", p.Annotations, err)
	}
	f.Peers = []corev1.Pod{podOf("g-s0-7")}
	if err := g.Inject(t.Context(), f); err == nil || !strings.Contains(err.Error(), "[g-s0-1]") {
		t.Errorf("a pod that is not in sync: %v", err)
	}
	b.lead(p, "g-s0-0")
	f.Peers = nil
	if err := g.Inject(t.Context(), f); err == nil || !strings.Contains(err.Error(), "no backup") {
		t.Errorf("no backup to hand over to: %v", err)
	}
}

func TestRollingUpdate(t *testing.T) {
	b, g, grid, _ := gridBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultRollingUpdate})
	b.mustState(g, f, Gone)
	for range 2 {
		if err := g.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.get(grid); err != nil || grid.Generation != 2 || !strings.Contains(string(grid.Spec.PodTemplate.Raw), annotationRestart) {
		t.Fatalf("generation %d, template %s, %v", grid.Generation, grid.Spec.PodTemplate.Raw, err)
	}
	b.mustState(g, f, Pending)
	status := func(updated int32, progressing metav1.ConditionStatus) {
		if err := b.get(grid); err != nil {
			t.Fatal(err)
		}
		grid.Status = api.OrderGridStatus{ObservedGeneration: grid.Generation, Pods: 2, UpdatedPods: updated,
			Conditions: []metav1.Condition{{Type: api.ConditionProgressing, Status: progressing, Reason: "R", Message: "1 of 2", LastTransitionTime: metav1.Now()}}}
		if err := b.client.Status().Update(t.Context(), grid); err != nil {
			t.Fatal(err)
		}
	}
	status(1, metav1.ConditionTrue)
	b.mustState(g, f, Injected)
	if err := g.Recover(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b.mustState(g, f, Injected) // the update cannot be reverted
	status(2, metav1.ConditionFalse)
	if err := g.Recover(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b.mustState(g, f, Gone)
	if err := b.get(grid); err != nil || grid.Generation != 2 || len(grid.Annotations) != 0 {
		t.Errorf("the end of the step is another update: generation %d, %v, %v", grid.Generation, grid.Annotations, err)
	}
	// For the next step it is another update; when the drill is aborted, nothing is waited for.
	f.Step++
	if err := g.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := b.get(grid); err != nil || grid.Generation != 3 {
		t.Errorf("generation %d, %v", grid.Generation, err)
	}
	if err := g.RecoverAll(t.Context(), f.Drill); err != nil {
		t.Fatal(err)
	}
	b.mustState(g, f, Gone)
}

func TestPodDelete(t *testing.T) {
	b, g, _, _ := gridBench(t)
	pod := b.pod("g-s0-0", "10.1.0.1")
	f := b.fault(api.DrillFault{Type: api.FaultPodDelete}, pod)
	b.mustState(g, f, Gone)
	f.Pods[0].UID = "the-one-before"
	if err := g.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	live := podOf("g-s0-0")
	live.Namespace = b.namespace
	if err := b.get(&live); err != nil || live.DeletionTimestamp != nil {
		t.Fatalf("the pod's successor was deleted: %v", err)
	}
	f.Pods[0].UID = pod.UID
	for range 2 {
		if err := g.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.get(&live); err == nil && (live.DeletionTimestamp == nil || *live.DeletionGracePeriodSeconds == 0) {
		t.Error("the pod is not deleted with its grace period")
	}
	b.mustState(g, f, Injected)
	if left, err := g.Leftovers(t.Context(), f.Drill); err != nil || len(left) != 1 {
		t.Errorf("%q, %v", left, err)
	}
	if err := g.Recover(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b.mustState(g, f, Gone)
}

func TestGridSupports(t *testing.T) {
	b, g, grid, _ := gridBench(t)
	single := grid.DeepCopy()
	single.Spec.Replicas = 1
	faults := []api.DrillFault{{Type: api.FaultHandOver}, {Type: api.FaultRollingUpdate}, {Type: api.FaultPodDelete}, {Type: api.FaultPodKill}}
	for _, grid := range []*api.OrderGrid{grid, single} {
		got := mustSupport(t, g, &Scope{Drill: b.drill(), Grid: grid, Faults: faults})
		want := Yes
		if grid.Spec.Replicas == 1 {
			want = No
		}
		if got[api.FaultHandOver].Verdict != want || got[api.FaultRollingUpdate].Verdict != Yes || got[api.FaultPodDelete].Verdict != Yes || got[api.FaultPodKill].Verdict != No {
			t.Errorf("%+v", got)
		}
	}
	if err := g.Inject(t.Context(), b.fault(kill)); !IsPermanent(err) {
		t.Errorf("%v", err)
	}
}
