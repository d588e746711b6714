package ordergrid

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestAdviceCanBeTaken goes through the messages that name a bound, with the values at its edges: what they tell a person to
// write is a value that the API server takes, and another one than there is.
func TestAdviceCanBeTaken(t *testing.T) {
	late := func(s scale) string {
		grid, now := pairGrid(), time.Now()
		grid.Spec.UpdateStrategy.ProgressDeadline = metav1.Duration{Duration: time.Minute}
		reason, _ := s.underWay()
		meta.SetStatusCondition(&grid.Status.Conditions, metav1.Condition{Type: api.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(now)})
		s.judgeLate(grid, now.Add(time.Hour))
		return s.late
	}
	for name, c := range map[string]struct{ got, ends string }{
		"no shard is open yet":            {late(scale{wanted: 2, shards: 2}), "See what it waits for"},
		"one of two shards is open":       {late(scale{wanted: 2, shards: 2, layout: api.GridLayout{Open: 1}}), ", or set spec.shards back to 1"},
		"one of 64 shards is open":        {late(scale{wanted: 64, shards: 64, layout: api.GridLayout{Open: 1}}), ", or set spec.shards back to 1"},
		"one of three shards drains":      {late(scale{wanted: 2, shards: 3, layout: api.GridLayout{Open: 2}}), ", or set spec.shards back to 3"},
		"one drains, one is given up":     {late(scale{wanted: 1, shards: 2, layout: api.GridLayout{Open: 1}, removing: []int32{2}}), ", or set spec.shards back to 2"},
		"one is given up":                 {late(scale{wanted: 1, shards: 1, layout: api.GridLayout{Open: 1}, removing: []int32{1}}), "See what it waits for"},
		"shards that should drain do not": {late(scale{wanted: 1, shards: 2, layout: api.GridLayout{Open: 2}, waiting: []string{"shard 0 has no primary"}}), ", or set spec.shards back to 2"},
	} {
		if !strings.HasSuffix(c.got, c.ends) {
			t.Errorf("%s: %q, want it to end with %q", name, c.got, c.ends)
		}
	}

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
			t.Errorf("a drain of %s and %d s to stop are taken", c.drain, ptr.Deref(c.seconds, 0))
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

	// One is one.
	for got, want := range map[string]string{
		(&plainCount{}).String():               "no client is connected without TLS",
		(&plainCount{connections: 1}).String(): "1 connection of a client without TLS",
		(&plainCount{connections: 2}).String(): "2 connections of clients without TLS",
		all(1, "pod has", "pods have"):         "the pod has",
		all(2, "pod has", "pods have"):         "all 2 pods have",
		shardNames(2, 3):                       "shard 2",
		shardNames(2, 4):                       "each of shards 2 to 3",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
