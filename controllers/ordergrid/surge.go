package ordergrid

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// While a pod of a pair is replaced, orders would be on one copy. With spec.updateStrategy.surge the shard gets a third pod
// first, made from the present template. Its records go on to want two copies and take in three (maxInSync), so two are in
// sync whichever pod is away. When its own pods are of the present template and in sync again, the third is given up like
// a copy that spec.replicas no longer asks for: its primaries let it go while the others are in sync, and then it ends.
// What is observed is all the memory there is.

// surgeAsked reports whether a shard gets a third copy before one of its pods goes.
func (o *observation) surgeAsked() bool {
	s := &o.grid.Spec.UpdateStrategy
	return o.grid.Spec.Replicas == 2 && s.Surge != nil && *s.Surge == 1
}

// surges reports whether the shard is to have a third copy now: it has the two that spec.replicas asks for and one of
// their pods has to go, the last that was replaced is not in sync yet, or which pods are outdated is not known because
// its StatefulSet has just been changed.
func (o *observation) surges(c *shardCopies) bool {
	want := o.grid.Spec.Replicas
	if !o.surgeAsked() || c.fewest != want || c.have < want || c.most > want+1 || o.shardProblem(c.shard) != "" {
		return false
	}
	return c.most > want && (!o.setObserved(c.shard) || len(o.notInSync(c.shard, want, true)) > 0) || len(o.leavingPods(c.shard)) > 0
}

// setObserved reports whether the StatefulSet controller, if there is one at all, has seen the shard's StatefulSet as it is.
func (o *observation) setObserved(shard int32) bool {
	return slices.ContainsFunc(o.statefulSets, func(s appsv1.StatefulSet) bool {
		return s.Name == api.ShardName(o.grid.Name, shard) && (s.Status.ObservedGeneration == s.Generation || s.Status.UpdateRevision == "")
	})
}

// leavingPods are the pods of a shard that spec.replicas asks for and that are to be replaced.
func (o *observation) leavingPods(shard int32) (names []string) {
	if o.grid.Spec.UpdateStrategy.Type != api.UpdateRolling {
		return nil
	}
	for _, name := range o.outdatedPods() {
		if o.stays(shard, name, o.grid.Spec.Replicas) {
			names = append(names, name)
		}
	}
	return names
}

// addSurge gives the shard a pod more, and lets its primaries take it in.
func (c *shardCopies) addSurge(want int32) {
	c.surge, c.resizing = true, false
	c.pods, c.wanted, c.takesIn = want+1, want, want+1
}

// surgeState is how far the third copy of a shard is.
type surgeState int

const (
	surgeAbsent   surgeState = iota // there is no pod
	surgeUnplaced                   // no Kubernetes node has room for it
	surgeLearning                   // it is not in sync
	surgeInSync                     // it holds all orders of the shard, and is ready
)

// surgeCopy is the third pod of a shard, nil if there is none, and how far it is.
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

// proceeds reports whether pods go without a third copy, as spec.updateStrategy.withoutRoom allows; left is how long until
// no room counts as none.
func (o *observation) proceeds(shard int32, now time.Time) (proceeds bool, left time.Duration) {
	strategy := &o.grid.Spec.UpdateStrategy
	pod, state := o.surgeCopy(shard)
	if state != surgeUnplaced {
		return false, 0
	}
	left = strategy.ProgressDeadline.Duration - now.Sub(pod.CreationTimestamp.Time)
	return left <= 0 && strategy.WithoutRoom == api.WithoutRoomProceed, left
}

// surgeMissing reports whether the copy that has to be there before a pod of the shard goes is missing, and puts what it
// waits for into the plan.
func (o *observation) surgeMissing(s *rollShard, plan *rollPlan, now time.Time) bool {
	strategy := &o.grid.Spec.UpdateStrategy
	name := api.PodName(o.grid.Name, s.number, o.grid.Spec.Replicas)
	pod, state := o.surgeCopy(s.number)
	switch state {
	case surgeAbsent:
		plan.waiting = append(plan.waiting, fmt.Sprintf("shard %d: a third copy, %s, comes before a pod goes", s.number, name))
	case surgeUnplaced:
		proceeds, left := o.proceeds(s.number, now)
		text := fmt.Sprintf("no Kubernetes node has room for %s, the third copy that comes before a pod of shard %d goes%s", name, s.number, because(pod))
		switch {
		case proceeds:
			plan.oneCopy = append(plan.oneCopy, s.outdated...)
			plan.waiting = append(plan.waiting, text+"; pods go without it (withoutRoom Proceed), and orders are on one copy meanwhile")
			return false
		case left > 0:
			plan.lookWithin(left)
		default:
			plan.noRoom = append(plan.noRoom, text)
		}
		plan.waiting = append(plan.waiting, text)
	case surgeLearning:
		plan.waiting = append(plan.waiting, fmt.Sprintf("%s, the third copy that comes before a pod of shard %d goes, is not in sync%s", name, s.number, because(pod)))
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

// coveredBySurge reports whether the partition has as many copies as it wants although one of its own pods is away: the
// third is there in its place.
func (o *observation) coveredBySurge(p *api.GridPartition) bool {
	there := int32(0)
	for i := range p.Status.InSync {
		if o.ready(p.Status.InSync[i].PodName) {
			there++
		}
	}
	return p.Spec.MaxInSync > p.Spec.Replicas && there >= p.Spec.Replicas
}

// keeps is how many ready pods of a shard an eviction has to leave. While a third copy comes, is there or is given up,
// those are two, unless no two hold everything, or a person allows pods to go without it. 0 leaves it to the default.
func (o *observation) keeps(c *shardCopies, now time.Time) int32 {
	if !o.surgeAsked() || !c.surge && c.have != o.grid.Spec.Replicas+1 {
		return 0
	}
	if proceeds, _ := o.proceeds(c.shard, now); proceeds || len(o.whole(c.shard)) < 2 {
		return 1
	}
	return 2
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

// surgeText says which shards have a third copy, or get one; empty if none.
func (o *observation) surgeText() string {
	var list []string
	for i := range o.copies {
		if c := &o.copies[i]; c.surge {
			list = append(list, fmt.Sprintf("shard %d has a third copy, %s, while its pods are replaced", c.shard, api.PodName(o.grid.Name, c.shard, c.pods-1)))
		}
	}
	return sentences(list)
}
