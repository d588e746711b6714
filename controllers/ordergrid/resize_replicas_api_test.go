package ordergrid

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// resizing is a healthy grid on the API server; the test plays StatefulSet controller and grid nodes.
type resizing struct {
	*bench
	grid *api.OrderGrid
}

func newResizing(t *testing.T, spec api.OrderGridSpec) *resizing {
	r := &resizing{bench: newBench(t)}
	r.grid = r.create("rtd", spec)
	r.run(r.grid)
	r.play(r.grid)
	r.run(r.grid)
	return r
}

// ask changes spec.replicas, and related fields, and reconciles once.
func (r *resizing) ask(change func(*api.OrderGridSpec)) []string {
	r.t.Helper()
	change(&r.grid.Spec)
	r.update(r.grid)
	return r.run(r.grid)
}

// record plays a grid node for every partition of a shard: these pods are in sync, the first that was is primary.
func (r *resizing) inSync(shard int32, ordinals ...int32) {
	r.t.Helper()
	for index := range r.grid.Spec.Partitions / r.grid.Spec.Shards {
		p := r.partition(r.grid, shard, index)
		var members []api.Member
		for _, ordinal := range ordinals {
			members = append(members, processOf(r.grid, shard, ordinal))
		}
		primary := *p.Status.Primary
		if !slices.Contains(members, primary) { // handed over before it leaves
			primary = members[0]
		}
		p.Status.Epoch, p.Status.ChangeID, p.Status.Primary, p.Status.InSync = p.Status.Epoch+1, fmt.Sprint("resize-", p.Status.Epoch), &primary, members
		if err := r.asPod(r.grid, shard).Status().Update(r.t.Context(), p); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *resizing) set(shard int32) *appsv1.StatefulSet {
	r.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: api.ShardName("rtd", shard), Namespace: r.namespace}}
	r.get(set)
	return set
}

// namesFirst: a record names the first pods of its shard, as many as it accepts.
func namesFirst(t *testing.T, shard int32, s *api.GridPartitionSpec) {
	t.Helper()
	var want []string
	for ordinal := range max(s.Replicas, s.MaxInSync) {
		want = append(want, api.PodName("rtd", shard, ordinal))
	}
	if !slices.Equal(s.Pods, want) {
		t.Errorf("partition %d of shard %d: pods %q with replicas %d, maxInSync %d, want %q", s.Partition, shard, s.Pods, s.Replicas, s.MaxInSync, want)
	}
}

// want compares the desired state of a shard: pods of its StatefulSet; replicas, maxInSync and minInSync of its
// records.
func (r *resizing) want(shard int32, want string) {
	r.t.Helper()
	got := fmt.Sprintf("%d pods", *r.set(shard).Spec.Replicas)
	for index := range r.grid.Spec.Partitions / r.grid.Spec.Shards {
		s := r.partition(r.grid, shard, index).Spec
		got += fmt.Sprintf("; %d %d %d on %s", s.Replicas, s.MaxInSync, s.MinInSync, strings.TrimPrefix(s.PreferredPod, "rtd-"))
		namesFirst(r.t, shard, &s)
	}
	if got != want {
		r.t.Errorf("shard %d: %s\nwant     %s", shard, got, want)
	}
}

func (r *resizing) deletePod(name string) {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	if err := r.client.Delete(r.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		r.t.Fatal(err)
	}
}

// TestTwoToThreeToTwo takes a pair to three copies and back: the records never require more than the grid nodes have,
// the pods are of the same template throughout, and at the end all is as before.
func TestTwoToThreeToTwo(t *testing.T) {
	r := newResizing(t, api.OrderGridSpec{})
	template := r.set(0).Spec.Template

	r.ask(func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync = 3, 3 })
	r.want(0, "3 pods; 2 3 2 on s0-0; 2 3 2 on s0-1")
	r.wantEvent("Normal AddingCopy shard 0 goes from 2 copies to 3: rtd-s0-2 joins")
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/Resizing False/AsExpected")
	r.startPod(r.grid, 0, 2)
	r.run(r.grid)
	r.want(0, "3 pods; 2 3 2 on s0-0; 2 3 2 on s0-1")
	r.inSync(0, 0, 1, 2)
	r.reconcile = &Reconciler{Client: r.reconcile.Client, Live: r.reconcile.Live, Recorder: r.reconcile.Recorder, Nodes: r.reconcile.Nodes, Clock: r.clock, Defaults: testDefaults} // the operator was killed
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 3 on s0-0; 3 0 3 on s0-1")
	r.wantEvent("Normal CopyAdded every order of shard 0 has 3 copies now, rtd-s0-2 included")
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	r.wantNoWrites(r.grid, "the third copy is there")

	r.ask(func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync = 2, 1 })
	r.want(0, "3 pods; 2 0 1 on s0-0; 2 0 1 on s0-1")
	r.wantEvent("Normal GivingCopyUp shard 0 goes from 3 copies to 2: its primaries remove rtd-s0-2")
	r.run(r.grid)
	r.want(0, "3 pods; 2 0 1 on s0-0; 2 0 1 on s0-1") // still in sync
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/Resizing False/AsExpected")
	r.inSync(0, 0, 1)
	r.run(r.grid)
	r.want(0, "2 pods; 2 0 1 on s0-0; 2 0 1 on s0-1")
	r.wantEvent("Normal CopyGivenUp shard 0 has 2 copies; no record names the removed pods: rtd-s0-2")
	r.deletePod("rtd-s0-2")
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	r.wantNoWrites(r.grid, "the third copy is given up")
	if !equality.Semantic.DeepEqual(r.set(0).Spec.Template, template) {
		t.Error("the pod template has changed: every pod would be replaced for it")
	}
}

// TestOneToTwoToOne: a second copy for a grid created with one. Its partition stays the only one of its shard.
func TestOneToTwoToOne(t *testing.T) {
	r := newResizing(t, api.OrderGridSpec{Replicas: 1})
	r.wantConditions(r.grid, "True/Serving False/SingleCopy False/Steady False/AsExpected")
	r.ask(func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync = 2, 2 })
	r.want(0, "2 pods; 1 2 1 on s0-0")
	r.wantConditions(r.grid, "True/Serving False/SingleCopy True/Resizing False/AsExpected")
	r.startPod(r.grid, 0, 1)
	r.inSync(0, 0, 1)
	r.run(r.grid)
	r.want(0, "2 pods; 2 0 2 on s0-0")
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")

	r.ask(func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync, s.SingleCopy = 1, 1, api.SingleCopyAccept })
	r.want(0, "2 pods; 1 0 1 on s0-0")
	r.inSync(0, 0)
	r.run(r.grid)
	r.want(0, "1 pods; 1 0 1 on s0-0")
}

// TestFewerCopiesThanPartitions: the primary of a pod that is removed moves elsewhere first, and returns with the pod.
// A request for that pod is refused while it is not to hold a copy.
func TestFewerCopiesThanPartitions(t *testing.T) {
	r := newResizing(t, api.OrderGridSpec{Replicas: 3})
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-1; 3 0 1 on s0-2")
	r.annotate(r.partition(r.grid, 0, 1), api.AnnotationPreferredPod, "rtd-s0-2")
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-2; 3 0 1 on s0-2")
	r.ask(func(s *api.OrderGridSpec) { s.Replicas = 2 })
	r.want(0, "3 pods; 2 0 1 on s0-0; 2 0 1 on s0-1; 2 0 1 on s0-0")
	r.wantEvent(`Warning PreferredPodRefused annotation ordergrid.dev/preferred-pod is refused and removed: "rtd-s0-2" is not a pod that keeps a copy of the partition; allowed are [rtd-s0-0 rtd-s0-1]`)
	r.inSync(0, 0, 1)
	r.run(r.grid)
	r.deletePod("rtd-s0-2")
	r.run(r.grid)
	r.want(0, "2 pods; 2 0 1 on s0-0; 2 0 1 on s0-1; 2 0 1 on s0-0")
	r.wantNoWrites(r.grid, "two copies of three partitions")
	r.ask(func(s *api.OrderGridSpec) { s.Replicas = 3 })
	r.startPod(r.grid, 0, 2)
	r.inSync(0, 0, 1, 2)
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-1; 3 0 1 on s0-2")
}

// TestResizeTakenBack: a reverted change ends correctly at every point.
func TestResizeTakenBack(t *testing.T) {
	r := newResizing(t, api.OrderGridSpec{})
	three, two := func(s *api.OrderGridSpec) { s.Replicas = 3 }, func(s *api.OrderGridSpec) { s.Replicas = 2 }
	r.ask(three)
	r.startPod(r.grid, 0, 2)
	r.ask(two) // while the pod catches up
	r.want(0, "3 pods; 2 0 1 on s0-0; 2 0 1 on s0-1")
	r.run(r.grid)
	r.want(0, "2 pods; 2 0 1 on s0-0; 2 0 1 on s0-1")
	r.ask(three) // before the pod has ended
	r.want(0, "3 pods; 2 3 1 on s0-0; 2 3 1 on s0-1")
	r.inSync(0, 0, 1, 2)
	r.ask(two) // when it is in sync, and does not count yet
	r.want(0, "3 pods; 2 0 1 on s0-0; 2 0 1 on s0-1")
	r.ask(three) // before it was removed
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-1")
	r.ask(two)
	r.inSync(0, 0, 1)
	r.ask(three) // after it was removed
	r.want(0, "3 pods; 2 3 1 on s0-0; 2 3 1 on s0-1")
	r.inSync(0, 0, 1, 2)
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-1")
}

// TestResizeShardByShard: the next shard begins when the previous one has its copies.
func TestResizeShardByShard(t *testing.T) {
	r := newResizing(t, api.OrderGridSpec{Shards: 2})
	const before = "2 pods; 2 0 1 on s%d-0; 2 0 1 on s%d-1"
	r.ask(func(s *api.OrderGridSpec) { s.Replicas = 3 })
	r.want(0, "3 pods; 2 3 1 on s0-0; 2 3 1 on s0-1")
	r.want(1, fmt.Sprintf(before, 1, 1))
	r.startPod(r.grid, 0, 2)
	r.inSync(0, 0, 1, 2)
	r.run(r.grid)
	r.want(1, fmt.Sprintf(before, 1, 1))
	r.run(r.grid)
	r.want(0, "3 pods; 3 0 1 on s0-0; 3 0 1 on s0-1")
	r.want(1, "3 pods; 2 3 1 on s1-0; 2 3 1 on s1-1")
}
