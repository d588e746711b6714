package ordergrid

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

// run is one pass over one grid.
type run struct {
	*Reconciler
	grid       *api.OrderGrid
	scale      *scale
	found      *findings
	applier    apply.Applier
	templates  []corev1.PodTemplateSpec // by shard
	copies     []shardCopies            // by shard
	emptied    map[string]string        // pods on Kubernetes nodes that are being emptied, and those nodes
	drains     bool                     // a drain of a pair is noticed
	roll       *rollPlan                // nil while no pod has to be replaced
	lost       *lostPlan                // nil while no pod is on a lost node
	nodesRead  bool                     // the Kubernetes nodes were looked at
	shortage   shortage                 // why they do not do
	tls        *tlsState                // nil without spec.security.tls
	stage      *tlsPlan                 // what pods do on their data port
	external   *externalState           // nil without spec.externalAccess
	keyless    []string                 // pods of a release without the peer key
	peerKey    bool                     // the Secret with the peer key is there, or was
	notAllowed *LimitError              // spec.podTemplate is not allowed, and StatefulSets keep the template they have
}

// steps brings the grid's objects to what spec asks for. What a pod needs comes before the pod.
func (r *run) steps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.planTLS,
		r.buildPods,
		r.checkNodes,
		r.planCopies,
		r.applyClientService,
		r.keepExternal,
		r.keepPeerKey,
		r.applyPartitions,
		r.applyIdentity,
		r.keepCertificates,
		r.applyAuthorization,
		r.applyNetworkPolicy,
		r.applyShards,
		r.drainShards,
		r.removeShards,
		r.replaceLost,
		r.rollPods,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// buildPods comes before anything is written: an overlay that would break the grid stops everything. One that an
// administrator does not allow stops changes of the template only: the limits may be younger than the grid, whose certificates
// have to be renewed and whose pods on lost nodes replaced all the same.
func (r *run) buildPods(ctx context.Context) error {
	r.templates = make([]corev1.PodTemplateSpec, r.grid.Spec.Shards)
	grid := staged(r.grid, r.stage.stage)
	for shard := range r.grid.Spec.Shards {
		base := pod(grid, shard, r.Defaults)
		base.Spec.Containers[0].Args = append(base.Spec.Containers[0].Args, transitionArgs(r.stage.stage)...)
		template, err := overlay(r.grid, base)
		if err != nil {
			return err
		}
		if refused := checkLimits(r.grid.Namespace, r.Defaults.PodTemplates, &base, &template); refused != nil {
			return r.keepTemplates(ctx, refused)
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
	for shard := range r.grid.Spec.Shards {
		copies := &r.copies[shard]
		for index := range r.grid.PartitionsPerShard() {
			f := r.found.partitions[api.PartitionName(r.grid.Name, shard, index)]
			asked, err := r.wishes(ctx, f, copies)
			if err != nil {
				return err
			}
			record := partition(r.grid, copies, index, asked)
			var now *api.GridPartition
			if f != nil {
				now = f.record
			}
			r.scale.tell(record, now)
			r.tellExternal(record)
			record.Spec.UnprovedPeers = r.unprovedPeers(shard)
			if err := r.keepFirstSeq(ctx, record, now); err != nil {
				return err
			}
			if err := r.refuseToForget(ctx, record); err != nil {
				return err
			}
			if _, err := r.applier.Apply(ctx, r.grid, record); err != nil {
				if apierrors.IsInvalid(err) && (asked.acceptDataLossEpoch != 0 || r.scale.leaves(shard)) {
					return &movedError{err} // the epoch has moved, or the partition was retired, since it was read
				}
				return err
			}
			if err := r.stampRecord(ctx, record.Name, now); err != nil {
				return err
			}
			r.tellGranted(ctx, f, asked)
		}
		r.tellWanted(copies)
	}
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
		"and create it anew, which gives up the orders in memory", e.name, e.epoch)
}

// refuseToForget guards the one object that must not simply be created again when it is missing. The mirror in status
// serves as the memory, and the API server, not the cache, is asked before the grid is stalled.
func (r *run) refuseToForget(ctx context.Context, record *api.GridPartition) error {
	seen := r.reached(record.Name)
	if seen == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(record)
	err := r.Client.Get(ctx, key, &api.GridPartition{})
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &api.GridPartition{})
	}
	if apierrors.IsNotFound(err) {
		return &recordLostError{record.Name, seen}
	}
	return err
}

func (r *run) applyIdentity(ctx context.Context) error {
	for shard := range r.grid.Spec.Shards {
		for _, object := range []client.Object{
			serviceAccount(r.grid, shard),
			role(r.grid, shard),
			roleBinding(r.grid, shard),
		} {
			if _, err := r.applier.Apply(ctx, r.grid, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) applyShards(ctx context.Context) error {
	for shard := range r.grid.Spec.Shards {
		for _, object := range []client.Object{
			headlessService(r.grid, shard),
			podDisruptionBudget(r.grid, shard, r.copies[shard].keep),
		} {
			if _, err := r.applier.Apply(ctx, r.grid, object); err != nil {
				return err
			}
		}
		if !r.built(shard) {
			continue
		}
		set := statefulSet(r.grid, shard, r.copies[shard].pods, r.templates[shard])
		outcome, err := r.applier.Apply(ctx, r.grid, set)
		if err != nil {
			return err
		}
		if outcome == apply.Updated {
			r.tellPods(&r.copies[shard], set)
		}
		if outcome == apply.Created {
			// What is related keeps the events of several shards apart, which Kubernetes would count as one.
			r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardCreated, "Create", "created shard %d with %s", shard, count(int(r.copies[shard].pods), "pod", "pods"))
		}
	}
	return nil
}

// retry says when a failed run is tried again.
type retry int

const (
	retryBackoff retry = iota // as the work queue does
	retrySoon                 // what stands in the way is already leaving
	retryNever                // only a change of an object helps, and that wakes the controller
)

// classify says what an error of a step means: whether a person has to act, and when to try again.
func classify(err error) (*stall, retry) {
	var (
		moved   *movedError
		overlay *OverlayError
		limit   *LimitError
		foreign *apply.ForeignError
		lost    *recordLostError
	)
	switch {
	case err == nil:
		return nil, retryNever
	case errors.As(err, &moved):
		return nil, retrySoon
	case errors.As(err, &overlay):
		return &stall{reasonPodTemplateInvalid, overlay.Error()}, retryNever
	case errors.As(err, &limit):
		return limit.stall(), retryNever
	case errors.As(err, &foreign) && foreign.Leaving:
		return nil, retrySoon
	case errors.As(err, &foreign):
		// The foreign object does not wake the controller when it goes.
		return &stall{reasonNameTaken, foreign.Error()}, retryBackoff
	case errors.As(err, &lost):
		return &stall{reasonRecordLost, lost.Error()}, retryBackoff
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return &stall{reasonApplyRefused, err.Error()}, retryBackoff
	}
	return nil, retryBackoff
}
