package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/placement"
)

// turnBackAfter is how long a pod may be not ready before partitions moving to it are sent back. It may be briefly not
// ready when it gets one.
const turnBackAfter = 10 * time.Second

// planMoves decides which partitions get another home, from the API server: with an old cache one could be sent to two
// places.
func (r *run) planMoves(ctx context.Context) error {
	s, now := &r.scale, r.Clock.Now()
	o, plan := r.observation, nextMoves(r.observation, now)
	if len(plan.Begin) > 0 {
		live, err := r.live(ctx)
		if err != nil {
			return err
		}
		o, plan = live, nextMoves(live, now)
	}
	s.waiting = plan.Waiting
	s.settled = len(plan.Begin)+len(plan.Queued)+len(plan.Waiting)+len(o.moving()) == 0 && len(o.partitions) == o.wantPartitions()
	s.keepToWindow(r.grid, plan, now)
	if !s.until.IsZero() {
		r.lookWithin(s.until.Sub(now))
	}
	open := r.mayMove(ctx, slices.ContainsFunc(plan.Begin, forward) && !s.holds())
	if open {
		r.weigh(ctx, o)
		plan = nextMoves(o, now)
	}
	s.queued = len(plan.Queued)
	r.begin(o, plan, open, now)
	return nil
}

// mayMove checks orders against spec.updateStrategy.objective before partitions move.
func (r *run) mayMove(ctx context.Context, asked bool) bool {
	open := r.keepToObjective(ctx, r.observation, &r.remembered.scale.objective, &r.scale.held, asked, "the next partition moves")
	r.lookWithin(r.scale.again)
	return open
}

// nextMoves plans, from one observation.
func nextMoves(o *observation, now time.Time) placement.Plan {
	if len(o.partitions) < o.wantPartitions() {
		return placement.Plan{} // they are being created, or one is lost
	}
	paused, partitions := "", make([]placement.Partition, 0, len(o.partitions))
	for i := range o.partitions {
		p := &o.partitions[i]
		if problem := o.actionRequired(p); problem != "" && paused == "" {
			paused = fmt.Sprintf("%s: %s, and no partition begins to move before it is resolved", p.Name, problem)
		}
		held := heldBy(o.grid, p)
		q := placement.Partition{ID: int(p.Spec.Partition), Home: int(p.Spec.Shard), Bytes: o.bytes[p.Spec.Partition], Moving: moves(o.grid, p), Stays: o.whyStays(p)}
		for _, shard := range held {
			q.Held = append(q.Held, int(shard))
		}
		partitions = append(partitions, q)
	}
	shards := make([]placement.Shard, o.grid.Spec.Shards)
	for i := range shards {
		shards[i] = placement.Shard{ID: i, Leaves: o.scale.leaves(int32(i)), Closed: o.closed(int32(i), now)}
	}
	plan := placement.Next(shards, partitions, placement.Limits{Concurrent: concurrentMoves(o.grid)})
	if paused != "" && len(plan.Begin)+len(plan.Queued)+len(plan.Waiting) > 0 {
		return placement.Plan{Queued: append(plan.Begin, plan.Queued...), Waiting: []string{paused}}
	}
	return plan
}

// whyStays returns why a partition may not be moved now, "" if it may.
func (o *observation) whyStays(p *api.GridPartition) string {
	switch {
	case o.resizing(p.Spec.Shard) != nil:
		return "the number of its copies changes first"
	case len(o.updatedPods(p.Spec.Shard)) > 0:
		return "its pods are replaced first"
	}
	return o.problem(p)
}

// closed returns why no partition may be moved to a shard now, "" if one may.
func (o *observation) closed(shard int32, now time.Time) string {
	switch emptied := o.emptiedPods(shard); {
	case o.setOf(shard) == nil:
		return "it is being created"
	case o.resizing(shard) != nil:
		return "the number of its copies changes first"
	case len(o.updatedPods(shard)) > 0, o.surging(shard):
		return "its pods are being replaced"
	case len(emptied) > 0:
		return fmt.Sprintf("%s is on %s, which is being emptied", emptied[0], o.emptied[emptied[0]])
	}
	name := o.notReady(shard)
	if name == "" {
		return ""
	}
	pod := podNamed(o.pods, name)
	if pod == nil {
		return name + " does not exist yet"
	}
	comes := slices.ContainsFunc(o.of(shard), func(p *api.GridPartition) bool { return moves(o.grid, p) })
	if comes && pod.DeletionTimestamp == nil && now.Sub(readyChanged(pod)) < turnBackAfter {
		return ""
	}
	return name + " is not ready" + because(pod)
}

// surging reports whether a shard has a third copy, or gets one, while its pods are replaced.
func (o *observation) surging(shard int32) bool {
	return slices.ContainsFunc(o.copies, func(c shardCopies) bool { return c.shard == shard && c.surge })
}

// recordMove reports that a record names another home than before.
func (r *run) recordMove(record, now *api.GridPartition) {
	if now != nil && now.Spec.Shard != record.Spec.Shard {
		r.Recorder.Eventf(r.grid, reference(r.grid.Namespace, record.Name), corev1.EventTypeNormal, eventPartitionMoves, "Scale",
			"p%d moves from shard %d to shard %d", record.Spec.Partition, now.Spec.Shard, record.Spec.Shard)
	}
}

// moveEvents returns an event for every finished move.
func moveEvents(grid string, before, after []api.PartitionMove, partitions []api.PartitionSummary) (events []event) {
	for _, m := range before {
		if slices.ContainsFunc(after, func(n api.PartitionMove) bool { return n.Partition == m.Partition }) {
			continue
		}
		i := slices.IndexFunc(partitions, func(p api.PartitionSummary) bool {
			return p.Name == api.PartitionName(grid, m.Partition) && p.InSync > 0
		})
		if i < 0 {
			continue
		}
		events = append(events, event{kind: corev1.EventTypeNormal, reason: eventPartitionMoved, action: "Scale", partition: partitions[i].Name,
			note: fmt.Sprintf("p%d is on shard %d, %s", m.Partition, partitions[i].Shard, count(int(partitions[i].InSync), "copy", "copies"))})
	}
	return events
}
