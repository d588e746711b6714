package apply

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// One object that fails for ever keeps the alert ReconcileErrors firing, which needs five failures in each ten minutes.
func TestFailingForEverIsSeenForEver(t *testing.T) {
	const window, least = 10 * time.Minute, 5
	limiter, object := RetryLimiter(), reconcile.Request{}
	var at time.Duration
	var failures []time.Duration
	for at < 6*time.Hour {
		failures = append(failures, at)
		at += limiter.When(object)
	}
	for i := least; i < len(failures); i++ {
		if took := failures[i] - failures[i-least]; took > window {
			t.Fatalf("five failures after %v took %v, want at most %v", failures[i-least], took, window)
		}
	}
	if n := len(failures); n < 6*60 {
		t.Errorf("%d attempts in six hours, want one a minute or more", n)
	}
}
