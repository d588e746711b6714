package orderprobe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// TestEveryScenarioHasAnOrderProbe: the API takes the scenarios that order-probe has, and no others.
func TestEveryScenarioHasAnOrderProbe(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(envtest.CRDs(), "ordergrid.dev_orderprobes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var taken []string
	for _, v := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["scenario"].Enum {
		taken = append(taken, strings.Trim(string(v.Raw), `"`))
	}
	there := append(scenario.Names(figures(t)), published.SystemScenarios()...)
	there = append(there, string(api.ScenarioSuite))
	slices.Sort(taken)
	slices.Sort(there)
	if !slices.Equal(taken, there) {
		t.Errorf("spec.scenario takes %v\norder-probe has %v; correct the Enum of type Scenario in api/v1alpha1/orderprobe_scenario.go and make generate", taken, there)
	}
	for _, name := range there {
		_, err := scenario.New(figures(t), name, scenario.Options{Mode: scenario.Quick})
		needsGrid := (err == nil || name == string(api.ScenarioReplay)) && name != published.TimeplotScenario // which needs two
		if own := api.Scenario(name).OwnGrids(); own == needsGrid {
			t.Errorf("%s: grids of its own %v, a plan for an OrderGrid %v", name, own, needsGrid)
		}
	}
}

func ownProbe(name string, s api.Scenario) *api.OrderProbe {
	return &api.OrderProbe{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "trading", UID: "11111111-2222-3333-4444-555555555555"},
		Spec:       api.OrderProbeSpec{Scenario: s, Parameters: api.ParametersQuick},
	}
}

func TestGoldenJobsOfTheirOwn(t *testing.T) {
	suite := ownProbe("all", api.ScenarioSuite)
	suite.Spec.Budget = &metav1.Duration{Duration: 30 * time.Minute}
	for _, probe := range []*api.OrderProbe{suite, ownProbe("fanout", "sol-fanout")} {
		golden.YAML(t, filepath.Join("testdata", "own_"+probe.Name+"_job.yaml"), job(probe, plan(t, probe), testDefaults))
	}
}

// TestRoomOfItsOwn: what the user gives stays, and the disk is bounded by the volume in any case.
func TestRoomOfItsOwn(t *testing.T) {
	probe := ownProbe("fanout", "sol-fanout")
	probe.Spec.Resources = &corev1.ResourceRequirements{}
	spec := podSpec(probe, plan(t, probe), testDefaults)
	if r := spec.Containers[0].Resources; len(r.Requests)+len(r.Limits) != 0 || spec.Volumes[0].EmptyDir.SizeLimit.String() != "2Gi" {
		t.Errorf("resources %+v, volume %+v", r, spec.Volumes)
	}
	for want, change := range map[time.Duration]func(*api.OrderProbeSpec){
		time.Hour + startupTime:    func(*api.OrderProbeSpec) {},
		4*time.Hour + startupTime:  func(s *api.OrderProbeSpec) { s.Parameters = "" },
		48*time.Hour + startupTime: func(s *api.OrderProbeSpec) { s.Parameters = api.ParametersExact },
		16*time.Hour + startupTime: func(s *api.OrderProbeSpec) { s.Parameters, s.Scenario = api.ParametersScaled, api.ScenarioSuite },
		20*time.Minute + startupTime: func(s *api.OrderProbeSpec) {
			s.Scenario, s.Budget = api.ScenarioSuite, &metav1.Duration{Duration: 10 * time.Minute}
		},
	} {
		p := ownProbe("x", "bar-load")
		change(&p.Spec)
		if got := *job(p, plan(t, p), testDefaults).Spec.ActiveDeadlineSeconds; got != int64(want/time.Second) {
			t.Errorf("%+v: ended after %d s, want %v", p.Spec, got, want)
		}
	}
}

// handedOver is the result of a pod.
func handedOver(t *testing.T, o *report.Own) string {
	t.Helper()
	o.Schema = report.OwnSchema
	b, _, err := o.Fit(pod.MaxResult)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fanout(verdict string, here float64) *report.Own {
	ratio := here / 600
	return &report.Own{
		Outcome: &report.Outcome{
			Run: report.SuiteRun{Scenario: "sol-fanout", Verdict: verdict, Reason: "why", Control: "found"},
			Figures: []report.Comparison{
				{Table: "3-1", Row: "1000", Metric: "latency, mean", Unit: "us", Published: 600, Here: &here, Ratio: &ratio},
				{Table: "3-1", Row: "2000", Metric: "latency, mean", Unit: "us", Published: 700, Reason: "not here"},
			},
		},
		Files: map[string]string{report.FileTable: "table", report.FileResults: "{}", report.FileCSV: "csv", report.FilePage: "<html>"},
	}
}

func read(t *testing.T, o *report.Own) (*ownResult, error) {
	t.Helper()
	return readOwn(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own-0"}, Data: map[string]string{pod.KeyResult: handedOver(t, o)}})
}

func TestResultsOfTheirOwn(t *testing.T) {
	var s api.OrderProbeStatus
	r, err := read(t, fanout(report.Fail, 300))
	if err != nil {
		t.Fatal(err)
	}
	fillOwn(&s, r)
	if s.Verdict != api.VerdictValid || s.VerdictReason != "why" || s.Verdicts[2] != (api.ProbeVerdict{Name: "SHAPE", Status: "FAIL", Reason: "why"}) || s.Verdicts[0].Reason != "found" {
		t.Errorf("status %+v", s)
	}
	want := []api.ProbeRow{{Rate: "3-1 1000", Metric: "latency, mean", Unit: "us", Published: "600", Here: "300", Ratio: "0.50", Verdict: "FAIL"},
		{Rate: "3-1 2000", Metric: "latency, mean", Unit: "us", Published: "700", Verdict: "not run"}}
	if !slices.Equal(s.Rows, want) {
		t.Errorf("rows %+v", s.Rows)
	}
	all := report.NewSuite(figures(t), map[string]*report.Outcome{"sol-fanout": fanout(report.Invalid, 300).Outcome}, nil)
	var b strings.Builder
	if err := all.JSON(&b); err != nil {
		t.Fatal(err)
	}
	o := fanout("", 1)
	o.Outcome, o.Files[report.FileResults] = nil, b.String()
	if r, err = read(t, o); err != nil {
		t.Fatal(err)
	}
	fillOwn(&s, r)
	if s.Verdict != api.VerdictInvalid || len(s.Rows) != 35 || !strings.Contains(s.VerdictReason, "1 scenarios ran; of 35 published tables: ") || s.Verdicts[1].Reason != "1 of 1 scenarios: sol-fanout" {
		t.Errorf("status %+v", s)
	}
	for name, want := range map[string]string{"../x.txt": "a file is called", "Table.txt": "a file is called", "x": "a file is called", "big.txt": "the report takes"} {
		o := fanout(report.Pass, 1)
		o.Files[name] = "x"
		if name == "big.txt" {
			o.Files[name] = strings.Repeat("x", maxReportBytes)
		}
		if _, err := read(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRegressionOfTheirOwn: times that rise and rates that fall regress; ratios do not, and many figures need many runs.
func TestRegressionOfTheirOwn(t *testing.T) {
	run := func(i int, time, rate float64, more int) api.OrderProbe {
		m := api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Spec: api.OrderProbeSpec{Scenario: "bar-load"}}
		m.Status.Conditions = []metav1.Condition{{Type: api.ConditionComplete, Status: metav1.ConditionTrue}}
		m.Status.Verdict = api.VerdictValid
		m.Status.Rows = []api.ProbeRow{{Rate: "a", Metric: "lag p50", Unit: "ms", Here: decimal(time)}, {Rate: "b", Metric: "rows/s, mean", Here: decimal(rate)},
			{Rate: "c", Metric: "TPS of the most users, by that of the fewest", Here: decimal(time)}}
		for n := range more {
			m.Status.Rows = append(m.Status.Rows, api.ProbeRow{Rate: fmt.Sprint(n), Metric: "scan", Unit: "ms", Here: decimal(100 + float64(i%5))})
		}
		return m
	}
	for name, c := range map[string]struct {
		time, rate float64 // of the latest, times those before
		runs, more int
		want       metav1.ConditionStatus
		text       string
	}{
		"steady":       {1, 1, 9, 0, metav1.ConditionFalse, "a lag p50: median"},
		"later":        {1.5, 1, 9, 0, metav1.ConditionTrue, "a lag p50: median"},
		"fewer":        {1, 0.7, 9, 0, metav1.ConditionTrue, "b rows/s, mean: median"},
		"better":       {0.5, 2, 9, 0, metav1.ConditionFalse, ""},
		"many figures": {1.5, 1, 9, 18, metav1.ConditionUnknown, "9 valid runs; 20 figures need 15"},
		"many runs":    {1.5, 1, 16, 18, metav1.ConditionTrue, "a lag p50: median"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []api.OrderProbe
			for i := range c.runs {
				time, rate := 100+float64(i), 1000+float64(i)
				if i < latestRuns {
					time, rate = time*c.time, rate*c.rate
				}
				members = append(members, run(i, time, rate, c.more))
			}
			if got := regressed(members); got.Status != c.want || !strings.HasPrefix(got.Message, c.text) || strings.Contains(got.Message, "by that of") {
				t.Errorf("%s %s: %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

// TestSeriesOfTheirOwn: a run has the budget of its series, and no reference to a grid, not even an empty one.
func TestSeriesOfTheirOwn(t *testing.T) {
	series := ownProbe("weekly", api.ScenarioSuite)
	series.Spec.Budget, series.Spec.Schedule = &metav1.Duration{Duration: time.Hour}, &api.ProbeSchedule{Cron: "@weekly"}
	run, err := runtime.DefaultUnstructuredConverter.ToUnstructured(member(series, "weekly-1"))
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := run["spec"].(map[string]any)
	_, grid := spec["gridRef"]
	_, schedule := spec["schedule"]
	if grid || schedule || spec["budget"] != "1h0m0s" || spec["scenario"] != "suite" {
		t.Errorf("spec %v", spec)
	}
}

// TestRunOfItsOwn follows one from its creation to its report on a real API server: it waits for no grid.
func TestRunOfItsOwn(t *testing.T) {
	b := newBench(t)
	probe := &api.OrderProbe{ObjectMeta: b.meta("pair"), Spec: api.OrderProbeSpec{Scenario: "sol-fanout", Parameters: api.ParametersQuick}}
	if err := b.client.Create(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(client.ObjectKeyFromObject(probe)) }) // metrics are of the whole process
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Starting", "starts the grids that it measures")
	run := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(run)
	if *run.Spec.Completions != 1 || *run.Spec.ActiveDeadlineSeconds != int64((time.Hour+startupTime)/time.Second) {
		t.Errorf("job %+v", run.Spec)
	}
	b.run(probe)
	b.say(0, pod.KeyReady, "yes")
	b.run(probe)
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Measuring", "sol-fanout runs since")
	b.say(0, pod.KeyResult, handedOver(t, fanout(report.Pass, 300)))
	b.run(probe)
	b.want(probe, api.ConditionComplete, "Completed", "Valid: why")
	m := &corev1.ConfigMap{ObjectMeta: b.meta("pair-report")}
	b.get(m)
	if m.Data[report.FilePage] != "<html>" || len(m.Data) != 4 || probe.Status.ReportConfigMap != m.Name {
		t.Errorf("report %v, status %+v", m.Data, probe.Status)
	}
	b.wantFinished(probe)
	b.wantOwned(probe)
}
