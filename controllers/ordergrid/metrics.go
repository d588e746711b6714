package ordergrid

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/apply"
)

var (
	conditionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_grid_condition",
		Help: "1 while the condition of the OrderGrid is True, else 0.",
	}, []string{"namespace", "grid", "condition"})

	partitionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_grid_partitions",
		Help: "Partitions of the OrderGrid by state: claimed, fully_in_sync, moving (to another shard), queued (to move after those), held (of the queued, those that wait for spec.rebalance.window).",
	}, []string{"namespace", "grid", "state"})

	shardGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_shard_partitions",
		Help: "Partitions that are to be on the shard of the OrderGrid, by their records.",
	}, []string{"namespace", "grid", "shard"})

	oldestMove = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_oldest_move_started_seconds",
		Help: "When the oldest move under way of a partition began, in seconds since 1970; absent while none is under way.",
	}, []string{"namespace", "grid"})

	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_writes_total",
		Help: "Writes sent to the API server, by kind of object and outcome: created, updated, status, evicted.",
	}, []string{"kind", "outcome"})

	certificateExpires = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_certificate_expires_seconds",
		Help: "When the certificate that grid nodes are given (certificate nodes), or the authority that the operator keeps for the grid (authority), ends, in seconds since 1970; absent without spec.security.tls.",
	}, []string{"namespace", "grid", "certificate"})

	certificateRenews = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_certificate_renews_seconds",
		Help: "When the certificate that grid nodes are given is to be replaced, in seconds since 1970; absent without spec.security.tls.",
	}, []string{"namespace", "grid"})

	questionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_node_questions_total",
		Help: "Times a grid node was asked for its status, by outcome: answered, failed. Stands still while every grid is well.",
	}, []string{"outcome"})
	memoryQuestionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_memory_questions_total",
		Help: "Times a grid node was asked how much memory it has left for orders, by outcome: answered, failed. Once a minute, more often while it fills.",
	}, []string{"outcome"})
)

func init() {
	metrics.Registry.MustRegister(conditionGauge, partitionGauge, shardGauge, oldestMove, certificateExpires, certificateRenews, writesTotal, questionsTotal, memoryQuestionsTotal)
}

var countWrite = apply.CountIn(writesTotal)

// record publishes the observation. A condition that the grid no longer has, such as FabricReady without spec.fabric,
// has no series either: an alert on its last value would never end.
func record(o *observation, conditions []metav1.Condition) {
	for _, c := range gridConditions {
		if meta.FindStatusCondition(conditions, c.kind) == nil {
			conditionGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, c.kind)
		}
	}
	for _, c := range conditions {
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		conditionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, c.Type).Set(value)
	}
	recordTLS(o)
	claimed, full, moving := 0, 0, 0
	for _, p := range o.partitions {
		if moves(o.grid, &p) {
			moving++
		}
		if p.Status.Primary != nil {
			claimed++
		}
		if int32(len(p.Status.InSync)) >= p.Spec.Replicas {
			full++
		}
	}
	partitionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, "claimed").Set(float64(claimed))
	partitionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, "fully_in_sync").Set(float64(full))
	partitionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, "moving").Set(float64(moving))
	partitionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, "queued").Set(float64(o.scale.queued))
	held := 0
	if o.scale.holds() && o.scale.windowProblem == "" {
		held = o.scale.queued
	}
	partitionGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, "held").Set(float64(held))
	recordMoves(o)
}

// recordMoves publishes where partitions should be, and since when they move.
func recordMoves(o *observation) {
	shard := int32(0)
	for ; shard < o.grid.Spec.Shards; shard++ {
		shardGauge.WithLabelValues(o.grid.Namespace, o.grid.Name, strconv.Itoa(int(shard))).Set(float64(len(o.of(shard))))
	}
	for shardGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, strconv.Itoa(int(shard))) { // those removed
		shard++
	}
	var oldest *metav1.Time
	for _, m := range o.grid.Status.Moves {
		if oldest == nil || m.StartTime.Before(oldest) {
			oldest = m.StartTime
		}
	}
	if oldest == nil {
		oldestMove.DeleteLabelValues(o.grid.Namespace, o.grid.Name)
	} else {
		oldestMove.WithLabelValues(o.grid.Namespace, o.grid.Name).Set(float64(oldest.Unix()))
	}
}

func recordTLS(o *observation) {
	if o.tls == nil {
		return
	}
	s := &o.tls.status
	if s.Expires != nil {
		certificateExpires.WithLabelValues(o.grid.Namespace, o.grid.Name, "nodes").Set(float64(s.Expires.Unix()))
	}
	if s.AuthorityExpires != nil {
		certificateExpires.WithLabelValues(o.grid.Namespace, o.grid.Name, "authority").Set(float64(s.AuthorityExpires.Unix()))
	}
	if s.Renews != nil {
		certificateRenews.WithLabelValues(o.grid.Namespace, o.grid.Name).Set(float64(s.Renews.Unix()))
	}
}

// forget drops the series of a grid that is gone.
func forget(grid types.NamespacedName) {
	labels := prometheus.Labels{"namespace": grid.Namespace, "grid": grid.Name}
	conditionGauge.DeletePartialMatch(labels)
	partitionGauge.DeletePartialMatch(labels)
	shardGauge.DeletePartialMatch(labels)
	oldestMove.DeletePartialMatch(labels)
	certificateExpires.DeletePartialMatch(labels)
	certificateRenews.DeletePartialMatch(labels)
}
