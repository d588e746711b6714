package gridlink

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
	o := &observation{link: aLink()}
	setStatus(o, metav1.Now())
	record(o.link)
	writesTotal.WithLabelValues("a", "b")
	reg := prometheus.NewRegistry()
	reg.MustRegister(writesTotal, conditionGauge)
	metricsdoc.Check(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_operator_link_") })
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	forget(types.NamespacedName{Namespace: o.link.Namespace, Name: o.link.Name})
	if n := testutil.CollectAndCount(conditionGauge); n != 0 {
		t.Errorf("%d series of a link that is gone", n)
	}
}
