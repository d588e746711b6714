package ordergrid

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// bench is a reconciler on a real API server, in a namespace of its own, whose requests are recorded. It reads without
// a cache, so that a test sees its own writes.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
	reconcile *Reconciler
	events    chan string
	clock     *clocktesting.FakePassiveClock
	nodes     *fakeNodes
	again     time.Duration // delay requested by the last run
	writes    *envtest.Requests

	readyShards int32        // what TestWatches waits for
	reconciled  atomic.Int64 // passes of the running manager
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cfg := envtest.Config(t)
	b := &bench{t: t, client: envtest.Client(t, cfg), writes: envtest.Writes()}
	b.namespace = envtest.Namespace(t, b.client, "grid-")
	observed := envtest.Client(t, b.writes.Of(cfg))
	recorder := events.NewFakeRecorder(1000)
	b.events = recorder.Events
	b.clock = clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	b.nodes = newFakeNodes(t)
	b.reconcile = &Reconciler{
		Client: observed, Live: observed, Recorder: recorder, Nodes: b.nodes.client(),
		Clock: b.clock, Defaults: testDefaults,
	}
	return b
}

// run reconciles once and returns the writes it made.
func (b *bench) run(grid *api.OrderGrid) []string {
	b.t.Helper()
	b.writes.Forget()
	result, err := b.reconcile.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(grid)})
	if err != nil {
		b.t.Fatalf("reconcile: %v", err)
	}
	b.again = result.RequeueAfter
	b.get(grid)
	return b.writes.All()
}

func (b *bench) get(obj client.Object) {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		b.t.Fatal(err)
	}
}

// create creates a grid from a spec, defaulted by the API server.
func (b *bench) create(name string, spec api.OrderGridSpec) *api.OrderGrid {
	b.t.Helper()
	if spec.Security.TLS == nil {
		spec.Security.Insecure = api.InsecureAccept
	}
	if spec.Partitions == 0 { // one for each pod
		spec.Partitions = max(spec.Shards, 1) * cmp.Or(spec.Replicas, 2)
	}
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}, Spec: spec}
	if err := b.client.Create(b.t.Context(), grid); err != nil {
		b.t.Fatal(err)
	}
	return grid
}

// play plays Kubernetes and the grid nodes: it runs the pods, ready, and has them claim and join their partitions with
// the pods' own permissions.
func (b *bench) play(grid *api.OrderGrid) {
	b.t.Helper()
	for shard := range grid.Spec.Shards {
		for ordinal := range grid.Spec.Replicas {
			b.startPod(grid, shard, ordinal)
		}
		for index := range grid.Spec.Partitions / grid.Spec.Shards {
			b.claim(grid, shard, index)
		}
	}
}

func (b *bench) startPod(grid *api.OrderGrid, shard, ordinal int32) {
	b.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: api.ShardName(grid.Name, shard), Namespace: grid.Namespace}}
	b.get(set)
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = api.PodName(grid.Name, shard, ordinal), grid.Namespace
	for _, claim := range set.Spec.VolumeClaimTemplates { // like the StatefulSet controller
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name},
		}})
	}
	if err := b.client.Create(b.t.Context(), pod); err != nil {
		b.t.Fatal(err)
	}
	pod.Status.PodIP = podIP(shard, ordinal)
	if err := b.client.Status().Update(b.t.Context(), pod); err != nil {
		b.t.Fatal(err)
	}
	b.setReady(pod.Name, corev1.ConditionTrue)
}

func (b *bench) setReady(pod string, status corev1.ConditionStatus) {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: b.namespace}}
	b.get(p)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if err := b.client.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

// claim brings a partition to a healthy state: claimed by the preferred pod, joined by the others.
func (b *bench) claim(grid *api.OrderGrid, shard, index int32) {
	b.t.Helper()
	cl := b.asPod(grid, shard)
	record := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName(grid.Name, numberOf(grid, shard, index)), Namespace: grid.Namespace}}
	if err := cl.Get(b.t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		b.t.Fatal(err)
	}
	var inSync []api.Member
	for i := range grid.Spec.Replicas {
		inSync = append(inSync, processOf(grid, shard, (index+i)%grid.Spec.Replicas))
		record.Status = api.GridPartitionStatus{
			Epoch: int64(i + 1), Lineage: 1, ChangeID: fmt.Sprint("change-", i), Primary: &inSync[0], InSync: inSync,
		}
		if err := cl.Status().Update(b.t.Context(), record); err != nil {
			b.t.Fatalf("epoch %d: %v", i+1, err)
		}
	}
}

func processOf(grid *api.OrderGrid, shard, ordinal int32) api.Member {
	return incarnation(grid, shard, ordinal, "0123456789abcdef")
}

func incarnation(grid *api.OrderGrid, shard, ordinal int32, boot string) api.Member {
	name := api.PodName(grid.Name, shard, ordinal)
	return api.Member{ID: name + "/" + boot, PodName: name, BootID: boot, Address: podIP(shard, ordinal) + ":7400"}
}

func podIP(shard, ordinal int32) string { return fmt.Sprintf("10.1.%d.%d", shard, ordinal+1) }

// asPod is a client with the permissions of the pods of a shard.
func (b *bench) asPod(grid *api.OrderGrid, shard int32) client.Client {
	b.t.Helper()
	cfg := envtest.Config(b.t)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", grid.Namespace, api.ShardName(grid.Name, shard)),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + grid.Namespace, "system:authenticated"},
	}
	return envtest.Client(b.t, cfg)
}

// eventually retries until ok, for a test that waits for another process.
func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after 2 minutes", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
