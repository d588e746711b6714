package workload

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ordergrid/ordergrid/controllers/apply"
)

// Metrics of the objects of one kind. It is a prometheus.Collector.
type Metrics struct {
	kind, label string
	writes      *prometheus.CounterVec
	conditions  *prometheus.GaugeVec
}

// NewMetrics returns metrics named ordergrid_operator_NOUN_…, with the object's name in a label.
func NewMetrics(kind, noun, label string) *Metrics {
	return &Metrics{
		kind: kind, label: label,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ordergrid_operator_" + noun + "_writes_total",
			Help: "Writes of objects of " + kind + "s sent to the API server, by kind of object and outcome: created, updated, status.",
		}, []string{"kind", "outcome"}),
		conditions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ordergrid_operator_" + noun + "_condition",
			Help: "1 while the condition of the " + kind + " is True, else 0.",
		}, []string{"namespace", label, "condition"}),
	}
}

// Describe and Collect make it a Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.writes.Describe(to)
	m.conditions.Describe(to)
}

// Collect sends the series.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.writes.Collect(to)
	m.conditions.Collect(to)
}

// CountWrite counts the write of an object.
func (m *Metrics) CountWrite(kind string, outcome apply.Outcome) {
	m.writes.WithLabelValues(kind, outcome.String()).Inc()
}

// Record publishes the conditions of an object.
func (m *Metrics) Record(of metav1.Object, conditions []metav1.Condition) {
	for _, c := range conditions {
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		m.conditions.WithLabelValues(of.GetNamespace(), of.GetName(), c.Type).Set(value)
	}
}

// Forget drops the series of an object that is gone.
func (m *Metrics) Forget(of types.NamespacedName) {
	m.conditions.DeletePartialMatch(prometheus.Labels{"namespace": of.Namespace, m.label: of.Name})
}

func (m *Metrics) countStatus() { m.writes.WithLabelValues(m.kind, "status").Inc() }
