package gridregion

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/controllers/deployed"
)

var kindMetrics = deployed.NewMetrics("GridRegion", "region", "region")

func init() { metrics.Registry.MustRegister(kindMetrics) }
