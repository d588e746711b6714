package gridfunction

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	kindMetrics.Record(&api.GridFunction{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "f"}}, []metav1.Condition{inUse(nil)})
	kindMetrics.CountWrite("a", 0)
	fetchMetrics.WithLabelValues("oci", "fetched").Add(0)
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(kindMetrics, fetchMetrics)
	golden.AllMetrics(t, "../../docs/metrics.md", "ordergrid_operator_function_", all)
}
