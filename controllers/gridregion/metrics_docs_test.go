package gridregion

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	kindMetrics.Record(&api.GridRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "f"}}, []metav1.Condition{inUse(nil)})
	kindMetrics.CountWrite("a", 0)
	golden.AllMetrics(t, "../../docs/metrics.md", "ordergrid_operator_region_", kindMetrics)
}
