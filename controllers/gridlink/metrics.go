package gridlink

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/workload"
)

var kindMetrics = workload.NewMetrics("GridLink", "link", "gridlink")

func init() { metrics.Registry.MustRegister(kindMetrics) }
