package failoverdrill

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

func registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors()...)
	return reg
}

// certified is a drill that has ended, with a second fault still in place.
func certified(name string) *api.FailoverDrill {
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	micro := metav1.NewMicroTime(at.Time)
	d := &api.FailoverDrill{Spec: api.FailoverDrillSpec{Suite: api.SuitePullThePlug}}
	d.Namespace, d.Name, d.Spec.GridRef.Name = "trading", name, "rtd"
	d.Status = api.FailoverDrillStatus{
		CompletionTime: &at,
		Certificate: &api.DrillCertificate{Verdict: api.DrillViolated, Lost: 3, Acknowledged: 100, SHA256: "s",
			OutageMax: &metav1.Duration{Duration: 300 * time.Millisecond}},
		Steps: []api.DrillStep{
			{Index: 0, Fault: "kill", Type: api.FaultPodKill, InjectedTime: &micro, RecoveredTime: &micro},
			{Index: 1, Fault: "fail", Type: api.FaultPodFailure, InjectedTime: &micro},
		},
	}
	return d
}

func TestDrillsAreExportedAndForgotten(t *testing.T) {
	reg := registry()
	d := certified("nightly")
	record(d)
	record(d)
	want := `
# HELP ordergrid_drill_fault_active 1 from the injection of a fault of a FailoverDrill until it is recovered; absent otherwise.
# TYPE ordergrid_drill_fault_active gauge
ordergrid_drill_fault_active{drill="nightly",fault="fail",grid="rtd",namespace="trading",type="PodFailure"} 1
# HELP ordergrid_drill_outage_seconds Outage of a client session per fault, in the certificate of a FailoverDrill, by statistic over its steps: p50, p99, max.
# TYPE ordergrid_drill_outage_seconds gauge
ordergrid_drill_outage_seconds{drill="nightly",grid="rtd",namespace="trading",statistic="max"} 0.3
# HELP ordergrid_drill_verdict 1 for the verdict of a FailoverDrill that has ended, 0 for the others.
# TYPE ordergrid_drill_verdict gauge
ordergrid_drill_verdict{drill="nightly",grid="rtd",namespace="trading",suite="pull-the-plug",verdict="Invalid"} 0
ordergrid_drill_verdict{drill="nightly",grid="rtd",namespace="trading",suite="pull-the-plug",verdict="Missed"} 0
ordergrid_drill_verdict{drill="nightly",grid="rtd",namespace="trading",suite="pull-the-plug",verdict="Pass"} 0
ordergrid_drill_verdict{drill="nightly",grid="rtd",namespace="trading",suite="pull-the-plug",verdict="Violated"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ordergrid_drill_fault_active", "ordergrid_drill_outage_seconds", "ordergrid_drill_verdict"); err != nil {
		t.Error(err)
	}
	d.Status.Steps[1].RecoveredTime = d.Status.Steps[1].InjectedTime
	record(d)
	if n, err := testutil.GatherAndCount(reg, "ordergrid_drill_fault_active"); err != nil || n != 0 {
		t.Errorf("%d faults are active, %v", n, err)
	}
	// One of the same name that has just begun has no certificate.
	again := certified("nightly")
	again.Status = api.FailoverDrillStatus{}
	record(again)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 1 {
		t.Errorf("%d series, %v; want faults_remain only", n, err)
	}
	forget(types.NamespacedName{Namespace: "trading", Name: "nightly"})
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 0 {
		t.Errorf("%d series are left, %v", n, err)
	}
}

func TestMetricsAreOnThePage(t *testing.T) {
	d := certified("documented")
	record(d)
	defer forget(types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
	countWrite("Job", 1)
	after := certified("documented")
	after.Status.Steps[0].State, after.Status.Steps[0].Outcome = api.StepDone, api.StepPassed
	countSteps(d, after)
	defer stepsTotal.Reset()
	defer writesTotal.Reset()
	reg := registry()
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool {
		return strings.HasPrefix(name, "ordergrid_operator_drill_") || strings.HasPrefix(name, "ordergrid_drill_") && !strings.HasPrefix(name, "ordergrid_drill_recorder_")
	})
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}
