package ordergateway

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ordergrid/ordergrid/internal/metricsdoc"
)

func TestMetricsAreOnThePage(t *testing.T) {
	o := &observation{gateway: aGateway()}
	setStatus(o, metav1.Now())
	record(o.gateway)
	writesTotal.WithLabelValues("a", "b")
	reg := prometheus.NewRegistry()
	reg.MustRegister(writesTotal, conditionGauge)
	metricsdoc.Check(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_operator_gateway_") })
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	forget(types.NamespacedName{Namespace: o.gateway.Namespace, Name: o.gateway.Name})
	if n := testutil.CollectAndCount(conditionGauge); n != 0 {
		t.Errorf("%d series of a gateway that is gone", n)
	}
}
