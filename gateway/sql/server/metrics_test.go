package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(&Server{conns: map[uint32]*conn{}})
	golden.Metrics(t, "../../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_gateway_sql_") })
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}
