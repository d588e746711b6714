package ordergrid

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestSeriesOfConditionsEnd: FabricReady has no series once spec.fabric is removed, whatever its last value.
func TestSeriesOfConditionsEnd(t *testing.T) {
	o := &observation{grid: pairGrid()}
	fabric := metav1.Condition{Type: api.ConditionFabricReady, Status: metav1.ConditionFalse}
	available := metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionTrue}
	record(o, []metav1.Condition{available, fabric})
	record(o, []metav1.Condition{available})
	if conditionGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, api.ConditionFabricReady) {
		t.Error("FabricReady has a series, and the grid has no such condition: an alert on it would not end")
	}
	if !conditionGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, api.ConditionAvailable) {
		t.Error("Available has no series")
	}
}

// TestSeriesOfMoves: removed shards and finished moves have none.
func TestSeriesOfMoves(t *testing.T) {
	o := scaledOut()
	o.grid.Name, o.grid.Namespace = "series-of-moves", "trading"
	start := metav1.NewTime(rollNow)
	later := metav1.NewTime(rollNow.Add(time.Minute))
	o.grid.Status.Moves = []api.PartitionMove{{StartTime: &later}, {StartTime: &start}}
	o.scale.queued, o.scale.until = 3, rollNow
	record(o, nil)
	read := func(vec *prometheus.GaugeVec, labels ...string) float64 {
		return testutil.ToFloat64(vec.WithLabelValues(append([]string{o.grid.Namespace, o.grid.Name}, labels...)...))
	}
	if got := read(oldestMove); got != float64(rollNow.Unix()) {
		t.Errorf("the oldest move began at %v, want %d", got, rollNow.Unix())
	}
	if a, b, held := read(shardGauge, "0"), read(shardGauge, "1"), read(partitionGauge, "held"); a != 4 || b != 0 || held != 3 {
		t.Errorf("shards have %v and %v partitions, %v are held", a, b, held)
	}
	o.grid.Status.Moves, o.grid.Spec.Shards, o.scale.until = nil, 1, time.Time{}
	record(o, nil)
	if oldestMove.DeleteLabelValues(o.grid.Namespace, o.grid.Name) || shardGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, "1") || read(partitionGauge, "held") != 0 {
		t.Error("a series is left of a shard, or of a move")
	}
	forget(client.ObjectKeyFromObject(o.grid))
	if shardGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, "0") {
		t.Error("a series is left of the grid")
	}
}
