package manager

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/internal/golden"
)

// Metrics of controller-runtime named by the page and the alert rules must exist.
func TestLibraryMetricsOnThePageExist(t *testing.T) {
	described := map[string]bool{}
	ch := make(chan *prometheus.Desc, 10_000)
	metrics.Registry.(prometheus.Collector).Describe(ch)
	close(ch)
	for d := range ch {
		_, name, _ := strings.Cut(d.String(), `"`)
		name, _, _ = strings.Cut(name, `"`)
		described[name] = true
	}
	for _, name := range []string{"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_time_seconds", "workqueue_depth"} {
		if !described[name] {
			t.Errorf("the operator does not export %s", name)
		}
		if !golden.HasMetric(t, "../../docs/metrics.md", name) {
			t.Errorf("docs/metrics.md has no %s", name)
		}
	}
}
