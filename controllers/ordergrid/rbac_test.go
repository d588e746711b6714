package ordergrid

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func request(grid *api.OrderGrid) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(grid)}
}

// TestPodsTouchTheirOwnPartitionsOnly acts as the pods of shard 0, with their service account, on a real API server.
// Any partition of the grid may move to them.
func TestPodsTouchTheirOwnPartitionsOnly(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Shards: 2})
	b.run(grid)
	ctx, pod := t.Context(), b.asPod(grid, 0)
	other := b.create("other", api.OrderGridSpec{})
	b.run(other)
	own, elsewhere, foreign := b.partition(grid, 0, 1), b.partition(grid, 1, 0), b.partition(other, 0, 0)
	claim := func(p *api.GridPartition) *api.GridPartition {
		m := processOf(grid, 0, 0)
		p = p.DeepCopy()
		p.Status = api.GridPartitionStatus{Epoch: 1, Lineage: 1, ChangeID: "c", Primary: &m, InSync: []api.Member{m}}
		return p
	}
	ofGrid := []client.ListOption{client.InNamespace(b.namespace), client.MatchingLabels{api.LabelGrid: grid.Name}}

	for what, try := range map[string]func() error{
		"read its own partition": func() error { return pod.Get(ctx, client.ObjectKeyFromObject(own), own.DeepCopy()) },
		"list the grid's partitions": func() error {
			list := &api.GridPartitionList{}
			if err := pod.List(ctx, list, ofGrid...); err != nil || len(list.Items) != 4 {
				return fmt.Errorf("%d partitions, want the 4 of both shards, error %v", len(list.Items), err)
			}
			return nil
		},
		"watch the grid's partitions": func() error {
			cfg := envtest.Config(t)
			cfg.Impersonate.UserName = "system:serviceaccount:" + b.namespace + ":rtd-s0"
			watching, err := client.NewWithWatch(cfg, client.Options{Scheme: envtest.Scheme()})
			if err != nil {
				return err
			}
			w, err := watching.Watch(ctx, &api.GridPartitionList{}, ofGrid...)
			if err == nil {
				w.Stop()
			}
			return err
		},
		"claim its own partition":            func() error { return pod.Status().Update(ctx, claim(own)) },
		"claim one that is on another shard": func() error { return pod.Status().Update(ctx, claim(elsewhere)) },
		"report an event": func() error {
			return pod.Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: b.namespace}, EventTime: metav1.NowMicro(),
				ReportingController: "grid-node", ReportingInstance: "rtd-s0-0", Action: "a", Reason: "r", Type: "Normal",
				Regarding: corev1.ObjectReference{Kind: "GridPartition", Namespace: b.namespace, Name: own.Name}})
		},
	} {
		if err := try(); err != nil {
			t.Errorf("the pod may not %s: %v", what, err)
		}
	}
	for what, try := range map[string]func() error{
		"read another grid's partition by name": func() error { return pod.Get(ctx, client.ObjectKeyFromObject(foreign), foreign.DeepCopy()) },
		"claim another grid's partition":        func() error { return pod.Status().Update(ctx, claim(foreign)) },
		"list the partitions of all namespaces": func() error { return pod.List(ctx, &api.GridPartitionList{}) },
		"delete the grid's partitions":          func() error { return pod.DeleteAllOf(ctx, &api.GridPartition{}, client.InNamespace(b.namespace)) },
		"change the spec of its own partition":  func() error { p := own.DeepCopy(); p.Spec.MinInSync = 2; return pod.Update(ctx, p) },
		"delete its own partition":              func() error { return pod.Delete(ctx, own.DeepCopy()) },
		"patch the status of its own partition": func() error {
			return pod.Status().Patch(ctx, own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"epoch":1}}`)))
		},
		"read the OrderGrid": func() error { return pod.Get(ctx, client.ObjectKeyFromObject(grid), grid.DeepCopy()) },
		"list Secrets":       func() error { return pod.List(ctx, &corev1.SecretList{}, client.InNamespace(b.namespace)) },
		"list Pods":          func() error { return pod.List(ctx, &corev1.PodList{}, client.InNamespace(b.namespace)) },
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("the pod may %s: %v", what, err)
		}
	}
}
