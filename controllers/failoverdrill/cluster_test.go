package failoverdrill

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// pauseImage replaces the image of a pod that Chaos Mesh lets fail.
const pauseImage = "gcr.io/google-containers/pause:latest"

// grid creates an OrderGrid of one shard with all copies in sync.
func (b *bench) grid(replicas int32) *api.OrderGrid {
	b.t.Helper()
	g := &api.OrderGrid{ObjectMeta: b.meta(b.gridName), Spec: api.OrderGridSpec{Partitions: replicas, Replicas: replicas, MinInSync: 1, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	b.create(g)
	b.setGrid(g, api.ConditionRedundant, metav1.ConditionTrue)
	b.setGrid(g, api.ConditionAvailable, metav1.ConditionTrue)
	for i := range replicas {
		b.gridPod(api.PodName(b.gridName, 0, i), fmt.Sprintf("node-%d", i))
	}
	for i := range replicas {
		p := &api.GridPartition{ObjectMeta: b.meta(api.PartitionName(b.gridName, i)),
			Spec: api.GridPartitionSpec{Partition: i, Replicas: replicas, MinInSync: 1, PreferredPod: api.PodName(b.gridName, 0, i)}}
		p.Labels = map[string]string{api.LabelGrid: b.gridName, api.LabelShard: "0"}
		p.Spec.GridRef.Name = b.gridName
		b.create(p)
		for j := range replicas {
			name := api.PodName(b.gridName, 0, (i+j)%replicas)
			m := api.Member{PodName: name, BootID: fmt.Sprintf("%016x", j+1), Address: fmt.Sprintf("10.0.0.%d:7400", (i+j)%replicas+1)}
			m.ID = m.PodName + "/" + m.BootID
			p.Status.InSync = append(p.Status.InSync, m)
		}
		p.Status.Epoch, p.Status.Lineage, p.Status.ChangeID, p.Status.Primary, p.Status.InSyncCount = 1, 1, "c", &p.Status.InSync[0], replicas
		b.claim(p)
	}
	return g
}

// claim writes the first configuration; further copies join one by one.
func (b *bench) claim(p *api.GridPartition) {
	b.t.Helper()
	all := p.Status.InSync
	for n := 1; n <= len(all); n++ {
		p.Status.Epoch, p.Status.ChangeID = int64(n), fmt.Sprintf("c%d", n)
		p.Status.InSync, p.Status.InSyncCount, p.Status.Primary = all[:n], int32(n), &all[0]
		if err := b.client.Status().Update(b.t.Context(), p); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) setGrid(g *api.OrderGrid, kind string, status metav1.ConditionStatus) {
	b.t.Helper()
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: "set by the test"})
	if err := b.client.Status().Update(b.t.Context(), g); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) gridPod(name, node string) {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: b.meta(name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "grid-node", Image: "grid-node:test"}}}}
	p.Labels = objects.Labels(objects.GridNode, b.gridName)
	p.Labels[api.LabelGrid], p.Labels[api.LabelShard] = b.gridName, "0"
	b.create(p)
	b.ready(p, true)
}

// ready plays the kubelet: a pod's container runs, or was ended.
func (b *bench) ready(p *corev1.Pod, is bool) {
	b.t.Helper()
	container := corev1.ContainerStatus{Name: p.Spec.Containers[0].Name, Ready: is}
	if is {
		container.State.Running = &corev1.ContainerStateRunning{}
	} else {
		container.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus(status(is))}}
	if err := b.client.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

// playKubelet runs a pod for every Job, once.
func (b *bench) playKubelet() {
	b.t.Helper()
	var jobs batchv1.JobList
	if err := b.client.List(b.t.Context(), &jobs, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		p := &corev1.Pod{ObjectMeta: b.meta(job.Name + "-x")}
		if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
			continue
		}
		p.Spec, p.Labels = *job.Spec.Template.Spec.DeepCopy(), job.Spec.Template.Labels
		p.Labels[batchv1.ControllerUidLabel] = string(job.UID)
		p.Spec.NodeName = "node-probe"
		b.create(p)
		b.ready(p, true)
	}
}

// recorderPod is the recorder's pod, nil if it is gone.
func (b *bench) recorderPod(d *api.FailoverDrill) *corev1.Pod {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: b.meta(recorderName(d) + "-x")}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return nil
	}
	return p
}

// kill deletes a pod without grace, and lets the StatefulSet make another.
func (b *bench) kill(name string) {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: b.meta(name)}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		b.t.Fatal(err)
	}
	node := p.Spec.NodeName
	if err := b.client.Delete(b.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		b.t.Fatal(err)
	}
	b.gridPod(name, node)
	b.recorder.disturb()
	if b.killed != nil {
		b.killed(name)
	}
}

// meshPlayer writes what Chaos Mesh's controller manager writes: finalizers, records and conditions as its
// controllers/common and finalizers packages do.
type meshPlayer struct {
	b *bench
	// dead: the controller manager does not run; deaf: it ignores new objects.
	dead, deaf bool
	// done are the objects that were injected, in that order, as "kind name targets".
	done []string
}

const meshFinalizer = "chaos-mesh/records"

// install creates the running pods by which Chaos Mesh is detected.
func (m *meshPlayer) install() {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chaos-mesh"}}
	if err := m.b.client.Create(m.b.t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		m.b.t.Fatal(err)
	}
	for _, component := range []string{"chaos-daemon", "controller-manager"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos-mesh", Name: component, Labels: map[string]string{"app.kubernetes.io/component": component}},
			Spec: corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "c", Image: "chaos"}}}}
		err := m.b.client.Create(m.b.t.Context(), p)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			m.b.t.Fatal(err)
		}
		m.b.ready(p, true)
	}
}

func (m *meshPlayer) objects() []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: "PodChaosList"})
	if err := m.b.client.List(m.b.t.Context(), list, client.InNamespace(m.b.namespace)); err != nil {
		m.b.t.Fatal(err)
	}
	return list.Items
}

func (m *meshPlayer) play() {
	m.b.t.Helper()
	if m.dead {
		return
	}
	for _, o := range m.objects() {
		_, injected := o.Object["status"]
		switch {
		case o.GetDeletionTimestamp() != nil:
			m.mend(&o)
		case !injected && !m.deaf:
			m.hit(&o)
		}
	}
}

func (m *meshPlayer) targets(o *unstructured.Unstructured) (names []string) {
	pods, _, err := unstructured.NestedMap(o.Object, "spec", "selector", "pods")
	if err != nil {
		m.b.t.Fatal(err)
	}
	for _, list := range pods {
		for _, name := range list.([]any) {
			names = append(names, name.(string))
		}
	}
	slices.Sort(names)
	return names
}

func (m *meshPlayer) hit(o *unstructured.Unstructured) {
	b := m.b
	action, _, _ := unstructured.NestedString(o.Object, "spec", "action")
	targets := m.targets(o)
	if len(targets) == 0 {
		b.t.Fatalf("%s %s selects no pod by name: %v", o.GetKind(), o.GetName(), o.Object["spec"])
	}
	m.done = append(m.done, fmt.Sprintf("%s %s %s", o.GetName(), action, strings.Join(targets, " ")))
	o.SetFinalizers([]string{meshFinalizer})
	if err := b.client.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	var records []any
	for _, name := range targets {
		records = append(records, map[string]any{"id": b.namespace + "/" + name, "selectorKey": ".", "phase": "Injected", "injectedCount": int64(1), "recoveredCount": int64(0)})
		if action == "pod-kill" {
			b.kill(name)
		} else {
			m.image(name, pauseImage, false)
		}
	}
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	o.Object["status"] = map[string]any{
		"experiment": map[string]any{"desiredPhase": "Run", "containerRecords": records},
		"conditions": []any{condition("Selected", "True"), condition("AllInjected", "True"), condition("AllRecovered", "False"), condition("Paused", "False")},
	}
	// PodChaos has no status subresource.
	if err := b.client.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (m *meshPlayer) mend(o *unstructured.Unstructured) {
	if action, _, _ := unstructured.NestedString(o.Object, "spec", "action"); action != "pod-kill" {
		for _, name := range m.targets(o) {
			m.image(name, "grid-node:test", true)
		}
	}
	o.SetFinalizers(nil)
	if err := m.b.client.Update(m.b.t.Context(), o); err != nil {
		m.b.t.Fatal(err)
	}
}

func (m *meshPlayer) image(name, image string, ready bool) {
	p := &corev1.Pod{ObjectMeta: m.b.meta(name)}
	if err := m.b.client.Get(m.b.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		m.b.t.Fatal(err)
	}
	p.Spec.Containers[0].Image = image
	if err := m.b.client.Update(m.b.t.Context(), p); err != nil {
		m.b.t.Fatal(err)
	}
	m.b.ready(p, ready)
	m.b.recorder.disturb()
}
