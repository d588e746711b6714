package ordergateway

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/workload"
)

var kindMetrics = workload.NewMetrics("OrderGateway", "gateway", "gateway")

func init() { metrics.Registry.MustRegister(kindMetrics) }
