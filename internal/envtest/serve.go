package envtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// patience is how long Eventually waits: a busy machine is slow.
const patience = 2 * time.Minute

// Eventually retries until there is no error, and fails the test if there still is one after two minutes.
func Eventually(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %s: %v", what, patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Serve plays kubelets and grid nodes for a grid with its StatefulSets and GridPartitions: every
// pod runs and is ready, claims the partitions that prefer it, and joins the others of its shard.
// The pods have no address. They are created here unless a StatefulSet controller has created them.
func Serve(t testing.TB, cl client.Client, grid *api.OrderGrid) {
	t.Helper()
	for shard := range grid.Spec.Shards {
		for ordinal := range grid.Spec.Replicas {
			startPod(t, cl, grid, shard, ordinal)
		}
	}
	for n := range grid.Spec.Partitions {
		claim(t, cl, grid, n)
	}
}

// startPod creates a pod from the StatefulSet if missing, and makes it ready.
func startPod(t testing.TB, cl client.Client, grid *api.OrderGrid, shard, ordinal int32) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: grid.Namespace, Name: api.ShardName(grid.Name, shard)}, set); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = api.PodName(grid.Name, shard, ordinal), grid.Namespace
	if err := cl.Create(t.Context(), pod); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	SetReady(t, cl, pod, corev1.ConditionTrue)
}

// SetReady plays the kubelet when a pod's probe succeeds, or fails.
func SetReady(t testing.TB, cl client.Client, pod *corev1.Pod, status corev1.ConditionStatus) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`, status, time.Now().UTC().Format(time.RFC3339))
	if err := cl.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// claim brings a partition to a healthy state: one epoch per copy, on the pods in its record. Like
// grid nodes it reads the record again after a conflict: the operator writes its spec.
func claim(t testing.TB, cl client.Client, grid *api.OrderGrid, n int32) {
	t.Helper()
	record := &api.GridPartition{}
	key := client.ObjectKey{Namespace: grid.Namespace, Name: api.PartitionName(grid.Name, n)}
	if err := cl.Get(t.Context(), key, record); err != nil {
		t.Fatal(err)
	}
	pods := slices.DeleteFunc(slices.Clone(record.Spec.Pods), func(pod string) bool { return pod == record.Spec.PreferredPod })
	var inSync []api.Member
	for i, name := range append([]string{record.Spec.PreferredPod}, pods...) {
		const boot = "0123456789abcdef"
		inSync = append(inSync, api.Member{ID: name + "/" + boot, PodName: name, BootID: boot, Address: "10.0.0.1:7400"})
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := cl.Get(t.Context(), key, record); err != nil {
				return err
			}
			record.Status = api.GridPartitionStatus{
				Epoch: int64(i + 1), Lineage: 1, ChangeID: fmt.Sprint("change-", i), Primary: &inSync[0], InSync: inSync,
			}
			return cl.Status().Update(t.Context(), record)
		})
		if err != nil {
			t.Fatalf("%s, epoch %d: %v", record.Name, i+1, err)
		}
	}
}
