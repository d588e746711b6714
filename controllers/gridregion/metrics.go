package gridregion

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/workload"
)

var kindMetrics = workload.NewMetrics("GridRegion", "region", "region")

func init() { metrics.Registry.MustRegister(kindMetrics) }
