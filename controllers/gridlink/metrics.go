package gridlink

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_link_writes_total",
		Help: "Writes of objects of GridLinks sent to the API server, by kind of object and outcome: created, updated, status.",
	}, []string{"kind", "outcome"})

	conditionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_link_condition",
		Help: "1 while the condition of the GridLink is True, else 0.",
	}, []string{"namespace", "gridlink", "condition"})
)

func init() { metrics.Registry.MustRegister(writesTotal, conditionGauge) }

var countWrite = apply.CountIn(writesTotal)

// record publishes the conditions of a GridLink.
func record(link *api.GridLink) {
	for _, c := range link.Status.Conditions {
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		conditionGauge.WithLabelValues(link.Namespace, link.Name, c.Type).Set(value)
	}
}

// forget drops the series of a GridLink that is gone.
func forget(link types.NamespacedName) {
	conditionGauge.DeletePartialMatch(prometheus.Labels{"namespace": link.Namespace, "gridlink": link.Name})
}
