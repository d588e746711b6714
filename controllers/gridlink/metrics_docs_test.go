package gridlink

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	o := &observation{link: aLink()}
	setStatus(o, metav1.Now())
	kindMetrics.Record(o.link, o.link.Status.Conditions)
	kindMetrics.CountWrite("a", 0)
	golden.AllMetrics(t, "../../docs/metrics.md", "ordergrid_operator_link_", kindMetrics)
}
