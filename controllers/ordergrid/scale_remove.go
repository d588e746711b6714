package ordergrid

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// removeShards deletes what belongs to retired shards: the pods, then what they needed, and last the records, which say
// that the shard is being removed.
func (r *run) removeShards(ctx context.Context) error {
	for _, shard := range r.scale.removing {
		r.lookWithin(leavingRetry)
		waits, err := r.remove(ctx, shard)
		if err != nil {
			return err
		}
		if r.scale.waitsFor[shard] = waits; waits == "" {
			r.Recorder.Eventf(r.grid, reference(r.grid.Namespace, api.PartitionName(r.grid.Name, shard, 0)), corev1.EventTypeNormal, eventShardRemoved, "Scale", "removed shard %d", shard)
		}
	}
	return nil
}

// remove says what it waits for, "" once nothing of the shard is left.
func (r *run) remove(ctx context.Context, shard int32) (waits string, err error) {
	if !r.allTold() {
		return "clients to be told", nil
	}
	if !r.mirrored(shard) {
		return "the operator's status to be written", nil
	}
	name := api.ShardName(r.grid.Name, shard)
	if there, err := r.delete(ctx, &appsv1.StatefulSet{}, name); err != nil || there {
		return "its StatefulSet to go", err
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(r.grid.Namespace), client.MatchingLabels(shardSelector(r.grid, shard))); err != nil {
		return "", fmt.Errorf("list Pods: %w", err)
	}
	if n := len(pods.Items); n > 0 {
		return fmt.Sprintf("%d pods to end", n), nil
	}
	for _, object := range []client.Object{
		&corev1.Service{}, &policyv1.PodDisruptionBudget{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{},
	} {
		if _, err := r.delete(ctx, object, name); err != nil {
			return "", err
		}
	}
	for i := range r.scale.retired {
		if p := &r.scale.retired[i]; p.Spec.Shard == shard {
			if _, err := r.delete(ctx, &api.GridPartition{}, p.Name); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// allTold says whether every record that stays has the present layout: clients learn from it that the shard is gone.
func (r *run) allTold() bool {
	for _, f := range r.findings {
		if l := f.record.Spec.Layout; l == nil || l.Revision != r.scale.layout.Revision {
			return false
		}
	}
	return true
}

// mirrored says whether status says of every record of the shard that it is retired. Status is the memory of records that
// are gone: those would be missed otherwise.
func (r *run) mirrored(shard int32) bool {
	said := map[string]bool{}
	for _, s := range r.grid.Status.Partitions {
		said[s.Name] = s.Admission == api.AdmissionRetired
	}
	for i := range r.scale.retired {
		if p := &r.scale.retired[i]; p.Spec.Shard == shard && !said[p.Name] {
			return false
		}
	}
	return true
}

// delete deletes an object that the grid controls, and says whether it is still there.
func (r *run) delete(ctx context.Context, object client.Object, name string) (there bool, err error) {
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if !owned(r.grid, object) {
		return false, nil // somebody else's; it only has the name
	}
	if object.GetDeletionTimestamp() != nil {
		return true, nil
	}
	uid := object.GetUID()
	err = r.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete %s: %w", name, err)
	}
	if err == nil {
		gvk, _ := r.Client.GroupVersionKindFor(object) // known: it was read
		writesTotal.WithLabelValues(gvk.Kind, "deleted").Inc()
		wrote(ctx, "deleted", gvk.Kind, name)
	}
	return true, nil
}
