package ordergateway

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/deployed"
)

var kindMetrics = deployed.NewMetrics("OrderGateway", "gateway", "gateway")

func init() { metrics.Registry.MustRegister(kindMetrics) }
