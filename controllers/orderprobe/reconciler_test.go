package orderprobe

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/probe/pod"
)

// TestRun follows a probe from the wait for its grid to its report.
func TestRun(t *testing.T) {
	b := newBench(t)
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair, Overrides: &api.ProbeOverrides{
		RatesPerProbe: []int32{100, 200}, Measure: &metav1.Duration{Duration: time.Second}, Warmup: &metav1.Duration{}}})
	b.run(probe)
	b.want(probe, "", "GridNotFound", "there is no OrderGrid rtd in namespace "+b.namespace)
	grid := b.grid(2)
	b.setGrid(grid, metav1.ConditionFalse)
	b.run(probe)
	b.want(probe, "", "GridNotAvailable", "waiting until OrderGrid rtd is Available: set by the test")
	b.setGrid(grid, metav1.ConditionTrue)

	if writes := b.run(probe); len(writes) != 3+2+1+1+1 {
		t.Errorf("writes %v; want 3 of identity, 2 channels, the barrier, the Job and status", writes)
	}
	b.want(probe, api.ConditionRunning, "Starting", "starting 2 probes")
	job := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(job)
	if *job.Spec.Completions != 2 || *job.Spec.Parallelism != 2 || *job.Spec.BackoffLimit != 0 {
		t.Errorf("job %+v", job.Spec)
	}
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Starting", "0 of 2 probes are ready")
	b.wantNoWrites(probe, "nothing happened")
	b.reconcile.Defaults.Image = "order-probe:newer"
	b.wantNoWrites(probe, "the operator was upgraded, and a Job cannot be changed")

	b.say(0, pod.KeyReady, "yes")
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Starting", "1 of 2 probes are ready")
	run := &corev1.ConfigMap{ObjectMeta: b.meta("pair-run")}
	if b.get(run); run.Data[pod.KeyStartAt] != "" {
		t.Error("started before all probes were ready")
	}
	b.say(1, pod.KeyReady, "yes")
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Measuring", "all 2 probes are ready")
	b.get(run)
	at, err := time.Parse(time.RFC3339Nano, run.Data[pod.KeyStartAt])
	if err != nil || !at.Equal(now.Add(startDelay)) || !probe.Status.StartTime.Time.Equal(at) {
		t.Errorf("startAt %q, start time %v, error %v", run.Data[pod.KeyStartAt], probe.Status.StartTime, err)
	}
	b.run(probe)
	b.wantNoWrites(probe, "the probes measure")

	p := plan(t, probe)
	b.say(0, pod.KeyResult, result(t, p, 0))
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Measuring", "1 have a result")
	b.say(1, pod.KeyResult, result(t, p, 1))
	b.run(probe)
	b.want(probe, api.ConditionComplete, "Completed", "Valid: ")
	b.wantReport(probe)

	// A finished run stays finished, even without its Job.
	if err := b.client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	b.setGrid(grid, metav1.ConditionFalse)
	b.wantFinished(probe)
	b.wantOwned(probe)
	for _, want := range []string{"Warning GridNotFound", "Normal Starting", "Normal Measuring", "Normal Completed Valid: "} {
		b.wantEvent(want)
	}
}

func (b *bench) wantReport(probe *api.OrderProbe) {
	b.t.Helper()
	s := probe.Status
	if s.Verdict != api.VerdictValid || s.Mean != "100 us at 400/s" || s.ReportConfigMap != "pair-report" || s.CompletionTime == nil {
		b.t.Errorf("status %+v", s)
	}
	if s.P99 != "" {
		b.t.Errorf("p99 %q of 200 samples", s.P99)
	}
	for _, want := range []api.ProbeRow{
		{Rate: "100", Metric: "c2e mean", Unit: "us", Published: "285", Here: "100", Ratio: "0.35", Verdict: "ok"},
		{Rate: "200", Metric: "c2e mean", Unit: "us", Here: "100", Verdict: "ok"}, // not a published rate
	} {
		if !slices.Contains(s.Rows, want) {
			b.t.Errorf("no row %+v among %+v", want, s.Rows)
		}
	}
	m := &corev1.ConfigMap{ObjectMeta: b.meta("pair-report")}
	b.get(m)
	for _, key := range []string{"table.txt", "results.json", "results.csv"} {
		if m.Data[key] == "" {
			b.t.Errorf("the report has no %s", key)
		}
	}
}

// TestFailures: for every end of a run without a result, Failed has the reason, and nothing is started again.
func TestFailures(t *testing.T) {
	started := func(b *bench) *api.OrderProbe {
		b.grid(2)
		probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair})
		b.run(probe)
		b.run(probe)
		return probe
	}
	for _, test := range []struct {
		name, reason, text string
		arrange            func(*bench) *api.OrderProbe
	}{
		{"a probe gave up", "ProbeFailed", "probe B: connection refused", func(b *bench) *api.OrderProbe {
			probe := started(b)
			b.say(1, pod.KeyError, "connection refused")
			return probe
		}},
		{"the Job failed", "JobFailed", "Job pair: Job has reached the specified backoff limit. Pod pair-0-x ended with exit code 4: order-probe: no route to host", func(b *bench) *api.OrderProbe {
			probe := started(b)
			b.failedPod("pair-0-x", 4, "first line\norder-probe: no route to host\n")
			b.failJob("Job has reached the specified backoff limit")
			return probe
		}},
		{"an invalid result", "ResultInvalid", "ConfigMap pair-0 key result.json: result: ", func(b *bench) *api.OrderProbe {
			probe := started(b)
			for i := range 2 {
				b.say(i, pod.KeyReady, "yes")
				b.say(i, pod.KeyResult, `{"schema":"other"}`)
			}
			return probe
		}},
		{"the Job was deleted", "JobFailed", "Job pair was deleted while it ran; 2 of 2 results are missing", func(b *bench) *api.OrderProbe {
			probe := started(b)
			b.say(0, pod.KeyReady, "yes")
			b.say(1, pod.KeyReady, "yes")
			b.run(probe)
			job := &batchv1.Job{ObjectMeta: b.meta("pair")}
			if err := b.client.Delete(b.t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				b.t.Fatal(err)
			}
			return probe
		}},
		{"the grid has no copies", "GridMismatch", "scenario stac-pair needs an OrderGrid with at least 1 shards and exactly 2 replicas; rtd has 1 and 1", func(b *bench) *api.OrderProbe {
			b.grid(1)
			return b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair})
		}},
		{"the grid has too few shards", "GridMismatch", "at least 3 shards", func(b *bench) *api.OrderProbe {
			b.grid(2)
			return b.probe(api.OrderProbeSpec{Scenario: api.ScenarioScale})
		}},
		{"the grid has too little memory", "GridTooSmall", "OrderGrid rtd has spec.memory 64Mi; raise it, or measure fewer rates, shorter", func(b *bench) *api.OrderProbe {
			grid := b.grid(2)
			grid.Spec.Memory = resource.MustParse("64Mi")
			if err := b.client.Update(b.t.Context(), grid); err != nil {
				b.t.Fatal(err)
			}
			return b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair, Parameters: api.ParametersExact})
		}},
		{"an invalid plan", "PlanInvalid", "rate 100: is given twice", func(b *bench) *api.OrderProbe {
			b.grid(2)
			return b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair, Overrides: &api.ProbeOverrides{RatesPerProbe: []int32{100, 100}}})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			probe := test.arrange(b)
			b.run(probe)
			b.want(probe, api.ConditionFailed, test.reason, test.text)
			if probe.Status.CompletionTime == nil || probe.Status.Verdict != "" {
				t.Errorf("status %+v", probe.Status)
			}
			b.wantFinished(probe)
			b.wantOwned(probe)
			b.wantEvent("Warning " + test.reason)
		})
	}
}

// TestAnotherRunsResults: the ConfigMaps of a deleted probe of the same name are not used.
func TestAnotherRunsResults(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	old := &corev1.ConfigMap{ObjectMeta: b.meta("pair-0"), Data: map[string]string{pod.KeyReady: "yes", pod.KeyResult: "{}"}}
	if err := b.client.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair})
	if _, err := b.reconcile.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(probe)}); err == nil {
		t.Error("no error, so the work queue would not try again")
	}
	b.get(probe)
	b.want(probe, "", "NameTaken", "pair-0 exists already and has no controller")
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(probe), &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Job was created: %v", err)
	}
}

// TestProbePodsWriteTheirOwnConfigMapsOnly acts as the probe's pods, by their service account.
func TestProbePodsWriteTheirOwnConfigMapsOnly(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioPair})
	b.run(probe)
	cfg := envtest.Config(t)
	cfg.Impersonate.UserName = "system:serviceaccount:" + b.namespace + ":pair"
	acting, ctx := envtest.Client(t, cfg), t.Context()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"startAt":"2026-01-01T00:00:00Z"}}`))
	run, channel := &corev1.ConfigMap{ObjectMeta: b.meta("pair-run")}, &corev1.ConfigMap{ObjectMeta: b.meta("pair-1")}
	if err := acting.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
		t.Errorf("the pod may not read when to begin: %v", err)
	}
	if err := acting.Patch(ctx, channel, patch); err != nil {
		t.Errorf("the pod may not write its ConfigMap: %v", err)
	}
	for what, err := range map[string]error{
		"set the start":      acting.Patch(ctx, run, patch),
		"create ConfigMaps":  acting.Create(ctx, &corev1.ConfigMap{ObjectMeta: b.meta("mine")}),
		"list ConfigMaps":    acting.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(b.namespace)),
		"read the probe":     acting.Get(ctx, client.ObjectKeyFromObject(probe), &api.OrderProbe{}),
		"read Secrets":       acting.List(ctx, &corev1.SecretList{}, client.InNamespace(b.namespace)),
		"delete its channel": acting.Delete(ctx, channel),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the pod may %s: %v", what, err)
		}
	}
}
