package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestLearnerRateOfMoves: a partition that moves with all its copies has its share of the bandwidth, any other is
// unlimited.
func TestLearnerRateOfMoves(t *testing.T) {
	bounds := func(o *observation, concurrent int32, bandwidth string) {
		o.grid.Spec.Rebalance = &api.RebalanceSpec{MaxConcurrent: concurrent, Bandwidth: ptr.To(resource.MustParse(bandwidth))}
	}
	for name, c := range map[string]struct {
		change func(*observation)
		home   int32
		want   int64
	}{
		"it begins to move":     {func(o *observation) { bounds(o, 4, "64Mi") }, 1, 16 << 20},
		"it moves":              {func(o *observation) { bounds(o, 1, "64Mi"); goHome(&o.partitions[0], 1) }, 1, 64 << 20},
		"the least there is":    {func(o *observation) { bounds(o, 16, "1Mi") }, 1, 64 << 10},
		"it stays":              {func(o *observation) { bounds(o, 4, "64Mi") }, 0, 0},
		"without a bandwidth":   {func(o *observation) { o.grid.Spec.Rebalance = &api.RebalanceSpec{MaxConcurrent: 4} }, 1, 0},
		"of an earlier release": {func(*observation) {}, 1, 0},
		"a copy is missing": {func(o *observation) {
			bounds(o, 4, "64Mi")
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
		}, 1, 0},
		"a pod with a copy is not ready": {func(o *observation) {
			bounds(o, 4, "64Mi")
			o.pods[1].Status.Conditions[0].Status = corev1.ConditionFalse
		}, 1, 0},
		"one of the old shard is missing, and one of the new is in sync": {func(o *observation) {
			bounds(o, 4, "64Mi")
			goHome(&o.partitions[0], 1)
			join(&o.partitions[0], "rtd-s1-0")
			o.pods[1].Status.Conditions[0].Status = corev1.ConditionFalse
		}, 1, 16 << 20},
	} {
		o := scaledOut()
		c.change(o)
		if got := o.learnerRate(&o.partitions[0], c.home); got != c.want {
			t.Errorf("%s: %d bytes a second, want %d", name, got, c.want)
		}
	}
}

// TestBoundsOfAPlan: how many moves begin, and that the smallest do.
func TestBoundsOfAPlan(t *testing.T) {
	for _, c := range []struct {
		concurrent int32
		bytes      map[int32]int64
		want       string
	}{
		{0, nil, "[0 1] 0"}, // of an earlier release
		{1, nil, "[0] 1"},
		{16, nil, "[0 1] 0"},
		{1, map[int32]int64{0: 900, 1: 700, 2: 800, 3: 1000}, "[1] 1"},
		{2, map[int32]int64{0: 900, 1: 700, 2: 800, 3: 1000}, "[1 2] 0"},
		{2, map[int32]int64{0: 900, 1: 700}, "[2 3] 0"}, // an unknown size counts as empty
	} {
		o := scaledOut()
		if o.bytes = c.bytes; c.concurrent > 0 {
			o.grid.Spec.Rebalance = &api.RebalanceSpec{MaxConcurrent: c.concurrent}
		}
		plan := nextMoves(o, rollNow)
		begin := []int{}
		for _, m := range plan.Begin {
			begin = append(begin, m.Partition)
		}
		if got := fmt.Sprint(begin, " ", len(plan.Queued)); got != c.want {
			t.Errorf("%d at a time, bytes %v: begin and queued %s, want %s", c.concurrent, c.bytes, got, c.want)
		}
	}
}

// TestAnnotationAsksOnce: which values let moves begin outside the window.
func TestAnnotationAsksOnce(t *testing.T) {
	const at, before = "2026-11-23T18:48:00Z", "2026-11-22T18:48:00Z"
	for value, c := range map[string]struct{ handled, want, refused string }{
		"":                                 {"", "", ""},
		at:                                 {before, at, ""},
		before:                             {before, "", ""},
		"now":                              {"", "", `has "now", which is not a time such as 2026-11-23T22:00:00Z`},
		at[:19] + strings.Repeat(".0", 40): {"", "", "which is not a time"},
		at[:19] + "." + strings.Repeat("0", 60) + "Z": {"", "", "which is not a time"}, // status would not take it
	} {
		grid := pairGrid()
		grid.Annotations = map[string]string{api.AnnotationRebalanceNow: value}
		grid.Status.LastHandledRebalance = c.handled
		got, refused := rebalanceAsked(grid)
		if got != c.want || !strings.Contains(refused, c.refused) || (refused == "") != (c.refused == "") {
			t.Errorf("%q: %q %q, want %q %q", value, got, refused, c.want, c.refused)
		}
	}
}

// TestMovesKeepTheirBeginning: from status, else from this operator's memory.
func TestMovesKeepTheirBeginning(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(rollNow.Add(d))) }
	m := &scaleMemory{begun: map[int32]begunMove{
		1: {to: 1, at: rollNow.Add(-time.Minute), bytes: 700},
		2: {to: 2, at: rollNow.Add(-time.Minute), bytes: 800}, // it went to another shard since
		3: {to: 1, at: rollNow.Add(-time.Minute), bytes: 900},
	}}
	before := []api.PartitionMove{{Partition: 3, To: 1, StartTime: at(-time.Hour), Bytes: 5}, {Partition: 4, To: 0, StartTime: at(-time.Hour), Bytes: 6}}
	moves := m.timed([]api.PartitionMove{{Partition: 0, To: 1}, {Partition: 1, To: 1}, {Partition: 2, To: 1}, {Partition: 3, To: 1}, {Partition: 4, To: 1}}, before, rollNow)
	for i, want := range []api.PartitionMove{{StartTime: at(0)}, {StartTime: at(-time.Minute), Bytes: 700}, {StartTime: at(0)}, {StartTime: at(-time.Hour), Bytes: 5}, {StartTime: at(0)}} {
		if !moves[i].StartTime.Equal(want.StartTime) || moves[i].Bytes != want.Bytes {
			t.Errorf("p%d began at %v with %d bytes, want %v and %d", i, moves[i].StartTime, moves[i].Bytes, want.StartTime, want.Bytes)
		}
	}
}
