package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// removeShards deletes the objects of shards that no partition needs any more: the pods, then what they needed, and
// last the Service, by which a restarted operator detects that something is left.
func (r *run) removeShards(ctx context.Context) error {
	left, err := r.leftBehind(ctx)
	if err != nil {
		return err
	}
	for _, shard := range left {
		r.lookWithin(leavingRetry)
		waits, err := r.remove(ctx, shard)
		if err != nil {
			return err
		}
		if waits == "" {
			r.Recorder.Eventf(r.grid, setReference(r.grid, shard), corev1.EventTypeNormal, eventShardRemoved, "Scale", "removed shard %d", shard)
			continue
		}
		r.scale.removing, r.scale.waitsFor[shard] = append(r.scale.removing, shard), waits
	}
	return nil
}

// leftBehind lists the shards above those of this pass that still have objects, the highest first.
func (r *run) leftBehind(ctx context.Context) (shards []int32, err error) {
	services, err := r.services(ctx)
	if err != nil {
		return nil, err
	}
	found := func(o metav1.Object) {
		n, err := strconv.ParseUint(o.GetLabels()[api.LabelShard], 10, 8)
		if shard := int32(n); err == nil && shard >= r.scale.shards && !slices.Contains(shards, shard) {
			shards = append(shards, shard)
		}
	}
	for i := range services {
		if s := &services[i]; owned(r.grid, s) && s.Labels[api.LabelExternalPod] == "" {
			found(s)
		}
	}
	for i := range r.statefulSets {
		found(&r.statefulSets[i])
	}
	slices.Sort(shards)
	slices.Reverse(shards)
	return shards, nil
}

// remove returns what it waits for, "" once nothing of the shard is left.
func (r *run) remove(ctx context.Context, shard int32) (waits string, err error) {
	live, err := r.live(ctx)
	if err != nil {
		return "", err
	}
	if waits := r.needs(ctx, live, shard); waits != "" {
		return waits, nil
	}
	name := api.ShardName(r.grid.Name, shard)
	if there, err := r.delete(ctx, &appsv1.StatefulSet{}, name); err != nil || there {
		return "its StatefulSet to be deleted", err
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(r.grid.Namespace), client.MatchingLabels(shardSelector(r.grid, shard))); err != nil {
		return "", fmt.Errorf("list Pods: %w", err)
	}
	if n := len(pods.Items); n > 0 {
		return fmt.Sprintf("%s to end", count(n, "pod", "pods")), nil
	}
	for _, object := range []client.Object{
		&policyv1.PodDisruptionBudget{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}, &corev1.Service{},
	} {
		if _, err := r.delete(ctx, object, name); err != nil {
			return "", err
		}
	}
	return "", nil
}

// needs returns why the pods of a shard have to stay, "" if they may be deleted: every record is trustworthy, and none
// names the shard or one of its pods. The pods themselves are queried last, since a record may have just gone back.
func (r *run) needs(ctx context.Context, live *observation, shard int32) string {
	if have := len(live.partitions); have < live.wantPartitions() {
		return fmt.Sprintf("%d of %d records are there", have, live.wantPartitions())
	}
	for i := range live.partitions {
		p := &live.partitions[i]
		named := slices.ContainsFunc(p.Spec.Pods, func(pod string) bool { of, ok := shardOf(r.grid, pod); return ok && of == shard })
		switch problem := live.actionRequired(p); {
		case problem != "":
			return p.Name + ": " + problem
		case p.Spec.Shard == shard || named:
			return fmt.Sprintf("p%d is to be on it", p.Spec.Partition)
		case holds(r.grid, shard, p):
			return fmt.Sprintf("p%d has a copy on it", p.Spec.Partition)
		}
	}
	answers := map[string]*answer{}
	for i := range live.pods {
		if pod := &live.pods[i]; pod.Labels[api.LabelShard] == fmt.Sprint(shard) {
			answers[pod.Name] = &answer{pod: pod}
		}
	}
	r.ask(ctx, r.grid, answers)
	for i := range live.partitions {
		p := &live.partitions[i]
		for _, a := range answers {
			if a.node == nil {
				continue
			}
			if n := a.node.Find(p.Name); n != nil && holderOf(n).ahead(configurationOf(p)) {
				return fmt.Sprintf("%s has a later configuration of p%d than its record", a.pod.Name, p.Spec.Partition)
			}
		}
	}
	return ""
}

// delete deletes an object that the grid controls, and reports whether it still exists.
func (r *run) delete(ctx context.Context, object client.Object, name string) (there bool, err error) {
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if !owned(r.grid, object) {
		return false, nil // foreign; it only has the name
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
