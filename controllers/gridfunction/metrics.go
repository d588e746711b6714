package gridfunction

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/workload"
)

var (
	kindMetrics  = workload.NewMetrics("GridFunction", "function", "function")
	fetchMetrics = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_function_fetches_total",
		Help: "Fetches of modules of GridFunctions, by source (oci, http) and result: fetched, failed (it is tried again), refused (it is not, before the function changes).",
	}, []string{"source", "result"})
)

func init() { metrics.Registry.MustRegister(kindMetrics, fetchMetrics) }
