//go:build faulty

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// faulty are the metrics of a build that can be told to lose orders.
func faulty() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: prefix + "faulty_dropped_total", Help: "Orders acknowledged and thrown away on purpose, by a build that is for tests only.",
	}, func() float64 { n, _ := replica.Dropped(); return float64(n) })}
}
