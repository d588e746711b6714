package orderprobe

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/metricsdoc"
)

func TestMetricsAreOnThePage(t *testing.T) {
	writesTotal.WithLabelValues("a", "b")
	reg := prometheus.NewRegistry()
	reg.MustRegister(writesTotal)
	metricsdoc.Check(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_operator_probe_") })
}
