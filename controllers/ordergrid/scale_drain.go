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
)

// drainAgain is how often the nodes of a shard that drains are asked.
const drainAgain = 2 * time.Second

// planShards decides about the shards, before anything else of the pass: everything else works on what it decides.
func (r *Reconciler) planShards(ctx context.Context, grid *api.OrderGrid) (*scale, error) {
	records, err := r.allPartitions(ctx, r.Client, grid)
	if err != nil {
		return nil, err
	}
	pods, err := r.pods(ctx, r.Client, grid)
	if err != nil {
		return nil, err
	}
	return planScale(grid, records, pods, r.Clock.Now()), nil
}

// drainShards gives up for good the shards that are drained, the highest first.
func (r *run) drainShards(ctx context.Context) error {
	r.tellScale()
	for shard := r.scale.shards - 1; shard >= max(r.scale.wanted, r.scale.layout.Open); shard-- {
		r.found.lookWithin(drainAgain)
		if retired, err := r.retire(ctx, shard); err != nil || !retired {
			return err
		}
	}
	return nil
}

// retire gives a shard up if it is drained. It goes by the records as the API server has them, and by what the nodes say
// after they were read; a record that changed in between is not touched.
func (r *run) retire(ctx context.Context, shard int32) (bool, error) {
	live, err := r.look(ctx, r.Live, r.grid)
	if err != nil {
		return false, err
	}
	var records []*api.GridPartition
	answers := map[string]*answer{}
	for i := range live.partitions {
		if p := &live.partitions[i]; p.Spec.Shard == shard {
			records = append(records, p)
		}
	}
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

// judgeDrain says what a shard waits for. Every process that could become primary has to have heard that the partition is
// closed: then nothing can be added to what the present primary says.
func judgeDrain(grid *api.OrderGrid, revision int64, records []*api.GridPartition, answers map[string]*answer) *drainage {
	d := &drainage{last: map[string]uint64{}}
	for _, p := range records {
		if p.Spec.Admission == api.AdmissionRetired {
			continue
		}
		if l := p.Spec.Layout; l == nil || l.Revision != revision || p.Spec.Admission != api.AdmissionDraining {
			d.waits = append(d.waits, p.Name+" has not been told")
			continue
		}
		if why := d.partition(grid, p, answers); why != "" {
			d.waits = append(d.waits, why)
		}
	}
	return d
}

func (d *drainage) partition(grid *api.OrderGrid, p *api.GridPartition, answers map[string]*answer) string {
	for name, a := range answers {
		if a.node == nil {
			continue
		}
		if q := a.node.Find(p.Name); q == nil || !q.Closed || q.AdmissionRevision != uint64(p.Spec.Layout.Revision) {
			return fmt.Sprintf("%s has not heard that %s takes no more orders", name, p.Name)
		}
	}
	for _, m := range p.Status.InSync {
		a := answers[m.PodName]
		if a == nil || a.node == nil {
			return fmt.Sprintf("%s, which holds a copy of %s, does not answer", m.PodName, p.Name)
		}
		if q := a.node.Find(p.Name); q.Member != m.ID {
			return fmt.Sprintf("%s is not the process that the record of %s names", m.PodName, p.Name)
		}
	}
	if p.Status.Primary == nil {
		return "" // nobody ever had it: there is nothing in it
	}
	q := answers[p.Status.Primary.PodName].node.Find(p.Name)
	if q.Role != "primary" || q.Epoch != uint64(p.Status.Epoch) || q.Suspended {
		return fmt.Sprintf("the primary of %s is being changed", p.Name)
	}
	d.entries += q.DataSeq - min(q.DataSeq, uint64(max(p.Spec.FirstSeq, 1)-1))
	d.last[p.Name] = q.LastSeq
	if q.DataSeq > q.CursorSeq {
		d.left += int64(min(q.DataSeq-q.CursorSeq, 1<<62))
	}
	keep := grid.Spec.ScaleIn.KeepDrained.Duration
	switch {
	case q.CommitSeq != q.LastSeq:
		return p.Name + " has orders under way"
	case !q.Drained() && grid.Spec.ScaleIn.Policy != api.ScaleInDiscardOrders:
		return fmt.Sprintf("%s holds %d entries that its sink does not", p.Name, q.DataSeq-q.CursorSeq)
	case time.Duration(q.ClosedForNs) < keep:
		return fmt.Sprintf("%s answers reads and repeated orders for %v more", p.Name, (keep - time.Duration(q.ClosedForNs)).Round(time.Second))
	}
	return ""
}

// tellScale tells of a new layout.
func (r *run) tellScale() {
	before, now := r.scale.before, r.scale.layout
	if before.Revision == 0 || before == now {
		return
	}
	set := reference(r.grid.Namespace, api.PartitionName(r.grid.Name, min(before.Open, now.Open), 0))
	switch {
	case now.Open > before.Open:
		r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardOpened, "Scale", "%d shards take orders now, before it were %d", now.Open, before.Open)
	case now.Open < before.Open:
		r.Recorder.Eventf(r.grid, set, corev1.EventTypeNormal, eventShardDraining, "Scale", "%d shards take orders now, before it were %d: %s drains", now.Open, before.Open, shardNames(now.Open, before.Open))
	}
}
