package ordergrid

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// restoring is a grid that begins with an archive, and its Job.
type restoring struct {
	*bench
	grid *api.OrderGrid
}

func newRestoring(t *testing.T) *restoring {
	r := &restoring{bench: newBench(t)}
	r.grid = r.create("rtd", api.OrderGridSpec{Partitions: 2, Replicas: 1, RestoreFrom: &api.RestoreSpec{Bucket: &api.ArchiveBucketSpec{Name: "orders", CredentialsSecretName: "store"}}})
	r.run(r.grid)
	return r
}

func (r *restoring) job() *batchv1.Job {
	r.t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "rtd-restore"}}
	r.get(j)
	return j
}

// report plays a pod of the Job that ends.
func (r *restoring) report(index, code int32, message string) {
	r.t.Helper()
	j := r.job()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: fmt.Sprintf("rtd-restore-%d-x%d", index, code), Labels: j.Spec.Template.Labels,
		Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}}, Spec: *j.Spec.Template.Spec.DeepCopy()}
	r.mustCreate(pod)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: sinkContainer, Image: "x", ImageID: "x", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}}
	if err := r.client.Status().Update(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
}

func (r *restoring) records() (list []api.GridPartition) {
	r.t.Helper()
	var all api.GridPartitionList
	if err := r.client.List(r.t.Context(), &all, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	return all.Items
}

// TestGridIsRestored: no record is made before the recovery points of all partitions are known, since it would begin
// empty. Then status tells how far pods have loaded, and why one does not, until all are claimed.
func TestGridIsRestored(t *testing.T) {
	r := newRestoring(t)
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionFalse, reasonReadingArchive, "Job rtd-restore replays the archive: 0 of 2 partitions are read")
	r.report(0, 0, `{"partition":"p0","seq":1000,"hash":"00000000000000ff","time":"2026-01-02T03:00:00Z","epoch":6,"lineage":2}`)
	r.run(r.grid)
	if n := len(r.records()); n != 0 {
		t.Fatalf("%d records before all points are known", n)
	}
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionFalse, reasonReadingArchive, "1 of 2 partitions are read")
	r.report(1, 0, `{"partition":"p1","seq":0}`)
	r.run(r.grid)
	records := r.records()
	if len(records) != 2 || records[0].Spec.Restore == nil || *records[0].Spec.Restore != (api.PartitionRestore{Seq: 1000, Hash: "00000000000000ff", Epoch: 6, Lineage: 2}) || records[1].Spec.Restore != nil {
		t.Fatalf("the records are %+v", records)
	}
	r.startPod(r.grid, 0, 0)
	answer := func(seq uint64, problem string) {
		r.nodes.mu.Lock()
		r.nodes.answers[podIP(0, 0)+":9400"] = &nodestatus.Node{Grid: "rtd", Pod: "rtd-s0-0", BootID: "0123456789abcdef", Partitions: []nodestatus.Partition{
			{Record: "rtd-p0", Partition: "p0", Role: "claiming", LastSeq: seq, Restore: &nodestatus.Restore{ThroughSeq: 1000, Error: problem}}}}
		r.nodes.mu.Unlock()
		r.run(r.grid)
	}
	r.claimAt(1, 1, 1)
	answer(400, "")
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionFalse, reasonLoading, "1 of 2 partitions are loaded from the archive: rtd-p0 has entry 400 of 1000")
	if s := r.grid.Status.Restore; s == nil || s.CompletionTime != nil || len(s.Partitions) != 2 || s.Partitions[0].LoadedPercent != 40 || s.Partitions[0].Seq != 1000 || s.Partitions[0].ReceivedTime == nil || s.Partitions[1].LoadedPercent != 100 {
		t.Errorf("status.restore is %+v", s)
	}
	answer(500, "the archive cannot be restored: entry 501: it follows entry 499")
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionFalse, reasonLoadFailed, "rtd-p0 on rtd-s0-0: the archive cannot be restored: entry 501")
	r.claimAt(0, 7, 3)
	r.run(r.grid)
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionTrue, reasonRestored, "spec.restoreFrom may be removed")
	if s := r.grid.Status.Restore; s.CompletionTime == nil || s.Partitions[0].LoadedPercent != 100 || s.Partitions[0].ReceivedTime == nil {
		t.Errorf("status.restore is %+v", s)
	}
	r.grid.Spec.RestoreFrom = nil
	r.update(r.grid)
	r.run(r.grid)
	if records := r.records(); records[0].Spec.Restore == nil || r.grid.Status.Restore == nil {
		t.Errorf("without restoreFrom the record has %+v, status %+v", records[0].Spec.Restore, r.grid.Status.Restore)
	}
}

// claimAt has the only pod claim a partition.
func (r *restoring) claimAt(partition int, epoch, lineage int64) {
	r.t.Helper()
	p := r.records()[partition]
	m := processOf(r.grid, 0, 0)
	p.Status = api.GridPartitionStatus{Epoch: epoch, Lineage: lineage, ChangeID: "c", Primary: &m, InSync: []api.Member{m}}
	if err := r.client.Status().Update(r.t.Context(), &p); err != nil {
		r.t.Fatal(err)
	}
}

// TestRestoreIsRefused: an archive that cannot be restored begins nothing, and the condition quotes the reason with the
// entry. The Job is made again when it is deleted.
func TestRestoreIsRefused(t *testing.T) {
	r := newRestoring(t)
	if l := r.job().Labels; l[objects.LabelComponent] != objects.RestoreJob {
		t.Errorf("the labels of the Job are %v", l)
	}
	r.report(0, restoreRefused, "grid-sink: archive s3://orders: p0 cannot be restored: rtd/p0/segments/1.ogs, block 3, entries 501..700: checksum is 1; entries up to 500 are intact; restore the object from a version or a copy")
	j := r.job()
	now := metav1.Now()
	j.Status.StartTime = &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "PodFailurePolicy", Message: "Container grid-sink failed with exit code 3", LastTransitionTime: now})
	}
	if err := r.client.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r.run(r.grid)
	r.wantCondition(r.grid, api.ConditionRestored, metav1.ConditionFalse, reasonRestoreFailed, "no partition was begun", "entries 501..700", "restore the object from a version or a copy", "then delete the Job: the operator makes it again")
	if n := len(r.records()); n != 0 {
		t.Errorf("%d records", n)
	}
	if !strings.Contains(strings.Join(j.Spec.Template.Spec.Containers[0].Args, " "), "--owner "+string(r.grid.UID)) {
		t.Errorf("the arguments of the Job are %v", j.Spec.Template.Spec.Containers[0].Args)
	}
}
