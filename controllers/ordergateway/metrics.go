package ordergateway

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
		Name: "ordergrid_operator_gateway_writes_total",
		Help: "Writes of objects of OrderGateways sent to the API server, by kind of object and outcome: created, updated, status.",
	}, []string{"kind", "outcome"})

	conditionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_operator_gateway_condition",
		Help: "1 while the condition of the OrderGateway is True, else 0.",
	}, []string{"namespace", "gateway", "condition"})
)

func init() { metrics.Registry.MustRegister(writesTotal, conditionGauge) }

var countWrite = apply.CountIn(writesTotal)

// record publishes the conditions of an OrderGateway.
func record(g *api.OrderGateway) {
	for _, c := range g.Status.Conditions {
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		conditionGauge.WithLabelValues(g.Namespace, g.Name, c.Type).Set(value)
	}
}

// forget drops the series of an OrderGateway that is gone.
func forget(g types.NamespacedName) {
	conditionGauge.DeletePartialMatch(prometheus.Labels{"namespace": g.Namespace, "gateway": g.Name})
}
