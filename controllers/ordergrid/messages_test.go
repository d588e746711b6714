package ordergrid

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestAdviceCanBeTaken checks the messages that name a bound, at its edges: the advised value is one that the API
// server accepts, and differs from the present one.
func TestAdviceCanBeTaken(t *testing.T) {
	for _, c := range []struct {
		drain   time.Duration
		seconds *int64
		least   int64
	}{{time.Millisecond, ptr.To[int64](0), 1}, {999 * time.Millisecond, nil, 1}, {time.Second, ptr.To[int64](1), 2}, {10 * time.Second, ptr.To[int64](10), 11}, {10500 * time.Millisecond, ptr.To[int64](10), 11}} {
		grid := pairGrid()
		grid.Spec.Timing.DrainTimeout = metav1.Duration{Duration: c.drain}
		result := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: c.seconds}}
		err := keepStopTime(grid, nil, result)
		if err == nil {
			t.Errorf("a drain of %s and %d s to stop are accepted", c.drain, ptr.Deref(c.seconds, 0))
			continue
		}
		if want := "set at least " + count(int(c.least), "", ""); !strings.Contains(err.Error(), strings.TrimSpace(want)+",") {
			t.Errorf("a drain of %s: %v, want %q", c.drain, err, want)
		}
		result.Spec.TerminationGracePeriodSeconds = &c.least
		if err := keepStopTime(grid, nil, result); err != nil {
			t.Errorf("a drain of %s: what is advised is refused: %v", c.drain, err)
		}
	}

	// The singular.
	for got, want := range map[string]string{
		(&plainCount{}).String():               "no client is connected without TLS",
		(&plainCount{connections: 1}).String(): "1 connection of a client without TLS",
		(&plainCount{connections: 2}).String(): "2 connections of clients without TLS",
		all(1, "pod has", "pods have"):         "the pod has",
		all(2, "pod has", "pods have"):         "all 2 pods have",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
