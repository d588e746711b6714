package ordergrid

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	conditionGauge.WithLabelValues("a", "b", "c")
	partitionGauge.WithLabelValues("a", "b", "c")
	shardGauge.WithLabelValues("a", "b", "c")
	oldestMove.WithLabelValues("a", "b")
	writesTotal.WithLabelValues("a", "b")
	certificateExpires.WithLabelValues("a", "b", "c")
	certificateRenews.WithLabelValues("a", "b")
	questionsTotal.WithLabelValues("a")
	memoryQuestionsTotal.WithLabelValues("a")
	reg := prometheus.NewRegistry()
	reg.MustRegister(conditionGauge, partitionGauge, shardGauge, oldestMove, certificateExpires, certificateRenews, writesTotal, questionsTotal, memoryQuestionsTotal)
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool {
		others := []string{"ordergrid_operator_probe_", "ordergrid_operator_drill_", "ordergrid_operator_link_", "ordergrid_operator_gateway_", "ordergrid_operator_function_", "ordergrid_operator_region_"}
		return strings.HasPrefix(name, "ordergrid_operator_") && !slices.ContainsFunc(others, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}
