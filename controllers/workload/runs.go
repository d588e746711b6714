package workload

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OfPod maps a pod to the run in its label. Pods are owned by Jobs, so the label is used.
func OfPod(label string) handler.MapFunc {
	return func(_ context.Context, pod client.Object) []reconcile.Request {
		name := pod.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
	}
}

// OfGrid maps a grid to the runs on it that are not over: they may wait for it. list is an empty list of their kind.
func OfGrid[R client.Object](c client.Reader, list client.ObjectList, on func(run R) (grid string, over bool)) handler.MapFunc {
	return func(ctx context.Context, grid client.Object) (requests []reconcile.Request) {
		found := list.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, found, client.InNamespace(grid.GetNamespace())); err != nil {
			return nil // the cache is gone: the operator is stopping
		}
		_ = meta.EachListItem(found, func(o runtime.Object) error { // it returns only our errors
			run := o.(R)
			if name, over := on(run); name == grid.GetName() && !over {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run)})
			}
			return nil
		})
		return requests
	}
}

// Find reads an object; nil if there is none.
func Find[T client.Object](ctx context.Context, c client.Reader, namespace, name string, into T) (T, error) {
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		var none T
		return none, nil
	}
	return into, err
}
