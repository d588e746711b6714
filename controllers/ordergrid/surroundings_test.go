package ordergrid

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestPoolTooSmall: the condition has what is missing, one event is sent, and a new node ends it.
func TestPoolTooSmall(t *testing.T) {
	b := newBench(t)
	b.reconcile.KubeNodes = b.client
	pool := map[string]string{"test/pool": b.namespace}
	b.addNode("one", pool)
	b.addNode("two", nil)
	grid := b.create("rtd", api.OrderGridSpec{Placement: api.GridPlacement{NodeSelector: pool}})
	b.run(grid)
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionSchedulable)
	want := "the pods need 2 Kubernetes nodes with test/pool=" + b.namespace + "; the cluster has 1 (" + b.namespace + "-one)."
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reasonNodesMissing || !strings.HasPrefix(c.Message, want) || !strings.Contains(c.Message, "no label test/pool=") {
		t.Fatalf("%+v", c)
	}
	b.wantEvent("Warning NodesMissing the pods need 2 Kubernetes nodes")
	b.wantNoWrites(grid, "the nodes are as they were")
	if requests := b.reconcile.gridsThatWait(t.Context(), nil); !slices.Contains(requests, request(grid)) {
		t.Errorf("a new node would not trigger a reconcile: %v", requests)
	}

	b.addNode("three", pool)
	b.run(grid)
	if !meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionSchedulable) {
		t.Fatalf("%+v", grid.Status.Conditions)
	}
	b.wantEvent("Normal NodesFit ")
	if requests := b.reconcile.gridsThatWait(t.Context(), nil); slices.Contains(requests, request(grid)) {
		t.Error("a healthy grid is reconciled for every node")
	}
}

// TestNoRollWithoutNodes: a change of placement that no node meets replaces no pod, which could not be scheduled again.
func TestNoRollWithoutNodes(t *testing.T) {
	r := newRolling(t)
	r.reconcile.KubeNodes = r.client
	r.grid.Spec.Placement.NodeSelector = map[string]string{"test/pool": "nowhere-" + r.namespace}
	if err := r.client.Update(t.Context(), r.grid); err != nil {
		t.Fatal(err)
	}
	r.run(r.grid)
	r.revision("rev2")
	r.clock.SetTime(r.clock.Now().Add(time.Hour))
	for _, write := range r.run(r.grid) {
		if strings.HasSuffix(write, "/eviction") {
			t.Errorf("%s, although no node fits", write)
		}
	}
	c := meta.FindStatusCondition(r.grid.Status.Conditions, api.ConditionProgressing)
	if c.Reason != reasonUpdating || !strings.Contains(c.Message, "the present template fits too few Kubernetes nodes, see condition Schedulable") {
		t.Errorf("%+v", c)
	}
}

// TestNetworkMissing: this API server has no kind NetworkAttachmentDefinition.
func TestNetworkMissing(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Fabric: &api.FabricSpec{Network: api.NetworkReference{Name: "ib"}}})
	b.run(grid)
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionFabricReady)
	if c == nil || c.Reason != reasonNetworkMissing || !strings.Contains(c.Message, "install Multus") {
		t.Errorf("%+v", c)
	}
	b.wantNoWrites(grid, "the network is missing as before")
}

func (b *bench) addNode(name string, labels map[string]string) {
	b.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-" + name, Labels: labels}}
	if err := b.client.Create(b.t.Context(), node); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.client.Delete(context.Background(), node) }) // the test's own context has ended by then
	// A new node may be tainted until its network is ready.
	node.Spec.Taints = nil
	if err := b.client.Update(b.t.Context(), node); err != nil {
		b.t.Fatal(err)
	}
}

// TestWhichNodesMatter: a node's periodic status triggers no reconcile; changes of where pods fit do.
func TestWhichNodesMatter(t *testing.T) {
	before := kubeNode("a")
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"its heartbeat": {func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady})
		}, false},
		"an image": {func(n *corev1.Node) { n.Status.Images = append(n.Status.Images, corev1.ContainerImage{}) }, false},
		"a label":  {label("x", "y"), true}, "a removed label": {without(api.LabelRDMA), true},
		"a taint": {taint("x", corev1.TaintEffectNoSchedule), true}, "cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"another size": {allocatable(corev1.ResourceCPU, "2"), true}, "the same size": {allocatable(corev1.ResourceCPU, "16000m"), false},
	} {
		after := before.DeepCopy()
		test.change(after)
		if got := nodeMatters.Update(ctrlevent.UpdateEvent{ObjectOld: &before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: matters %v", name, got)
		}
	}
}

// TestStripNode: the remainder of a node is enough for preflight.
func TestStripNode(t *testing.T) {
	node := kubeNode("a", taint("desk", corev1.TaintEffectNoSchedule))
	node.Annotations, node.Status.Images = map[string]string{"big": strings.Repeat("x", 1000)}, make([]corev1.ContainerImage, 50)
	got, err := StripNode(&node)
	stripped, ok := got.(*corev1.Node)
	if err != nil || !ok || len(stripped.Annotations)+len(stripped.Status.Images) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	grid := fabricGrid()
	template := pod(grid, 0, testDefaults)
	if a, b := preflight(grid, &template, []corev1.Node{node}), preflight(grid, &template, []corev1.Node{*stripped}); a != b || a == "" {
		t.Errorf("%q, stripped %q", a, b)
	}
	if other, err := StripNode("something else"); other != "something else" || err != nil {
		t.Error(other, err)
	}
}

// TestStripPod: the remainder of a pod is what the operator uses.
func TestStripPod(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0-0", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "grid-node"}}},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	out, err := StripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*corev1.Pod)
	if got.Name != "rtd-s0-0" || got.UID != "u" || got.ResourceVersion != "7" || got.Labels["a"] != "b" || got.Spec.NodeName != "n" || !podReady(got) || got.Status.PodIP != "10.0.0.1" {
		t.Errorf("%+v", got)
	}
	if len(got.ManagedFields) != 0 || len(got.Spec.Containers) != 0 {
		t.Errorf("unused fields are kept: %+v", got)
	}
	// What is read of pods to determine a stage of TLS.
	for stage := stagePlain; stage <= stageTLS; stage++ {
		args := append([]string{"serve"}, transitionArgs(stage)...)
		if stage != stagePlain {
			args = append(args, flagCert, "/etc/tls/tls.crt")
		}
		for n, outside := range []int32{-1, 0, 17401} {
			var ports []corev1.ContainerPort
			if outside >= 0 {
				args, ports = append(slices.Clone(args), flagExternal, ":7401"), []corev1.ContainerPort{{Name: portData}, {Name: portExternal, ContainerPort: 7401, HostPort: outside}}
			}
			pod.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: containerName, Args: args, Ports: ports}}
			out, _ := StripPod(pod)
			listens, port := listensOutside(&out.(*corev1.Pod).Spec)
			if wantListens, wantPort := listensOutside(&pod.Spec); listens != wantListens || listens != (n > 0) || port != wantPort {
				t.Errorf("listens for external clients: %v at host port %d, of the pod: %v, %d", listens, port, wantListens, wantPort)
			}
			if got := out.(*corev1.Pod); stageOf(&got.Spec) != stage {
				t.Errorf("stage %d is stage %d", stage, stageOf(&got.Spec))
			}
		}
	}
	if other, err := StripPod("something else"); other != "something else" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}
