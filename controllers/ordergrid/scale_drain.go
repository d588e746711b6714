package ordergrid

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/drained"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// drainAgain is how often the nodes of a shard that drains are asked.
const drainAgain = 2 * time.Second

// drainShards gives up for good the shards that are drained, the highest first.
func (r *run) drainShards(ctx context.Context) error {
	for shard := r.scale.shards - 1; shard >= max(r.scale.wanted, r.scale.layout.Open); shard-- {
		r.lookWithin(drainAgain)
		if retired, err := r.retire(ctx, shard); err != nil || !retired {
			return err
		}
	}
	return nil
}

// retire gives a shard up if it is drained. It goes by the records as the API server has them, and by what the nodes say
// after they were read; a record that changed in between is not touched.
func (r *run) retire(ctx context.Context, shard int32) (bool, error) {
	live, err := r.live(ctx)
	if err != nil {
		return false, err
	}
	records, answers := live.of(shard), map[string]*answer{}
	for i := range live.pods {
		if pod := &live.pods[i]; pod.Labels[api.LabelShard] == fmt.Sprint(shard) {
			answers[pod.Name] = &answer{pod: pod}
		}
	}
	r.ask(ctx, r.grid, answers)
	d := judgeDrain(r.grid, r.scale.layout.Revision, records, answers)
	if want := len(partitionNames(r.grid, shard)); len(records) < want {
		d.waits = append(d.waits, fmt.Sprintf("%d of %d records are there", len(records), want))
	}
	r.scale.left[shard], r.scale.waitsFor[shard] = d.left, strings.Join(d.waits, "; ")
	if len(d.waits) > 0 {
		return false, nil
	}
	for _, record := range records {
		if record.Spec.Admission == api.AdmissionRetired {
			continue
		}
		before := record.DeepCopy()
		record.Spec.Admission = api.AdmissionRetired
		rememberLast(record, d.last[record.Name])
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		switch err := r.Client.Patch(ctx, record, patch, client.FieldOwner(apply.FieldOwner)); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return false, &movedError{err}
		case err != nil:
			return false, fmt.Errorf("retire GridPartition %s: %w", record.Name, err)
		}
		countWrite("GridPartition", apply.Updated)
		wrote(ctx, "updated", "GridPartition", record.Name, "admission", api.AdmissionRetired)
	}
	r.scale.waitsFor[shard] = "its objects to be deleted"
	r.Recorder.Eventf(r.grid, records[0], corev1.EventTypeNormal, eventShardDrained, "Scale", "shard %d is drained: %s", shard, d.outcome(r.grid))
	return true, nil
}

// drainage is how far a shard has drained.
type drainage struct {
	left    int64             // entries that the sink does not hold
	entries uint64            // entries that the shard took
	last    map[string]uint64 // sequence number of the last entry, by partition
	waits   []string          // what has to happen yet; empty: it is drained
}

func (d *drainage) outcome(grid *api.OrderGrid) string {
	if d.left > 0 {
		return fmt.Sprintf("%d entries that no sink holds are given up, as spec.scaleIn.policy %s says", d.left, grid.Spec.ScaleIn.Policy)
	}
	return fmt.Sprintf("its sinks hold all %d entries", d.entries)
}

// judgeDrain says what a shard waits for: each of its partitions has to be one that may be given up.
func judgeDrain(grid *api.OrderGrid, revision int64, records []*api.GridPartition, answers map[string]*answer) *drainage {
	d := &drainage{last: map[string]uint64{}}
	nodes := make(map[string]*nodestatus.Node, len(answers))
	for pod, a := range answers {
		nodes[pod] = a.node
	}
	terms := drained.Terms{Revision: uint64(revision), Keep: grid.Spec.ScaleIn.KeepDrained.Duration, Discard: grid.Spec.ScaleIn.Policy == api.ScaleInDiscardOrders}
	for _, p := range records {
		if p.Spec.Admission == api.AdmissionRetired {
			continue
		}
		rec := kube.FromObject(p)
		v := drained.Judge(&rec, nodes, terms)
		d.entries += v.Entries
		d.last[p.Name] = v.Last
		d.left += int64(min(v.Left, 1<<62))
		if v.Waits != "" {
			d.waits = append(d.waits, v.Waits)
		}
	}
	return d
}

// tellScale tells of a new layout, once every record has it.
func (r *run) tellScale() {
	before, now := r.scale.before, r.scale.layout
	if before.Revision == 0 || before == now {
		return
	}
	set := reference(r.grid.Namespace, api.PartitionName(r.grid.Name, min(before.Open, now.Open), 0))
	switch {
	case now.Open > before.Open:
		r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardOpened, "Scale", "%s now, before it were %d", count(int(now.Open), "shard takes orders", "shards take orders"), before.Open)
	case now.Open < before.Open:
		r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardDraining, "Scale", "%s now, before it were %d: %s drains", count(int(now.Open), "shard takes orders", "shards take orders"), before.Open, shardNames(now.Open, before.Open))
	}
}
