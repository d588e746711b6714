package ordergrid

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

// buildPods precedes all writes. A template that is refused, because it would break the grid or an administrator does
// not allow it, stops a new grid as a whole; for a running grid only changes of the template: its certificates are
// still renewed and its pods on lost nodes replaced.
func (r *run) buildPods(context.Context) error {
	r.templates = make([]corev1.PodTemplateSpec, r.grid.Spec.Shards)
	grid := staged(r.grid, r.stage.stage)
	for shard := range r.grid.Spec.Shards {
		base := pod(grid, shard, r.Defaults)
		base.Spec.Containers[0].Args = append(base.Spec.Containers[0].Args, transitionArgs(r.stage.stage)...)
		r.functions.given.addTo(grid.Name, &base)
		template, err := overlay(r.grid, base)
		if err != nil {
			return r.keepTemplates(err)
		}
		if refused := checkLimits(r.grid.Namespace, r.Defaults.PodTemplates, &base, &template); refused != nil {
			return r.keepTemplates(refused)
		}
		r.templates[shard] = template
	}
	return nil
}

func (r *run) applyClientService(ctx context.Context) error {
	_, err := r.applier.Apply(ctx, r.grid, clientService(r.grid))
	return err
}

func (r *run) applyPartitions(ctx context.Context) error {
	return r.eachShard(func(shard int32) error {
		copies := &r.copies[shard]
		var numbers []int32
		for n, home := range r.scale.homes {
			if home == shard {
				numbers = append(numbers, int32(n))
			}
		}
		asked, pods, before := make([]requested, len(numbers)), make([]string, len(numbers)), make([]string, len(numbers))
		for i, n := range numbers {
			var err error
			f := r.findings[api.PartitionName(r.grid.Name, n)]
			if asked[i], err = r.requested(ctx, f, copies); err != nil {
				return err
			}
			if pods[i] = asked[i].preferredPod; f != nil {
				before[i] = f.record.Spec.PreferredPod
			}
		}
		preferred := primaries(mayBePrimary(r.grid, copies), pods, before)
		for i, n := range numbers {
			if err := r.applyPartition(ctx, copies, n, preferred[i], asked[i]); err != nil {
				return err
			}
		}
		r.recordWanted(copies)
		return nil
	})
}

func (r *run) applyPartition(ctx context.Context, copies *shardCopies, n int32, preferred string, asked requested) error {
	record := partition(r.grid, copies, n, preferred, asked)
	f := r.findings[record.Name]
	var now *api.GridPartition
	if f != nil {
		now = f.record
		record.Spec.LearnerRate = r.learnerRate(now, copies.shard)
		record.ResourceVersion = now.ResourceVersion // a decision by an old record would send it back
	}
	if r.restoresLater(now) {
		return nil
	}
	record.Spec.Restore = r.restoreOf(n, now)
	r.recordExternal(record, now)
	if err := r.refuseToForget(ctx, record, now); err != nil {
		return err
	}
	if _, err := r.applier.Apply(ctx, r.grid, record); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) && asked.acceptDataLossEpoch != 0 {
			return &movedError{err} // the record, or its epoch, has moved since it was read
		}
		return err
	}
	r.recordMove(record, now)
	if err := r.stampRecord(ctx, record.Name, now); err != nil {
		return err
	}
	r.recordGranted(ctx, f, asked)
	return nil
}

// recordLostError: a partition's configuration record existed and is gone.
type recordLostError struct {
	name  string
	epoch int64
}

func (e *recordLostError) Error() string {
	return fmt.Sprintf("GridPartition %s is gone although it had reached epoch %d; an empty record would let a pod without "+
		"the orders become primary, so it is not created again: restore it with its status from a backup, or delete this OrderGrid "+
		"and recreate it, which gives up the orders in memory", e.name, e.epoch)
}

// refuseToForget guards the one object that must not simply be recreated when it is missing. The mirror in status is
// the memory, and the API server is queried before one is created or the grid is stalled: the cache (now) may be
// behind, and an existing record has the home of its partition.
func (r *run) refuseToForget(ctx context.Context, record, now *api.GridPartition) error {
	if now != nil {
		return nil
	}
	if r.made == nil {
		live, err := r.live(ctx)
		if err != nil {
			return err
		}
		r.made = make(map[string]bool, len(live.partitions))
		for i := range live.partitions {
			r.made[live.partitions[i].Name] = true
		}
	}
	if r.made[record.Name] {
		return &movedError{fmt.Errorf("GridPartition %s is not in the cache yet", record.Name)}
	}
	if seen := r.reached(record.Name); seen > 0 {
		return &recordLostError{record.Name, seen}
	}
	return nil
}

// applyShards creates the pods of every shard, after their dependencies.
func (r *run) applyShards(ctx context.Context) error {
	return r.eachShard(func(shard int32) error { return r.applyShard(ctx, shard) })
}

func (r *run) applyShard(ctx context.Context, shard int32) error {
	copies := &r.copies[shard]
	for _, object := range []client.Object{
		serviceAccount(r.grid, shard),
		role(r.grid, shard),
		roleBinding(r.grid, shard),
		headlessService(r.grid, shard),
		podDisruptionBudget(r.grid, shard, copies.keep),
	} {
		if _, err := r.applier.Apply(ctx, r.grid, object); err != nil {
			return err
		}
	}
	switch {
	case !r.built(shard):
		return nil
	case copies.fresh && !r.succeeded[stepGuard]:
		return fmt.Errorf("the pods of shard %d are not created before their NetworkPolicy", shard)
	}
	set := statefulSet(r.grid, shard, copies.pods, r.templates[shard])
	outcome, err := r.applier.Apply(ctx, r.grid, set)
	switch {
	case err != nil:
		return err
	case outcome == apply.Updated:
		r.recordPods(copies, set)
	case outcome == apply.Created:
		// The related object keeps the events of several shards apart, which Kubernetes would aggregate.
		r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardCreated, "Create", "created shard %d with %s", shard, count(int(copies.pods), "pod", "pods"))
	}
	return nil
}
