package ordergateway

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMetricsAreOnThePage(t *testing.T) {
	o := &observation{gateway: aGateway()}
	setStatus(o, metav1.Now())
	kindMetrics.Record(o.gateway, o.gateway.Status.Conditions)
	kindMetrics.CountWrite("a", 0)
	golden.AllMetrics(t, "../../docs/metrics.md", "ordergrid_operator_gateway_", kindMetrics)
}
