package orderprobe

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_probe_writes_total",
		Help: "Writes of objects of OrderProbes sent to the API server, by kind of object and outcome: created, updated.",
	}, []string{"kind", "outcome"})

	resultGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_orderprobe_result_seconds",
		Help: "Latencies in status of an OrderProbe, by what was measured (create_to_end, send_to_end, intended_to_end), statistic and source: published, here.",
	}, []string{"namespace", "orderprobe", "scenario", "pairs", "rate", "latency", "metric", "source"})

	figureGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_orderprobe_figure",
		Help: "Figures in status of an OrderProbe that starts grids of its own, by row of its table, what was measured, unit and source: published, here.",
	}, []string{"namespace", "orderprobe", "scenario", "row", "metric", "unit", "source"})

	verdictGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_orderprobe_verdict",
		Help: "1 for the verdict of an OrderProbe that has ended, 0 for the others.",
	}, []string{"namespace", "orderprobe", "scenario", "verdict"})

	completedGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_orderprobe_completed_timestamp_seconds",
		Help: "When an OrderProbe ended, in seconds since 1970; absent before.",
	}, []string{"namespace", "orderprobe"})

	regressedGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ordergrid_orderprobe_regressed",
		Help: "1 while the latest runs of a series (an OrderProbe with a schedule) are slower than those before, 0 while they are not; absent while there are too few.",
	}, []string{"namespace", "orderprobe"})
)

func init() {
	metrics.Registry.MustRegister(writesTotal, resultGauge, figureGauge, verdictGauge, completedGauge, regressedGauge)
}

var countWrite = apply.CountIn(writesTotal)

// latencies are the prefixes of a row's metric, and their names as labels.
var latencies = map[string]string{"c2e": "create_to_end", "s2e": "send_to_end", "i2e": "intended_to_end"}

// seconds per unit of the rows.
var seconds = map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1}

// verdicts that have a series each, so that a change of verdict is a change of values.
var verdicts = []api.Verdict{api.VerdictValid, api.VerdictInvalid, api.VerdictIncorrect}

// record publishes the status of an OrderProbe. It is derived from status alone, so that a restarted operator has it as
// well. Status bounds it: at most maxRows rows.
func record(probe *api.OrderProbe) {
	namespace, name, scenario := probe.Namespace, probe.Name, string(probe.Spec.Scenario)
	if probe.Status.CompletionTime == nil {
		forget(types.NamespacedName{Namespace: namespace, Name: name}) // of a deleted one of the same name
		return
	}
	completedGauge.WithLabelValues(namespace, name).Set(float64(probe.Status.CompletionTime.Unix()))
	if v := probe.Status.Verdict; v != "" {
		for _, other := range verdicts {
			verdictGauge.WithLabelValues(namespace, name, scenario, string(other)).Set(0)
		}
		verdictGauge.WithLabelValues(namespace, name, scenario, string(v)).Set(1)
	}
	for _, row := range probe.Status.Rows {
		short, metric, _ := strings.Cut(strings.ToLower(row.Metric), " ")
		latency, unit := latencies[short], seconds[row.Unit]
		own := probe.Spec.Scenario.OwnGrids()
		if !own && (latency == "" || unit == 0) {
			continue // a share, a rate, cores
		}
		for source, text := range map[string]string{"published": row.Published, "here": row.Here} {
			v, err := strconv.ParseFloat(text, 64)
			switch {
			case err != nil:
			case own:
				figureGauge.WithLabelValues(namespace, name, scenario, row.Rate, row.Metric, row.Unit, source).Set(v)
			default:
				resultGauge.WithLabelValues(namespace, name, scenario, row.Pairs, row.Rate, latency, metric, source).Set(v * unit)
			}
		}
	}
}

// forget drops the series of an OrderProbe that is gone.
func forget(probe types.NamespacedName) {
	labels := prometheus.Labels{"namespace": probe.Namespace, "orderprobe": probe.Name}
	resultGauge.DeletePartialMatch(labels)
	figureGauge.DeletePartialMatch(labels)
	verdictGauge.DeletePartialMatch(labels)
	completedGauge.DeletePartialMatch(labels)
	regressedGauge.DeletePartialMatch(labels)
}

// recordSeries publishes the judgement of a series.
func recordSeries(probe *api.OrderProbe) {
	switch c := meta.FindStatusCondition(probe.Status.Conditions, api.ConditionRegressed); {
	case c == nil || c.Status == metav1.ConditionUnknown:
		regressedGauge.DeleteLabelValues(probe.Namespace, probe.Name)
	case c.Status == metav1.ConditionTrue:
		regressedGauge.WithLabelValues(probe.Namespace, probe.Name).Set(1)
	default:
		regressedGauge.WithLabelValues(probe.Namespace, probe.Name).Set(0)
	}
}
