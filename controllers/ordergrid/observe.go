package ordergrid

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// observation is the state of a grid in one pass: what was read when it began, and the findings and decisions of its
// steps since. The steps use it, and status is computed from it alone. Decisions that would be dangerous with an old
// cache use another one, read from the API server at that moment; see run.live.
type observation struct {
	grid         *api.OrderGrid
	partitions   []api.GridPartition // by number
	statefulSets []appsv1.StatefulSet
	pods         []corev1.Pod            // by name
	nodes        []corev1.Node           // of Kubernetes; shared with the cache, not to be changed
	nodeNamed    map[string]*corev1.Node // the same
	scale        scale
	stall        *stall

	findings    map[string]*finding // by partition
	bytes       map[int32]int64     // of partitions, where nodes were asked; 0: not known
	notInquired bool                // not known partitions: 0
	copies      []shardCopies       // they are incomplete
	emptied     map[string]string   // nil if it was not decided
	drains      bool                // pods on Kubernetes nodes that are being emptied, and those nodes
	roll        *rollPlan           // a drain of a pair is detected
	lost        *lostPlan           // nil while no pod is on a lost node

	readsNodes     bool           // the operator reads Kubernetes nodes at all
	nodesRead      bool           // and this pass has checked the pods against them
	shortage       shortage       // why they do not fit; empty: they do
	stage          *tlsPlan       // nil if it was not decided
	tls            *tlsState      // nil without spec.security.tls, or if the certificates were not looked at
	networkMissing string         // why the network of spec.fabric is missing, while a pod is not on it
	room           room           // how much memory is left for orders
	roomAsked      bool           // since this operator started
	restore        *restorePlan   // of spec.restoreFrom while records are missing; nil if it was not looked at
	sinkPods       []sinkState    // of sinks with a pod, by name; nil if they were not looked at
	instruments    *instruments   // nil in a grid that does not match, or if they were not looked at
	functions      *functions     // nil if they were not looked at
	limits         *riskLimits    // nil without spec.riskProfile, or if it was not looked at
	regions        *regions       // nil without spec.regions, or if they were not looked at
	external       *externalState // nil without spec.externalAccess, or if addresses were not looked for
}

// read reads the grid's objects, from the cache or from the API server; on an error they do not change.
func (r *Reconciler) read(ctx context.Context, from client.Reader, o *observation) error {
	var (
		records api.GridPartitionList
		pods    corev1.PodList
		sets    appsv1.StatefulSetList
	)
	ofGrid := client.MatchingLabels{api.LabelGrid: o.grid.Name}
	if err := r.list(ctx, from, o.grid, &records, ofGrid); err != nil {
		return fmt.Errorf("list GridPartitions: %w", err)
	}
	if err := r.list(ctx, from, o.grid, &pods, gridSelector(o.grid)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	if err := r.list(ctx, from, o.grid, &sets, ofGrid); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	o.partitions = slices.DeleteFunc(records.Items, func(p api.GridPartition) bool { return !owned(o.grid, &p) })
	o.pods = pods.Items
	o.statefulSets = slices.DeleteFunc(sets.Items, func(s appsv1.StatefulSet) bool { return !owned(o.grid, &s) })
	o.sort()
	return nil
}

// live is the observation with the grid's objects from the API server: for decisions that remove a pod, count a copy,
// or give up a shard.
func (r *run) live(ctx context.Context) (*observation, error) {
	o := *r.observation
	return &o, r.read(ctx, r.Live, &o)
}

func (o *observation) sort() {
	slices.SortFunc(o.partitions, func(a, b api.GridPartition) int {
		return cmp.Compare(a.Spec.Partition, b.Spec.Partition)
	})
	sortPods(o.pods)
}

func sortPods(pods []corev1.Pod) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// podNamed finds a pod in a sorted list.
func podNamed(pods []corev1.Pod, name string) *corev1.Pod {
	i, found := slices.BinarySearchFunc(pods, name, func(p corev1.Pod, name string) int { return cmp.Compare(p.Name, name) })
	if !found {
		return nil
	}
	return &pods[i]
}

// setOf is the StatefulSet of a shard, nil if there is none.
func (o *observation) setOf(shard int32) *appsv1.StatefulSet {
	i := slices.IndexFunc(o.statefulSets, func(s appsv1.StatefulSet) bool { return s.Name == api.ShardName(o.grid.Name, shard) })
	if i < 0 {
		return nil
	}
	return &o.statefulSets[i]
}

// of returns the partitions whose home a shard is.
func (o *observation) of(shard int32) (list []*api.GridPartition) {
	for i := range o.partitions {
		if p := &o.partitions[i]; p.Spec.Shard == shard {
			list = append(list, p)
		}
	}
	return list
}

// readyIn reports whether the member's pod is ready; the list is sorted.
func readyIn(pods []corev1.Pod, m *api.Member) bool {
	if m == nil {
		return false
	}
	pod := podNamed(pods, m.PodName)
	return pod != nil && podReady(pod)
}

// wantPartitions is how many partitions should serve.
func (o *observation) wantPartitions() int { return int(o.grid.Spec.Partitions) }

// planned reports whether the operator itself is changing the grid's pods, so that a missing copy is expected.
func (o *observation) planned() bool {
	reason, _ := o.scaling()
	return reason != "" && reason != reasonWaitingForWindow || o.resizeText() != "" || o.surgeText() != "" || o.roll != nil && o.roll.outdated > 0 && len(o.roll.stuck) == 0
}

// wantPods is how many pods hold copies that count.
func (o *observation) wantPods() (n int) {
	for shard := range o.grid.Spec.Shards {
		n += int(o.copiesWanted(shard))
	}
	return n
}

// ready reports whether the pod of that name is ready: its process is a member of every partition it should be in.
func (o *observation) ready(podName string) bool {
	pod := podNamed(o.pods, podName)
	return pod != nil && podReady(pod)
}

// serves reports whether the pod of that name answers. One that is being deleted does until it has handed over.
func (o *observation) serves(podName string) bool {
	pod := podNamed(o.pods, podName)
	return pod != nil && readyCondition(pod)
}

func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && readyCondition(pod)
}

func readyCondition(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// readyShards counts the shards all of whose pods are ready.
func (o *observation) readyShards() (n int32) {
	for shard := range o.grid.Spec.Shards {
		ready := true
		for ordinal := range o.copiesWanted(shard) {
			ready = ready && o.ready(api.PodName(o.grid.Name, shard, ordinal))
		}
		if ready {
			n++
		}
	}
	return n
}

// outdatedPods are the pods whose template is not the StatefulSet's.
func (o *observation) outdatedPods() (names []string) {
	revision := make(map[string]string, len(o.statefulSets)) // by shard label
	for _, set := range o.statefulSets {
		if set.Status.ObservedGeneration == set.Generation {
			revision[set.Labels[api.LabelShard]] = set.Status.UpdateRevision
		}
	}
	for _, pod := range o.pods {
		want := revision[pod.Labels[api.LabelShard]]
		if want != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != want {
			names = append(names, pod.Name)
		}
	}
	return names
}

// summaries mirror the partitions' configuration. A partition whose record is gone keeps its epoch: that keeps the
// operator from creating the record again.
func (o *observation) summaries(before []api.PartitionSummary) []api.PartitionSummary {
	list := make([]api.PartitionSummary, 0, len(o.partitions))
	there := make(map[string]bool, len(o.partitions))
	for _, p := range o.partitions {
		s := api.PartitionSummary{Name: p.Name, Shard: p.Spec.Shard, Epoch: p.Status.Epoch, Lineage: p.Status.Lineage, InSync: int32(len(p.Status.InSync)), Problem: o.problem(&p)}
		if p.Status.Primary != nil {
			s.Primary = p.Status.Primary.PodName
		}
		list = append(list, s)
		there[p.Name] = true
	}
	for _, s := range before {
		if s.Epoch > 0 && !there[s.Name] {
			list = append(list, api.PartitionSummary{Name: s.Name, Shard: s.Shard, Epoch: s.Epoch})
		}
	}
	return list
}

// owned reports whether the grid controls the object: objects of a just deleted grid of the same name may still exist.
func owned(grid *api.OrderGrid, object metav1.Object) bool {
	ref := metav1.GetControllerOf(object)
	return ref != nil && ref.UID == grid.UID
}
