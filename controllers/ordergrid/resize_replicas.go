package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// spec.replicas of a running grid changes a shard at a time, from whatever state it is in; the observation is the only
// state. A copy is added before it counts: the StatefulSet gets the pod, the records let the primary accept it (pods,
// maxInSync), and once it is in sync everywhere it is counted (replicas). A copy is given up in reverse order: the
// records want fewer, the primary removes the pod while the others are in sync and answer, and only when no record
// names it any more its StatefulSet removes it. The number of partitions does not change; see ADR 22.

// shardCopies is how many copies one shard has, and how many it should have now.
type shardCopies struct {
	shard int32

	fresh            bool   // it never had a pod
	have             int32  // pods its StatefulSet has
	fewest, most     int32  // copies that its records want; up to how many they accept
	pods             int32  // of its StatefulSet, desired
	wanted, takesIn  int32  // for its records
	needed           int32  // minInSync for its records
	resizing, queued bool   // on its way to spec.replicas; not begun, because others are
	surge, proceeds  bool   // has, or gets, a third copy while its pods are replaced; they are replaced without it; see surge.go
	keep             int32  // ready pods that an eviction must leave; 0: all but one
	surging, noRoom  string // state of the third copy; that there has been no room for it for long
	again            time.Duration
	waiting          string
}

// planCopies decides the copies of every shard. At rest, which is nearly always, it sends no request to the API server.
func (r *run) planCopies(ctx context.Context) error {
	now := r.Clock.Now()
	r.lookAtNodes()
	r.copies = planCopies(r.observation, now)
	if !slices.ContainsFunc(r.copies, func(c shardCopies) bool { return c.resizing || c.surge || c.pods != c.have }) {
		return nil
	}
	closed, err := r.closedBudgets(ctx) // before the rest is read: earlier evictions are then visible
	if err != nil {
		return err
	}
	live, err := r.live(ctx)
	if err != nil {
		return err
	}
	live.lookAtNodes()
	r.emptied = live.emptied
	r.copies = planCopies(live, now)
	r.holdSurge(live, closed)
	for i := range r.copies {
		r.lookWithin(r.copies[i].again)
	}
	return nil
}

// planCopies decides, from one observation. At most spec.updateStrategy.maxUnavailableShards shards change at a time.
func planCopies(o *observation, now time.Time) []shardCopies {
	want, limit := o.grid.Spec.Replicas, max(1, o.grid.Spec.UpdateStrategy.MaxUnavailableShards)
	list := make([]shardCopies, o.grid.Spec.Shards)
	busy := int32(0)
	for shard := range list {
		list[shard] = o.observeCopies(int32(shard))
		if list[shard].begun(want) && len(o.emptiedPods(int32(shard))) == 0 { // a cordoned node delays no other shard
			busy++
		}
	}
	for i := range list {
		c := &list[i]
		switch {
		case o.surges(c) && (c.begun(want) || busy < limit || len(o.emptiedPods(c.shard)) > 0):
			if !c.begun(want) && len(o.emptiedPods(c.shard)) == 0 {
				busy++
			}
			c.addSurge(o, want, now)
		case !c.resizing:
		case !c.begun(want) && busy >= limit:
			c.queued = true
		default:
			if !c.begun(want) {
				busy++
			}
			c.advance(o, want)
			c.resizing = c.fewest != want || c.most != want || c.pods != want // or only the StatefulSet is corrected, now
		}
		c.needed = min(o.grid.Spec.MinInSync, c.wanted)
		c.keep = o.keeps(c)
		if c.surge {
			o.judgeSurge(c, now)
		}
	}
	return list
}

// observeCopies is a shard in its present state, to stay so.
func (o *observation) observeCopies(shard int32) shardCopies {
	want := o.grid.Spec.Replicas
	c := shardCopies{shard: shard, have: -1}
	claimed := false
	for _, p := range o.of(shard) {
		claimed = claimed || p.Status.Epoch > 0
		if c.fewest == 0 || p.Spec.Replicas < c.fewest {
			c.fewest = p.Spec.Replicas
		}
		c.most = max(c.most, p.Spec.Replicas, p.Spec.MaxInSync)
	}
	if set := o.setOf(shard); set != nil && set.Spec.Replicas != nil {
		c.have = *set.Spec.Replicas
	}
	switch {
	case c.have < 0 && !claimed: // it is about to be created
		c.fewest, c.most, c.have, c.fresh = want, want, want, true
	case c.have < 0: // its StatefulSet is gone, its records exist
		c.have = c.most
	case c.fewest == 0:
		c.fewest = min(max(c.have, 1), api.MaxReplicas)
		c.most = c.fewest
	}
	c.pods, c.wanted, c.takesIn = max(c.have, c.fewest), c.fewest, c.most // never fewer pods than copies
	c.resizing = c.have != want || c.fewest != want || c.most != want
	return c
}

// begun reports whether the shard is changing: no longer at rest at its old number. A StatefulSet that was scaled by
// others is corrected at once.
func (c *shardCopies) begun(want int32) bool {
	return c.resizing && (c.fewest != c.most || c.fewest == want || c.fewest < want && c.have >= want)
}

// advance takes the next step towards want copies.
func (c *shardCopies) advance(o *observation, want int32) {
	if problem := o.shardProblem(c.shard); problem != "" { // who holds what is unknown, and requires manual action first
		c.waiting = problem
		return
	}
	switch {
	case c.fewest < want:
		c.grow(o, want)
	case c.fewest > want:
		if missing := o.notInSync(c.shard, want, true); len(missing) > 0 {
			c.waiting = "of the remaining pods " + strings.Join(missing, " and ")
			return
		}
		c.wanted, c.takesIn = want, want
	default:
		c.shrink(o, want)
	}
}

// grow adds pods, and counts them once they are in sync in every partition.
func (c *shardCopies) grow(o *observation, want int32) {
	c.pods, c.takesIn = max(c.have, want), want
	for n := c.fewest + 1; n <= want && len(o.notInSync(c.shard, n, false)) == 0; n++ {
		c.wanted = n
	}
	if c.wanted < want {
		c.waiting = strings.Join(o.notInSync(c.shard, want, false), " and ")
	}
}

// shrink removes pods that the records do not name any more.
func (c *shardCopies) shrink(o *observation, want int32) {
	c.wanted, c.takesIn = want, want
	if c.have <= want {
		c.pods = want
		return
	}
	if c.most > want {
		return // the records have to change first
	}
	for _, p := range o.at(c.shard) {
		for _, m := range p.Status.InSync {
			if shard, _ := shardOf(o.grid, m.PodName); shard == c.shard && !o.stays(c.shard, m.PodName, want) {
				c.waiting = fmt.Sprintf("%s is still in sync in %s", m.PodName, p.Name)
				return
			}
		}
	}
	c.pods = want
}

// stays reports whether the pod is one of the first n of the shard.
func (o *observation) stays(shard int32, pod string, n int32) bool {
	for ordinal := range n {
		if api.PodName(o.grid.Name, shard, ordinal) == pod {
			return true
		}
	}
	return false
}

// notInSync lists which of the first n pods of a shard are not in sync in every partition of it, and, optionally, which
// are not ready.
func (o *observation) notInSync(shard, n int32, ready bool) (list []string) {
	for ordinal := range n {
		name := api.PodName(o.grid.Name, shard, ordinal)
		pod := podNamed(o.pods, name)
		switch {
		case !o.inSyncEverywhere(shard, name) && pod == nil:
			list = append(list, name+" does not exist yet")
		case !o.inSyncEverywhere(shard, name):
			list = append(list, name+" is not in sync"+because(pod))
		case ready && !o.ready(name):
			list = append(list, name+" is not ready")
		}
	}
	return list
}

// inSyncEverywhere reports whether the pod holds all orders of every partition whose home its shard is. With missing
// records that is unknown.
func (o *observation) inSyncEverywhere(shard int32, pod string) bool {
	for _, p := range o.of(shard) {
		if !slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == pod }) {
			return false
		}
	}
	return len(o.partitions) >= o.wantPartitions()
}

// shardProblem is what requires manual action first about a partition of the shard, or about one whose record went
// back: who holds that is unknown.
func (o *observation) shardProblem(shard int32) string {
	for i := range o.partitions {
		p := &o.partitions[i]
		if problem := o.actionRequired(p); problem == api.ConditionConfigurationRegressed || problem != "" && (p.Spec.Shard == shard || holds(o.grid, shard, p)) {
			return p.Name + ": " + problem
		}
	}
	return ""
}

// copiesWanted is the present number of copies in the records: a copy that is being added does not count yet, one that
// is being given up no longer.
func (o *observation) copiesWanted(shard int32) int32 {
	n := int32(0)
	for _, p := range o.of(shard) {
		n = max(n, p.Spec.Replicas)
	}
	if n == 0 {
		return o.grid.Spec.Replicas
	}
	return n
}

// resizing is the plan of a shard that is on its way to spec.replicas, nil for any other.
func (o *observation) resizing(shard int32) *shardCopies {
	for i := range o.copies {
		if c := &o.copies[i]; c.shard == shard && c.resizing {
			return c
		}
	}
	return nil
}

// resizeText describes the progress of a change of spec.replicas; empty if none is under way.
func (o *observation) resizeText() string {
	var list []string
	done, queued := 0, 0
	for i := range o.copies {
		switch c := &o.copies[i]; {
		case !c.resizing:
			done++
		case c.queued:
			queued++
		case c.waiting != "":
			list = append(list, fmt.Sprintf("shard %d: %s", c.shard, c.waiting))
		case c.fewest == o.grid.Spec.Replicas:
			list = append(list, fmt.Sprintf("shard %d gives up the copy it has beyond them", c.shard))
		default:
			list = append(list, fmt.Sprintf("shard %d goes from %d to %d", c.shard, c.fewest, o.grid.Spec.Replicas))
		}
	}
	if done == len(o.copies) {
		return ""
	}
	if queued > 0 {
		list = append(list, fmt.Sprintf("%d more follow", queued))
	}
	return fmt.Sprintf("%d of %d shards have the %d copies of spec.replicas. %s", done, len(o.copies), o.grid.Spec.Replicas, sentences(list))
}

// recordWanted reports that the records of a shard want another number of copies than before.
func (r *run) recordWanted(c *shardCopies) {
	related := setReference(r.grid, c.shard)
	switch {
	case c.wanted > c.fewest:
		r.Recorder.Eventf(r.grid, related, corev1.EventTypeNormal, eventCopyAdded, "Resize", "every order of shard %d has %d copies now, %s included", c.shard, c.wanted, api.PodName(r.grid.Name, c.shard, c.wanted-1))
	case c.wanted < c.fewest:
		r.Recorder.Eventf(r.grid, related, corev1.EventTypeNormal, eventGivingCopyUp, "Resize", "shard %d goes from %d copies to %d: its primaries remove %s", c.shard, c.fewest, c.wanted, r.podRange(c.shard, c.wanted, c.fewest))
	}
}

// recordPods reports that the StatefulSet of a shard has got another number of pods.
func (r *run) recordPods(c *shardCopies, related runtime.Object) {
	switch {
	case c.pods > c.have && c.surge:
		r.Recorder.Eventf(r.grid, related, corev1.EventTypeNormal, eventAddingCopy, "Update", "shard %d gets a third copy, %s, before one of its pods is replaced", c.shard, r.podRange(c.shard, c.have, c.pods))
	case c.pods > c.have:
		r.Recorder.Eventf(r.grid, related, corev1.EventTypeNormal, eventAddingCopy, "Resize", "shard %d goes from %d copies to %d: %s joins", c.shard, c.fewest, r.grid.Spec.Replicas, r.podRange(c.shard, c.have, c.pods))
	case c.pods < c.have:
		r.Recorder.Eventf(r.grid, related, corev1.EventTypeNormal, eventCopyGivenUp, "Resize", "shard %d has %d copies; no record names the removed pods: %s", c.shard, c.pods, r.podRange(c.shard, c.pods, c.have))
	}
}

// podRange names the pods from one ordinal to before another.
func (r *run) podRange(shard, from, to int32) string {
	var names []string
	for ordinal := max(from, 0); ordinal < to && len(names) < api.MaxReplicas; ordinal++ {
		names = append(names, api.PodName(r.grid.Name, shard, ordinal))
	}
	if more := int(to-max(from, 0)) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, " and ")
}
