package orderprobe

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func measured(name string) *api.OrderProbe {
	done := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return &api.OrderProbe{
		ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: name},
		Spec:       api.OrderProbeSpec{Scenario: api.ScenarioPair},
		Status: api.OrderProbeStatus{CompletionTime: &done, Verdict: api.VerdictInvalid, Rows: []api.ProbeRow{
			{Rate: "3000", Metric: "c2e p99", Unit: "us", Published: "1900", Here: "250"},
			{Rate: "3000", Metric: "c2e >1ms", Unit: "%", Here: "1"},                         // no latency
			{Rate: "3000", Metric: "s2e mean", Unit: "us", Published: "n/a", Verdict: "n/a"}, // no figure
			{Rate: "3000", Metric: "lag p99", Unit: "us", Here: "20"},                        // the probe's own
		}},
	}
}

func TestResultsAreExportedAndForgotten(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(resultGauge, verdictGauge, completedGauge)
	count := func(what string, want int) {
		t.Helper()
		got, err := testutil.GatherAndCount(reg)
		if err != nil || got != want {
			t.Errorf("%s: %d series, %v; want %d", what, got, err, want)
		}
	}
	probe := measured("counted")
	record(probe)
	record(probe)
	const each = 2 + 3 + 1 // published and here, three verdicts, the time
	count("one probe", each)
	want := `
# HELP ordergrid_orderprobe_result_seconds Latencies in status of an OrderProbe, by what was measured (create_to_end, send_to_end, intended_to_end), statistic and source: published, here.
# TYPE ordergrid_orderprobe_result_seconds gauge
ordergrid_orderprobe_result_seconds{latency="create_to_end",metric="p99",namespace="trading",orderprobe="counted",pairs="",rate="3000",scenario="stac-pair",source="here"} 0.00025
ordergrid_orderprobe_result_seconds{latency="create_to_end",metric="p99",namespace="trading",orderprobe="counted",pairs="",rate="3000",scenario="stac-pair",source="published"} 0.0019
# HELP ordergrid_orderprobe_verdict 1 for the verdict of an OrderProbe that has ended, 0 for the others.
# TYPE ordergrid_orderprobe_verdict gauge
ordergrid_orderprobe_verdict{namespace="trading",orderprobe="counted",scenario="stac-pair",verdict="Incorrect"} 0
ordergrid_orderprobe_verdict{namespace="trading",orderprobe="counted",scenario="stac-pair",verdict="Invalid"} 1
ordergrid_orderprobe_verdict{namespace="trading",orderprobe="counted",scenario="stac-pair",verdict="Valid"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ordergrid_orderprobe_result_seconds", "ordergrid_orderprobe_verdict"); err != nil {
		t.Error(err)
	}
	other := measured("other")
	record(other)
	count("two probes", 2*each)
	other.Status = api.OrderProbeStatus{} // deleted and created anew
	record(other)
	count("one that runs", each)
	forget(types.NamespacedName{Namespace: "trading", Name: "counted"})
	count("none", 0)
}

func TestMetricsAreOnThePage(t *testing.T) {
	probe := measured("documented")
	writesTotal.WithLabelValues("a", "b")
	record(probe)
	defer forget(types.NamespacedName{Namespace: probe.Namespace, Name: probe.Name})
	own := measured("own")
	own.Spec.Scenario = "sol-fanout"
	record(own)
	defer forget(types.NamespacedName{Namespace: own.Namespace, Name: own.Name})
	reg := prometheus.NewRegistry()
	regressedGauge.WithLabelValues("trading", "documented").Set(0)
	reg.MustRegister(writesTotal, resultGauge, figureGauge, verdictGauge, completedGauge, regressedGauge)
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool {
		return strings.HasPrefix(name, "ordergrid_operator_probe_") || strings.HasPrefix(name, "ordergrid_orderprobe_")
	})
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}
