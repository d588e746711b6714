package failoverdrill

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
)

// gauge is a gauge of a FailoverDrill, with labels in addition to its identity.
func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append([]string{"namespace", "drill", "grid"}, labels...))
}

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_operator_drill_writes_total",
		Help: "Writes of objects of FailoverDrills sent to the API server, by kind of object and outcome: created, updated.",
	}, []string{"kind", "outcome"})

	stepsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ordergrid_drill_steps_total",
		Help: "Steps of FailoverDrills that are over, by type of fault and outcome: Passed, Missed, Refused, Failed, Aborted.",
	}, []string{"namespace", "grid", "type", "outcome"})

	activeGauge = gauge("ordergrid_drill_fault_active",
		"1 from the injection of a fault of a FailoverDrill until it is recovered; absent otherwise.", "fault", "type")

	remainGauge = gauge("ordergrid_drill_faults_remain",
		"1 while faults of a FailoverDrill are in place, or may be, that should have been recovered: condition Recovered has the remedy. 0 otherwise.")

	verdictGauge = gauge("ordergrid_drill_verdict",
		"1 for the verdict of a FailoverDrill that has ended, 0 for the others.", "suite", "verdict")

	ordersGauge = gauge("ordergrid_drill_orders",
		"Orders in the certificate of a FailoverDrill, by outcome: created, acknowledged, rejected, unknown, lost, missing (not lost, and not everywhere they should be), duplicated, out_of_order; gap counts sequence numbers.", "result")

	outageGauge = gauge("ordergrid_drill_outage_seconds",
		"Outage of a client session per fault, in the certificate of a FailoverDrill, by statistic over its steps: p50, p99, max.", "statistic")

	completedGauge = gauge("ordergrid_drill_completed_timestamp_seconds",
		"When a FailoverDrill ended, in seconds since 1970; absent before.")
)

// atEnd are the gauges of a drill that has ended, perDrill all gauges of a drill.
var (
	atEnd    = []*prometheus.GaugeVec{verdictGauge, ordersGauge, outageGauge, completedGauge}
	perDrill = append([]*prometheus.GaugeVec{activeGauge, remainGauge}, atEnd...)
)

func collectors() []prometheus.Collector {
	return []prometheus.Collector{writesTotal, activeGauge, stepsTotal, remainGauge, verdictGauge, ordersGauge, outageGauge, completedGauge}
}

func init() { metrics.Registry.MustRegister(collectors()...) }

var countWrite = apply.CountIn(writesTotal)

// recording keeps two workers from interleaving the series of drills of one name.
var recording sync.Mutex

// countSteps counts the steps that have just ended.
func countSteps(before, after *api.FailoverDrill) {
	for i := range after.Status.Steps {
		s := &after.Status.Steps[i]
		was := stepBefore(before, s.Index)
		if s.State == api.StepDone && s.Outcome != "" && (was == nil || was.State != api.StepDone) {
			stepsTotal.WithLabelValues(after.Namespace, after.Spec.GridRef.Name, string(s.Type), string(s.Outcome)).Inc()
		}
	}
}

// verdicts that have a series each, so that a change of verdict is a change of values.
var verdicts = []api.DrillVerdict{api.DrillPass, api.DrillMissed, api.DrillInvalid, api.DrillViolated}

// active are the existing series of ordergrid_drill_fault_active, by drill.
var active = map[types.NamespacedName][]prometheus.Labels{}

// record publishes the status of a FailoverDrill. It is derived from status alone, so that a restarted operator has it
// as well. A series that stays is never removed in between: a scrape may come at any time.
func record(d *api.FailoverDrill) {
	recording.Lock()
	defer recording.Unlock()
	id := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	recordActive(d, id)
	namespace, name, grid := d.Namespace, d.Name, d.Spec.GridRef.Name
	remain := 0.0
	if c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionRecovered); c != nil && (c.Reason == reasonFaultsRemain || c.Reason == reasonFaultsUnknown) {
		remain = 1
	}
	remainGauge.WithLabelValues(namespace, name, grid).Set(remain)
	if d.Status.CompletionTime == nil {
		drop(id, atEnd) // of a deleted one of the same name
		return
	}
	completedGauge.WithLabelValues(namespace, name, grid).Set(float64(d.Status.CompletionTime.Unix()))
	c := d.Status.Certificate
	if c == nil {
		return
	}
	for _, v := range verdicts {
		is := 0.0
		if v == c.Verdict {
			is = 1
		}
		verdictGauge.WithLabelValues(namespace, name, grid, string(d.Spec.Suite), string(v)).Set(is)
	}
	if c.SHA256 == "" {
		return // no certificate exists: its zeros are not figures
	}
	for result, n := range map[string]int64{
		"created": c.Created, "acknowledged": c.Acknowledged, "rejected": c.Rejected, "unknown": c.Unknown,
		"lost": c.Lost, "missing": c.Missing, "duplicated": c.Duplicated, "out_of_order": c.OutOfOrder, "gap": c.Gaps,
	} {
		ordersGauge.WithLabelValues(namespace, name, grid, result).Set(float64(n))
	}
	for statistic, v := range map[string]*metav1.Duration{"p50": c.OutageP50, "p99": c.OutageP99, "max": c.OutageMax} {
		if v != nil {
			outageGauge.WithLabelValues(namespace, name, grid, statistic).Set(v.Seconds())
		}
	}
}

func recordActive(d *api.FailoverDrill, id types.NamespacedName) {
	before := active[id]
	var now []prometheus.Labels
	for i := range d.Status.Steps {
		if s := &d.Status.Steps[i]; s.InjectedTime != nil && s.RecoveredTime == nil {
			l := prometheus.Labels{"namespace": d.Namespace, "drill": d.Name, "grid": d.Spec.GridRef.Name, "fault": s.Fault, "type": string(s.Type)}
			activeGauge.With(l).Set(1)
			now = append(now, l)
		}
	}
	for _, l := range before {
		if !slices.ContainsFunc(now, func(n prometheus.Labels) bool { return maps.Equal(n, l) }) {
			activeGauge.Delete(l)
		}
	}
	active[id] = now
	if len(now) == 0 {
		delete(active, id)
	}
}

// forget drops the series of a FailoverDrill that is gone.
func forget(drill types.NamespacedName) {
	recording.Lock()
	defer recording.Unlock()
	delete(active, drill)
	drop(drill, perDrill)
}

func drop(drill types.NamespacedName, gauges []*prometheus.GaugeVec) {
	for _, g := range gauges {
		g.DeletePartialMatch(prometheus.Labels{"namespace": drill.Namespace, "drill": drill.Name})
	}
}
