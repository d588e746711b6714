package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// While a pod of a pair is replaced, by an update or because its Kubernetes node is drained, orders would be on one
// copy. With spec.updateStrategy.surge the shard gets a third pod first, created from the present template. Its records
// still want two copies but accept three (pods, maxInSync), so two are in sync whichever pod is missing. When its own
// pods are of the present template and in sync again, the third is given up like a copy that spec.replicas no longer
// needs: its primaries remove it while the others are in sync, and then it ends. Other evictions are limited by the
// disruption budget: it requires two pods that hold everything, and the third as well from before the primaries are
// told to remove it.
//
// The observation is the only state. The StatefulSet gets its third pod before the records accept one; records that
// accept three while it has two pods mean that there was no room for the third.

// surgeAsked reports whether a shard gets a third copy before one of its pods is replaced.
func (o *observation) surgeAsked() bool {
	s := &o.grid.Spec.UpdateStrategy
	return o.grid.Spec.Replicas == 2 && s.Surge != nil && *s.Surge == 1
}

// surges reports whether the shard should have a third copy now: it has the two of spec.replicas and one of their pods
// has to be replaced, the last one replaced is not in sync yet, or the outdated pods are unknown because its
// StatefulSet has just been changed.
func (o *observation) surges(c *shardCopies) bool {
	want := o.grid.Spec.Replicas
	if !o.surgeAsked() || c.fewest != want || c.have < want || c.most > want+1 || o.shardProblem(c.shard) != "" {
		return false
	}
	return c.have == want+1 && !o.setObserved(c.shard) || c.most > want && len(o.notInSync(c.shard, want, true)) > 0 || len(o.leavingPods(c.shard)) > 0
}

// setObserved reports whether the StatefulSet controller, if there is one, has observed the shard's present
// StatefulSet.
func (o *observation) setObserved(shard int32) bool {
	s := o.setOf(shard)
	return s != nil && (s.Status.ObservedGeneration == s.Generation || s.Status.UpdateRevision == "")
}

// leavingPods are the pods of a shard within spec.replicas that are to be replaced.
func (o *observation) leavingPods(shard int32) (names []string) {
	return append(o.updatedPods(shard), o.emptiedPods(shard)...)
}

// updatedPods are those that the operator is to replace.
func (o *observation) updatedPods(shard int32) (names []string) {
	if o.grid.Spec.UpdateStrategy.Type != api.UpdateRolling || o.scale.leaves(shard) { // the pods of a shard that leaves are deleted anyway
		return nil
	}
	for _, name := range o.outdatedPods() {
		if o.stays(shard, name, o.grid.Spec.Replicas) {
			names = append(names, name)
		}
	}
	return names
}

// emptiedPods are those that a drain is about to evict.
func (o *observation) emptiedPods(shard int32) (names []string) {
	for ordinal := range o.grid.Spec.Replicas {
		if name := api.PodName(o.grid.Name, shard, ordinal); o.emptied[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// drainTaints are set on a Kubernetes node that is about to be drained, instead of or in addition to cordoning it.
var drainTaints = []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"}

// isEmptied reports whether a Kubernetes node is being drained, as far as visible: it accepts no pods.
func isEmptied(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(drainTaints, t.Key) })
}

// lookAtNodes finds the pods on Kubernetes nodes that are being drained. An operator that does not read nodes finds
// none.
func (o *observation) lookAtNodes() {
	if o.drains = o.readsNodes && o.surgeAsked(); !o.drains {
		return
	}
	o.emptied = map[string]string{}
	for i := range o.pods {
		pod := &o.pods[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			continue
		}
		if node := o.node(pod.Spec.NodeName); isEmptied(node) {
			o.emptied[pod.Name] = node.Name
		}
	}
}

// addSurge adds a pod to the shard, and then lets its primaries accept it. Where pods are replaced without it, or one
// of the two cannot be placed itself, it is removed: the scheduler would give it the place of the other pod.
func (c *shardCopies) addSurge(o *observation, want int32, now time.Time) {
	c.surge, c.resizing = true, false
	c.pods, c.wanted, c.takesIn = want+1, want, c.most
	c.proceeds = o.proceeds(c, now)
	switch {
	case c.proceeds, o.yields(c.shard):
		c.pods = want
	case c.have > want:
		c.takesIn = want + 1
	}
}

// yields reports whether a third pod that cannot be placed is removed before another of the shard, or is not created:
// one of those within spec.replicas cannot be placed, because its Kubernetes node is lost, and the next place is for
// that one. Its StatefulSet would keep the third for as long as the other waits.
func (o *observation) yields(shard int32) bool {
	if _, state := o.surgeCopy(shard); state != surgeAbsent && state != surgeUnplaced {
		return false
	}
	for ordinal := range o.grid.Spec.Replicas {
		if pod := podNamed(o.pods, api.PodName(o.grid.Name, shard, ordinal)); pod == nil || pod.Spec.NodeName == "" && !podReady(pod) {
			return true
		}
	}
	return false
}

// endsSurge reports whether the primaries are about to be told to remove the third copy.
func (c *shardCopies) endsSurge(want int32) bool {
	return !c.surge && c.fewest == want && c.most > want && c.takesIn == want
}

// closedBudgets are the shards whose disruption budget allows no eviction as long as the third copy has not been given
// up, as observed by the disruption controller.
func (r *run) closedBudgets(ctx context.Context) (map[int32]bool, error) {
	closed := map[int32]bool{}
	for i := range r.copies {
		c := &r.copies[i]
		if !c.endsSurge(r.grid.Spec.Replicas) {
			continue
		}
		b := &policyv1.PodDisruptionBudget{}
		key := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.ShardName(r.grid.Name, c.shard)}
		if err := r.Live.Get(ctx, key, b); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read PodDisruptionBudget %s: %w", key.Name, err)
		}
		closed[c.shard] = b.Spec.MinAvailable != nil && b.Spec.MinAvailable.IntVal > r.grid.Spec.Replicas && b.Status.ObservedGeneration == b.Generation
	}
	return closed, nil
}

// holdSurge keeps third copies until no eviction counts on them any more.
func (r *run) holdSurge(o *observation, closed map[int32]bool) {
	for i := range r.copies {
		c := &r.copies[i]
		if _, state := o.surgeCopy(c.shard); o.drains && state == surgeInSync && c.endsSurge(o.grid.Spec.Replicas) && !closed[c.shard] {
			c.takesIn, c.waiting = c.most, "its PodDisruptionBudget is closed first"
			r.lookWithin(leavingRetry)
		}
	}
}

// surgeState is the state of the third copy of a shard.
type surgeState int

const (
	surgeAbsent   surgeState = iota // there is no pod
	surgeUnplaced                   // no Kubernetes node has room for it
	surgeLearning                   // it is not in sync
	surgeInSync                     // it holds all orders of the shard, and is ready
)

// surgeCopy is the third pod of a shard, nil if there is none, and its state.
func (o *observation) surgeCopy(shard int32) (*corev1.Pod, surgeState) {
	name := api.PodName(o.grid.Name, shard, o.grid.Spec.Replicas)
	pod := podNamed(o.pods, name)
	switch {
	case pod == nil:
		return nil, surgeAbsent
	case o.inSyncEverywhere(shard, name) && o.ready(name):
		return pod, surgeInSync
	case pod.Spec.NodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	}):
		return pod, surgeUnplaced
	}
	return pod, surgeLearning
}

// proceeds reports whether pods are replaced without a third copy, as spec.updateStrategy.withoutRoom allows.
func (o *observation) proceeds(c *shardCopies, now time.Time) bool {
	if o.grid.Spec.UpdateStrategy.WithoutRoom != api.WithoutRoomProceed {
		return false
	}
	want := o.grid.Spec.Replicas
	pod, state := o.surgeCopy(c.shard)
	return state == surgeUnplaced && c.most > want && o.roomLeft(pod, now) <= 0 || c.have == want && c.most > want
}

// roomLeft is the time until a missing place counts as no room.
func (o *observation) roomLeft(pod *corev1.Pod, now time.Time) time.Duration {
	return o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration - now.Sub(pod.CreationTimestamp.Time)
}

// surgeMissing reports whether the copy that is required before a pod of the shard is replaced is missing, and adds
// what it waits for to the plan.
func (o *observation) surgeMissing(s *rollShard, plan *rollPlan, now time.Time) bool {
	strategy := &o.grid.Spec.UpdateStrategy
	name := api.PodName(o.grid.Name, s.number, o.grid.Spec.Replicas)
	pod, state := o.surgeCopy(s.number)
	if slices.ContainsFunc(o.copies, func(c shardCopies) bool { return c.shard == s.number && c.proceeds }) {
		plan.oneCopy = append(plan.oneCopy, s.outdated...)
		plan.waiting = append(plan.waiting, o.withoutThird(s.number))
		return false
	}
	switch state {
	case surgeAbsent:
		plan.waiting = append(plan.waiting, fmt.Sprintf("shard %d: a third copy, %s, is added before a pod is replaced", s.number, name))
	case surgeUnplaced:
		plan.waiting = append(plan.waiting, fmt.Sprintf("no Kubernetes node has room for %s, the third copy required before a pod of shard %d is replaced%s", name, s.number, because(pod)))
	case surgeLearning:
		plan.waiting = append(plan.waiting, fmt.Sprintf("%s, the third copy required before a pod of shard %d is replaced, is not in sync%s", name, s.number, because(pod)))
		if !slices.Contains(s.outdated, pod) {
			plan.deadline(pod, strategy.ProgressDeadline.Duration, now)
		}
	case surgeInSync:
		left := strategy.MinReady.Duration - now.Sub(readyChanged(pod))
		if left <= 0 {
			return false
		}
		plan.waiting = append(plan.waiting, fmt.Sprintf("%s has to be in sync for %v", name, strategy.MinReady.Duration))
		plan.lookWithin(left)
	}
	return true
}

// covered reports whether the partition has as many copies as it wants although one of its own pods has none: the third
// replaces it, or it moves, and those of the source shard do.
func (o *observation) covered(p *api.GridPartition) bool {
	return (p.Spec.MaxInSync > p.Spec.Replicas || moves(o.grid, p)) && o.there(p) >= p.Spec.Replicas
}

// there is how many complete copies of a partition are on ready pods.
func (o *observation) there(p *api.GridPartition) (n int32) {
	for i := range p.Status.InSync {
		if o.ready(p.Status.InSync[i].PodName) {
			n++
		}
	}
	return n
}

// keeps is how many ready pods of a shard an eviction must leave: two, unless no two hold everything, or pods may be
// replaced without a third; and three while the third is given up. An operator that does not read Kubernetes nodes
// requires it only while there is a third pod: it would block drains for ever. 0 is the default.
func (o *observation) keeps(c *shardCopies) int32 {
	third, _ := o.surgeCopy(c.shard)
	if !o.surgeAsked() || !o.drains && !c.surge && third == nil {
		return 0
	}
	switch {
	case c.proceeds || len(o.whole(c.shard)) < 2:
		return 1
	case third != nil && podReady(third) && (o.drains && !c.surge || o.givesAway(c.shard)):
		return 3
	}
	return 2
}

// givesAway reports whether a pod of the shard has a copy of a partition whose home is elsewhere. A third pod has none.
func (o *observation) givesAway(shard int32) bool {
	return slices.ContainsFunc(o.at(shard), func(p *api.GridPartition) bool { return p.Spec.Shard != shard })
}

// whole are the pods of a shard that hold all of its orders and are ready.
func (o *observation) whole(shard int32) (names []string) {
	for ordinal := range int32(api.MaxReplicas) {
		if name := api.PodName(o.grid.Name, shard, ordinal); o.inSyncEverywhere(shard, name) && o.ready(name) {
			names = append(names, name)
		}
	}
	return names
}

// judgeSurge describes the third copy of a shard, and whether there has been no room for it for long.
func (o *observation) judgeSurge(c *shardCopies, now time.Time) {
	name := api.PodName(o.grid.Name, c.shard, o.grid.Spec.Replicas)
	why := "while its pods are replaced"
	if emptied := o.emptiedPods(c.shard); len(emptied) > 0 {
		why = fmt.Sprintf("because %s is on %s, which is being emptied", emptied[0], o.emptied[emptied[0]])
	}
	c.surging = fmt.Sprintf("shard %d gets a third copy, %s, %s", c.shard, name, why)
	if c.proceeds {
		c.surging = o.withoutThird(c.shard)
		return
	}
	switch pod, state := o.surgeCopy(c.shard); state {
	case surgeUnplaced:
		c.surging += "; no Kubernetes node has room for it" + because(pod)
		if c.again = o.roomLeft(pod, now); c.again <= 0 {
			c.noRoom = fmt.Sprintf("no Kubernetes node has room for %s, the third copy required before a pod of shard %d is replaced%s", name, c.shard, because(pod))
		}
	case surgeLearning:
		c.surging += "; it is not in sync" + because(pod)
	case surgeInSync:
		c.surging = fmt.Sprintf("shard %d has a third copy, %s, %s", c.shard, name, why)
	case surgeAbsent:
	}
}

func (o *observation) withoutThird(shard int32) string {
	return fmt.Sprintf("no Kubernetes node has room for a third copy of shard %d, and pods are replaced without it (spec.updateStrategy.withoutRoom Proceed): orders are on one copy meanwhile", shard)
}

// surgeText lists the shards that have a third copy, or get one; empty if none.
func (o *observation) surgeText() string {
	var list []string
	for i := range o.copies {
		if c := &o.copies[i]; c.surge {
			list = append(list, c.surging)
		}
	}
	return sentences(list)
}

// noRoomForSurge lists the shards that have waited for room for a third copy for too long.
func (o *observation) noRoomForSurge() string {
	var list []string
	for i := range o.copies {
		if c := &o.copies[i]; c.surge && c.noRoom != "" {
			list = append(list, c.noRoom)
		}
	}
	return sentences(list)
}
