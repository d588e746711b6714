package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	first = 5 * time.Millisecond
	// longest is 1000 s by default: after a fix the operator would take that long to notice, and the alert
	// ReconcileErrors, which counts the attempts of ten minutes, would end while everything still fails.
	longest = time.Minute
)

// RetryLimiter doubles the pause with every failure of one object, from 5 ms up to a minute.
func RetryLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
