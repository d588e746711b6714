package ordergrid

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// Reasons of Restored.
const (
	reasonRestoreNotLooked = "NotLooked"
	reasonReadingArchive   = "ReadingArchive"
	reasonRestoreFailed    = "RestoreFailed"
	reasonLoadFailed       = "LoadFailed"
	reasonLoading          = "Loading"
	reasonRestored         = "Restored"
)

// recoveryPoint is what a pod of the restore Job reports.
type recoveryPoint struct {
	Partition string       `json:"partition"`
	Seq       int64        `json:"seq"` // 0: the partition begins empty
	Hash      string       `json:"hash"`
	Time      *metav1.Time `json:"time,omitempty"`
	Epoch     int64        `json:"epoch"`
	Lineage   int64        `json:"lineage"`
}

// restorePlan is how far the archive of spec.restoreFrom was read.
type restorePlan struct {
	points map[int32]recoveryPoint // by partition; of all of them, or no record is made
	read   int                     // partitions whose archive was read
	failed string                  // why it cannot be
}

// planRestore has the recovery points fixed before any record is made: a record without one would begin empty.
func (r *run) planRestore(ctx context.Context) error {
	if r.grid.Spec.RestoreFrom == nil || len(r.partitions) >= r.wantPartitions() {
		return nil
	}
	plan := &restorePlan{}
	want, job := restoreJob(r.grid, r.Defaults), &batchv1.Job{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), job)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Job %s: %w", want.Name, err)
	}
	if err != nil {
		if _, err := r.applier.Apply(ctx, r.grid, want); err != nil {
			return err
		}
		job = want
	}
	r.lookWithin(lookAgain) // pods of a Job are not watched
	var pods corev1.PodList
	if err := r.list(ctx, r.Client, r.grid, &pods, client.MatchingLabels{api.LabelGrid: r.grid.Name, objects.LabelComponent: objects.RestoreJob}); err != nil {
		return fmt.Errorf("list pods of Job %s: %w", want.Name, err)
	}
	points := map[int32]recoveryPoint{}
	for i := range pods.Items {
		if n, p, ok := pointOf(&pods.Items[i]); ok && n < r.grid.Spec.Partitions {
			points[n] = p
		}
	}
	plan.read = len(points)
	failure := messages.JobFailure(job)
	switch {
	case plan.read == r.wantPartitions():
		plan.points = points
	case failure != "":
		plan.failed = strings.TrimPrefix(failure, ". ") + messages.First(pods.Items, messages.PodFailure)
	case job.Status.CompletionTime != nil: // the archive keeps the points for this grid
		plan.failed = fmt.Sprintf("Job %s is complete, and the report of a pod is gone with the pod", job.Name)
	}
	r.restore = plan
	return nil
}

// pointOf reads what a pod of the Job reports.
func pointOf(pod *corev1.Pod) (n int32, p recoveryPoint, ok bool) {
	index, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	if err != nil || pod.DeletionTimestamp != nil {
		return 0, p, false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode == 0 && json.Unmarshal([]byte(t.Message), &p) == nil && p.Partition == fmt.Sprintf("p%d", index) {
			return int32(index), p, true
		}
	}
	return 0, p, false
}

// restoresLater reports whether a record cannot be made yet, since its recovery point is not known.
func (r *run) restoresLater(now *api.GridPartition) bool {
	return now == nil && r.grid.Spec.RestoreFrom != nil && (r.restore == nil || r.restore.points == nil)
}

// restoreOf is the recovery point of a record: what it has, or what it is made with.
func (r *run) restoreOf(n int32, now *api.GridPartition) *api.PartitionRestore {
	if now != nil {
		return now.Spec.Restore
	}
	if r.restore == nil || r.restore.points[n].Seq == 0 {
		return nil
	}
	p := r.restore.points[n]
	return &api.PartitionRestore{Seq: p.Seq, Hash: p.Hash, Epoch: p.Epoch, Lineage: p.Lineage}
}

// loading is how far pods have loaded a partition.
type loading struct {
	seq   int64
	error string // why one of them does not
}

// loadedBy reads it from the answers of the pods.
func loadedBy(record string, answers map[string]*answer) (l loading) {
	for _, a := range answers {
		if a.node == nil {
			continue
		}
		p := a.node.Find(record)
		if p == nil || p.Restore == nil {
			continue
		}
		l.seq = max(l.seq, int64(p.LastSeq))
		if p.Restore.Error != "" && (l.error == "" || a.pod.Name+": "+p.Restore.Error < l.error) {
			l.error = a.pod.Name + ": " + p.Restore.Error
		}
	}
	return l
}

// judgeRestored: every partition began with what the archive has.
func judgeRestored(o *observation) judgement {
	switch {
	case o.grid.Spec.RestoreFrom == nil:
		return judgement{}
	case len(o.partitions) < o.wantPartitions() && o.restore == nil:
		return judgement{metav1.ConditionUnknown, reasonRestoreNotLooked, "the archive was not looked at; see condition Stalled"}
	case len(o.partitions) < o.wantPartitions() && o.restore.failed != "":
		return judgement{metav1.ConditionFalse, reasonRestoreFailed, fmt.Sprintf("no partition was begun: %s. Do what it asks for, then delete the Job: the operator makes it again", o.restore.failed)}
	case len(o.partitions) < o.wantPartitions():
		return judgement{metav1.ConditionFalse, reasonReadingArchive, fmt.Sprintf("Job %s replays the archive: %d of %d partitions are read", restoreJobName(o.grid), o.restore.read, o.wantPartitions())}
	}
	var waiting, failed []string
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.Status.Epoch > 0 {
			continue
		}
		waiting = append(waiting, p.Name)
		if p.Spec.Restore == nil {
			continue
		}
		l := o.loadingOf(p)
		waiting[len(waiting)-1] = fmt.Sprintf("%s has entry %d of %d", p.Name, l.seq, p.Spec.Restore.Seq)
		if l.error != "" {
			failed = append(failed, fmt.Sprintf("%s on %s", p.Name, l.error))
		}
	}
	switch {
	case len(failed) > 0:
		return judgement{metav1.ConditionFalse, reasonLoadFailed, fmt.Sprintf("%d of %d partitions cannot be loaded%s. Grid nodes try again", len(failed), o.wantPartitions(), some(failed))}
	case len(waiting) > 0:
		return judgement{metav1.ConditionFalse, reasonLoading, fmt.Sprintf("%d of %d partitions are loaded from the archive%s%s", len(waiting), o.wantPartitions(), some(waiting), messages.First(o.pods, messages.PodTrouble))}
	}
	return judgement{metav1.ConditionTrue, reasonRestored, all(len(o.partitions), "partition has", "partitions have") + " begun with the archive; status.restore has the recovery points. spec.restoreFrom may be removed"}
}

func (o *observation) loadingOf(p *api.GridPartition) loading {
	if f := o.findings[p.Name]; f != nil {
		return f.loading
	}
	return loading{}
}

// restoreStatus is the recovery point of each partition, and how far it is loaded.
func (o *observation) restoreStatus(before *api.RestoreStatus, now time.Time) *api.RestoreStatus {
	if o.grid.Spec.RestoreFrom == nil || before != nil && before.CompletionTime != nil {
		return before
	}
	times := map[string]*metav1.Time{}
	if before != nil {
		for i := range before.Partitions {
			times[before.Partitions[i].Name] = before.Partitions[i].ReceivedTime
		}
	}
	s := &api.RestoreStatus{}
	claimed := 0
	for i := range o.partitions {
		p := &o.partitions[i]
		row := api.PartitionRestoreStatus{Name: p.Name, ReceivedTime: times[p.Name]}
		if from := p.Spec.Restore; from != nil {
			row.Seq, row.Hash = from.Seq, from.Hash
			row.LoadedPercent = int32(100 * (float64(min(o.loadingOf(p).seq, from.Seq)) / float64(from.Seq)))
			if o.restore != nil && o.restore.points[p.Spec.Partition].Seq == from.Seq {
				row.ReceivedTime = o.restore.points[p.Spec.Partition].Time
			}
		}
		if p.Status.Epoch > 0 {
			row.LoadedPercent = 100
			claimed++
		}
		s.Partitions = append(s.Partitions, row)
	}
	if claimed == o.wantPartitions() {
		s.CompletionTime = &metav1.Time{Time: now}
	}
	return s
}
