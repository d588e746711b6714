package inject

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// chaosBench is the injector on a real API server on which no Chaos Mesh runs: the tests play it.
func chaosBench(t *testing.T) (*bench, *ChaosMesh) {
	b := newBench(t)
	return b, &ChaosMesh{Client: b.client, ProbeImage: "order-probe:1"}
}

func (b *bench) fault(spec api.DrillFault, pods ...corev1.Pod) *Fault {
	return &Fault{Drill: b.drill(), Step: 3, Spec: spec, Grid: testGrid(b.namespace), Pods: pods, Duration: 10 * time.Second}
}

func (b *bench) chaos(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(chaosGroup.WithKind(kind))
	o.SetNamespace(b.namespace)
	o.SetName(name)
	return o
}

func (b *bench) mustState(i Injector, f *Fault, want Phase) State {
	b.t.Helper()
	s, err := i.State(b.t.Context(), f)
	if err != nil || s.Phase != want {
		b.t.Fatalf("%+v, %v; want %s", s, err, want)
	}
	return s
}

func TestLifeOfAFault(t *testing.T) {
	b, c := chaosBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultNetworkPartition}, b.pod("g-s0-0", "10.1.0.1"))
	f.Peers = []corev1.Pod{b.pod("g-s0-1", "10.1.0.2")}
	b.mustState(c, f, Gone)
	for range 2 { // the second finds what the first made
		if err := c.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	b.mustState(c, f, Pending)

	o := b.chaos(kindNetwork, "night-3")
	if err := b.get(o); err != nil {
		t.Fatal(err)
	}
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "AllInjected", "status": "True"}},
		"experiment": map[string]any{"desiredPhase": "Run", "containerRecords": []any{map[string]any{"id": b.namespace + "/g-s0-0", "selectorKey": ".", "phase": "Injected", "injectedCount": int64(1), "recoveredCount": int64(0)}}}}
	o.SetFinalizers([]string{"chaos-mesh/records"})
	if err := b.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.mustState(c, f, Injected)

	// Another step of the drill with the same number prefix is not this one.
	other := *f
	other.Step = 30
	b.mustState(c, &other, Gone)

	if left, err := c.Leftovers(t.Context(), f.Drill); err != nil || len(left) != 1 || !strings.Contains(left[0], "NetworkChaos "+b.namespace+"/night-3") {
		t.Errorf("%q, %v", left, err)
	}
	for range 2 {
		if err := c.Recover(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	b.mustState(c, f, Recovering)
	if err := c.Inject(t.Context(), f); err == nil || IsPermanent(err) {
		t.Errorf("injected anew while the previous one is being deleted: %v", err)
	}
	if err := b.get(o); err != nil {
		t.Fatal(err)
	}
	o.SetFinalizers(nil)
	if err := b.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.mustState(c, f, Gone)
	if err := c.Recover(t.Context(), f); err != nil {
		t.Errorf("nothing is left, but: %v", err)
	}
	if left, err := c.Leftovers(t.Context(), f.Drill); err != nil || len(left) != 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// A kill hits the selected pod, not the next of its name.
func TestAnotherPodOfTheName(t *testing.T) {
	b, c := chaosBench(t)
	pod := b.pod("g-s0-0", "10.1.0.1")
	f := b.fault(api.DrillFault{Type: api.FaultPodKill}, pod)
	f.Pods[0].UID = "the-one-before"
	if err := c.Inject(t.Context(), f); err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "has been replaced") {
		t.Errorf("%v", err)
	}
	f.Pods[0].Name = "g-s0-9"
	if err := c.Inject(t.Context(), f); err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%v", err)
	}
	b.mustState(c, f, Gone)
}

func TestForeignObject(t *testing.T) {
	b, c := chaosBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultPodKill}, b.pod("g-s0-0", "10.1.0.1"))
	objects, err := chaosObjects(f, &surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	objects[0].SetLabels(map[string]string{LabelDrill: "night", LabelDrillUID: "an-earlier-drill-of-the-name"})
	if err := b.client.Create(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	if err := c.Inject(t.Context(), f); err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "does not belong to this drill") {
		t.Errorf("%v", err)
	}
	if err := c.RecoverAll(t.Context(), f.Drill); err != nil {
		t.Error(err)
	}
	if err := b.get(b.chaos(kindPod, "night-3")); err != nil {
		t.Errorf("an object of another owner was removed: %v", err)
	}
}

// Chaos Mesh retries an injection that the kernel cannot do for ever. Without its entries in the pod's work list, but
// with those of others, it finishes.
func TestUnwedge(t *testing.T) {
	b, c := chaosBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: lasts(5e6)}}, b.pod("g-s0-0", "10.1.0.1"))
	f.Peers = []corev1.Pod{b.pod("g-s0-1", "10.1.0.2")}
	if err := c.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	o := b.chaos(kindNetwork, "night-3")
	if err := b.get(o); err != nil {
		t.Fatal(err)
	}
	o.Object["status"] = map[string]any{"experiment": map[string]any{"desiredPhase": "Stop", "containerRecords": []any{map[string]any{
		"id": b.namespace + "/g-s0-0", "selectorKey": ".", "phase": "Not Injected/Wait", "injectedCount": int64(0), "recoveredCount": int64(0),
		"events": []any{map[string]any{"type": "Failed", "operation": "Apply", "message": "unable to set tcs for pod g-s0-0", "timestamp": "2026-11-21T12:00:00Z"}}}}}}
	o.SetFinalizers([]string{"chaos-mesh/records"})
	if err := b.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	work := b.chaos("PodNetworkChaos", "g-s0-0")
	entry := func(name, source string) map[string]any {
		return map[string]any{"name": name, "ipsetType": "hash:net", "source": source}
	}
	ours, others := b.namespace+"/night-3", b.namespace+"/another"
	work.Object["spec"] = map[string]any{"ipsets": []any{entry("a", ours), entry("b", others)},
		"tcs": []any{map[string]any{"type": "netem", "source": ours, "delay": map[string]any{"latency": "1ms"}}}}
	b.create(work)

	if err := c.Recover(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	count := func(list string) int {
		if err := b.get(work); err != nil {
			t.Fatal(err)
		}
		entries, _, _ := unstructured.NestedSlice(work.Object, "spec", list)
		return len(entries)
	}
	if err := c.Recover(t.Context(), f); err != nil || count("ipsets") != 2 {
		t.Errorf("Chaos Mesh was not given time: %d entries, %v", count("ipsets"), err)
	}
	c.Now = func() time.Time { return time.Now().Add(stuckAfter + time.Second) }
	for range 2 {
		if err := c.Recover(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if count("ipsets") != 1 || count("tcs") != 0 {
		t.Errorf("%d ipsets, %d tcs; want the other's one and none", count("ipsets"), count("tcs"))
	}
	if err := b.get(o); err != nil {
		t.Errorf("the object was deleted before Chaos Mesh recovered it: %v", err)
	}
}

// The network of the pods' orders is found from the records and the pods themselves.
func TestFaultOnTheDataNetwork(t *testing.T) {
	b, c := chaosBench(t)
	grid := testGrid(b.namespace)
	record := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: "g-p0"}, Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "g"}, Replicas: 2, MinInSync: 1, PreferredPod: "g-s0-0"}}
	b.create(record)
	var pods []corev1.Pod
	var members []api.Member
	for i, name := range []string{"g-s0-0", "g-s0-1"} {
		p := b.pod(name, "10.1.0."+string(rune('1'+i)))
		p.Annotations = map[string]string{networkStatus: `[{"name":"cbr0","interface":"eth0","ips":["10.1.0.` + string(rune('1'+i)) + `"],"default":true},{"name":"trading/fast","interface":"net1","ips":["192.168.7.` + string(rune('1'+i)) + `"]}]`}
		if err := b.client.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, p)
		members = append(members, api.Member{ID: name + "/0123456789abcdef", PodName: name, BootID: "0123456789abcdef", Address: "192.168.7." + string(rune('1'+i)) + ":7400"})
	}
	for epoch := int64(1); epoch <= 2; epoch++ {
		record.Status = api.GridPartitionStatus{Epoch: epoch, Lineage: 1, ChangeID: "c" + string(rune('0'+epoch)), Primary: &members[0], InSync: members[:epoch]}
		if err := b.client.Status().Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	f := b.fault(api.DrillFault{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: lasts(5e6)}}, pods[0])
	f.Grid, f.Peers = grid, pods[1:]
	// As known to a restarted operator: names and UIDs.
	f.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "g-s0-0", UID: pods[0].UID}}}
	if err := c.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(chaosGroup.WithKind("NetworkChaosList"))
	if err := b.client.List(t.Context(), &list, client.InNamespace(b.namespace)); err != nil || len(list.Items) != 2 {
		t.Fatalf("%d objects, %v", len(list.Items), err)
	}
	for _, o := range list.Items {
		targets, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "externalTargets")
		device, _, _ := unstructured.NestedString(o.Object, "spec", "device")
		if device != "net1" || len(targets) != 1 || !strings.HasPrefix(targets[0], "192.168.7.") {
			t.Errorf("%s: device %q, targets %v", o.GetName(), device, targets)
		}
	}
	if err := c.RecoverAll(t.Context(), f.Drill); err != nil {
		t.Fatal(err)
	}
	b.mustState(c, f, Gone)
}

func TestAPIServerPartition(t *testing.T) {
	b, c := chaosBench(t)
	f := b.fault(api.DrillFault{Type: api.FaultAPIServerPartition}, b.pod("g-s0-0", "10.1.0.1"))
	if err := c.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	o := b.chaos(kindNetwork, "night-3")
	if err := b.get(o); err != nil {
		t.Fatal(err)
	}
	targets, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "externalTargets")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	if err := b.get(service); err != nil {
		t.Fatal(err)
	}
	if len(targets) < 2 || targets[0] != service.Spec.ClusterIP || !strings.Contains(targets[1], ":") {
		t.Errorf("%v; want the Service's %s and the endpoints with their ports", targets, service.Spec.ClusterIP)
	}
}
