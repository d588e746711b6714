package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/runbook"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// Namespace is where the grid is.
const Namespace = namespace

// Grid is the name of the grid of the run.
const Grid = gridName

// Kube is the administrator's access to the API server.
func (r *Run) Kube() kube.Client { return r.kube }

// StartOperator starts the operator, again after StopOperator.
func (r *Run) StartOperator() error {
	r.o.Say("start the operator")
	p, err := r.spawn("operator", []string{"KUBECONFIG=" + r.kubeconfig()}, filepath.Join(r.o.Bin, "operator"),
		"--metrics-bind-address", operatorMetrics, "--metrics-insecure", "--health-probe-bind-address", "0", "--leader-election-namespace", operatorNamespace, "--drill-namespaces", namespace)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manager, r.others = p, append(r.others, p)
	return nil
}

// StopOperator asks the operator to end and waits until it has.
func (r *Run) StopOperator() {
	r.mu.Lock()
	p := r.manager
	r.mu.Unlock()
	p.stop()
}

// KillAll ends all nodes at once, as crashes do, and restarts them after a while: the orders are lost.
func (r *Run) KillAll(ctx context.Context, away time.Duration) error {
	var all [replicas]error
	var wg sync.WaitGroup
	for i := range replicas {
		wg.Go(func() { all[i] = r.Kill(ctx, i, away) })
	}
	wg.Wait()
	return errors.Join(all[:]...)
}

// records are those of the grid's partitions.
func (r *Run) records(ctx context.Context) (all []*api.GridPartition, err error) {
	for i := range int32(replicas) {
		p := &api.GridPartition{}
		if err := r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.PartitionName(gridName, i)}, p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// AcceptLoss accepts the loss of data, like a user.
func (r *Run) AcceptLoss(ctx context.Context) error {
	records, err := r.records(ctx)
	if err != nil {
		return err
	}
	return runbook.AcceptLoss(ctx, r.kube, records...)
}

// Reassert confirms, like a user after the restore of etcd, the configuration of the nodes.
func (r *Run) Reassert(ctx context.Context) error {
	records, err := r.records(ctx)
	if err != nil {
		return err
	}
	var nodes []string
	for i := range replicas {
		nodes = append(nodes, fmt.Sprintf("%s:%d", nodeIP(i), api.HTTPPort))
	}
	return runbook.Reassert(ctx, r.kube, nodes, records...)
}

// emptyShard is the shard of EmptyShard.
const emptyShard = 1

func emptyPod(i int) string { return api.PodName(gridName, emptyShard, int32(i)) }

// EmptyShard adds a second shard, whose pods are ready according to the API server but have no process: a partition
// begins to move there and gets no further.
func (r *Run) EmptyShard(ctx context.Context) error {
	if err := r.shards(ctx, emptyShard+1); err != nil {
		return err
	}
	set := &appsv1.StatefulSet{}
	if err := r.Until(ctx, "the operator has made the StatefulSet of the second shard", func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.ShardName(gridName, emptyShard)}, set) == nil
	}); err != nil {
		return err
	}
	for i := range replicas {
		if err := r.createPod(ctx, set, emptyPod(i), emptyIP(i)); err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: emptyPod(i)}, pod); err != nil {
			return err
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := r.kube.Status().Update(ctx, pod); err != nil {
			return err
		}
	}
	return r.Until(ctx, "a partition moves to the second shard", func() bool { return r.movesTo(ctx) })
}

// RemoveEmptyShard removes it again.
func (r *Run) RemoveEmptyShard(ctx context.Context) error {
	if err := r.shards(ctx, emptyShard); err != nil {
		return err
	}
	if err := r.Until(ctx, "every partition is to be on the first shard", func() bool { return !r.movesTo(ctx) }); err != nil {
		return err
	}
	var all []error
	for i := range replicas { // like the StatefulSet controller
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: emptyPod(i)}}
		all = append(all, r.kube.Delete(ctx, pod, kube.GracePeriodSeconds(0)))
	}
	return errors.Join(all...)
}

// shards changes spec.shards.
func (r *Run) shards(ctx context.Context, n int32) error {
	grid := &api.OrderGrid{}
	if err := r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: gridName}, grid); err != nil {
		return err
	}
	before := grid.DeepCopy()
	grid.Spec.Shards = n
	return r.kube.Patch(ctx, grid, kube.MergeFrom(before))
}

// movesTo reports whether a record names the second shard.
func (r *Run) movesTo(ctx context.Context) bool {
	records, err := r.records(ctx)
	return err == nil && slices.ContainsFunc(records, func(p *api.GridPartition) bool { return p.Spec.Shard == emptyShard })
}

// Backup is an earlier copy of the grid's records.
type Backup [replicas]envtest.Stored

// Outdate makes a backup of the records, then restarts a node, so that the backup is older than the configuration of
// the nodes.
func (r *Run) Outdate(ctx context.Context) (b Backup, err error) {
	before, err := r.records(ctx)
	if err != nil {
		return b, err
	}
	for i, p := range before {
		if b[i], err = envtest.SaveFrom(r.env.ControlPlane.Etcd.URL.String(), api.GroupVersion.WithResource("gridpartitions").GroupResource(), namespace, p.Name); err != nil {
			return b, err
		}
	}
	if err := r.Kill(ctx, replicas-1, 3*time.Second); err != nil {
		return b, err
	}
	return b, r.Until(ctx, "every node is primary of its partition again, in a later epoch", func() bool {
		now, err := r.records(ctx)
		for i, p := range now {
			if s := p.Status; s.Epoch <= before[i].Status.Epoch || len(s.InSync) != replicas || s.Primary == nil || s.Primary.PodName != podName(i) {
				return false
			}
		}
		return err == nil
	})
}

// Restore plays the restore of etcd from a backup.
func (b Backup) Restore() error {
	var all [replicas]error
	for i, s := range b {
		all[i] = s.PutBack()
	}
	return errors.Join(all[:]...)
}
