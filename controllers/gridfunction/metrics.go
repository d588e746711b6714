package gridfunction

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/deployed"
)

var kindMetrics = deployed.NewMetrics("GridFunction", "function", "function")

func init() { metrics.Registry.MustRegister(kindMetrics) }
