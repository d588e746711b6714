package orderprobe

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/apply"
)

var writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ordergrid_operator_probe_writes_total",
	Help: "Writes of objects of OrderProbes sent to the API server, by kind of object and outcome: created, updated.",
}, []string{"kind", "outcome"})

func init() { metrics.Registry.MustRegister(writesTotal) }

func countWrite(kind string, outcome apply.Outcome) {
	name := "updated"
	if outcome == apply.Created {
		name = "created"
	}
	writesTotal.WithLabelValues(kind, name).Inc()
}
