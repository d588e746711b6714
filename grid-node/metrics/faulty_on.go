//go:build faulty

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// faulty are the metrics of a build that can be configured to lose orders.
func faulty() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: prefix + "faulty_dropped_total", Help: "Orders acknowledged and dropped on purpose, by a build for tests only.",
	}, func() float64 { n, _ := replica.Dropped(); return float64(n) })}
}
