package orderprobe

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a reconciler on a real API server, in a namespace of its own, whose writes are recorded.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
	reconcile *Reconciler
	events    chan string
	mu        sync.Mutex
	writes    []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cfg := envtest.Config(t)
	b := &bench{t: t, client: mustClient(t, cfg)}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	if err := b.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b.namespace = ns.Name
	recorded := rest.CopyConfig(cfg)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet {
				b.mu.Lock()
				b.writes = append(b.writes, req.Method+" "+req.URL.Path)
				b.mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	})
	observed := mustClient(t, recorded)
	recorder := events.NewFakeRecorder(100)
	b.events = recorder.Events
	b.reconcile = &Reconciler{Client: observed, Live: observed, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(now), Defaults: testDefaults}
	return b
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func mustClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	cl, err := client.New(cfg, client.Options{Scheme: envtest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func (b *bench) run(probe *api.OrderProbe) []string {
	b.t.Helper()
	b.mu.Lock()
	b.writes = nil
	b.mu.Unlock()
	if _, err := b.reconcile.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(probe)}); err != nil {
		b.t.Fatalf("reconcile: %v", err)
	}
	b.get(probe)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

func (b *bench) get(obj client.Object) {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: b.namespace}
}

// grid creates an OrderGrid that serves with all its copies.
func (b *bench) grid(replicas int32) *api.OrderGrid {
	b.t.Helper()
	grid := &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: api.OrderGridSpec{Replicas: replicas}}
	if err := b.client.Create(b.t.Context(), grid); err != nil {
		b.t.Fatal(err)
	}
	b.setGrid(grid, metav1.ConditionTrue)
	return grid
}

func (b *bench) setGrid(grid *api.OrderGrid, status metav1.ConditionStatus) {
	b.t.Helper()
	for _, kind := range []string{api.ConditionAvailable, api.ConditionRedundant} {
		meta.SetStatusCondition(&grid.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: "set by the test"})
	}
	if err := b.client.Status().Update(b.t.Context(), grid); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) probe(spec api.OrderProbeSpec) *api.OrderProbe {
	b.t.Helper()
	spec.GridRef.Name = "rtd"
	probe := &api.OrderProbe{ObjectMeta: b.meta("pair"), Spec: spec}
	if err := b.client.Create(b.t.Context(), probe); err != nil {
		b.t.Fatal(err)
	}
	return probe
}

// say writes a key of a pod's ConfigMap with the pod's own code and rights.
func (b *bench) say(index int, key, value string) {
	b.t.Helper()
	cfg := envtest.Config(b.t)
	cfg.Impersonate.UserName = "system:serviceaccount:" + b.namespace + ":pair"
	m := &corev1.ConfigMap{ObjectMeta: b.meta(channelName(&api.OrderProbe{ObjectMeta: b.meta("pair")}, index))}
	b.get(m)
	data, err := json.Marshal(map[string]any{"data": map[string]string{key: value}})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := mustClient(b.t, cfg).Patch(b.t.Context(), m, client.RawPatch("application/merge-patch+json", data)); err != nil {
		b.t.Fatal(err)
	}
}

// result is what a probe would have measured: every order acknowledged once after 100 us.
func result(t *testing.T, plan scenario.Plan, index int) string {
	t.Helper()
	shard, part := plan.Partition(index)
	p := report.Probe{Name: letter(index), Index: index, Partition: "s" + string(rune('0'+shard)) + "p" + string(rune('0'+part)), Copies: []string{"a", "b"}}
	r := &report.Result{Schema: report.ResultSchema, RunID: "R", StartedAt: now.Format(time.RFC3339), Plan: plan,
		Manifests: []report.Manifest{{Probes: p.Name, Cores: 2}}}
	for _, s := range plan.Steps {
		all, measured := plan.Orders(s), int64(s.Rate)*plan.Measure/1000
		step := report.ProbeStep{
			Step: s.ID, Created: all, Acked: all, MinCopies: plan.Replicas, Intended: measured, Samples: measured,
			CreatedRate: float64(s.Rate), AckedRate: float64(s.Rate),
			Ledger: report.LedgerCounts{Entries: all}, Backups: report.LedgerCounts{Entries: all},
		}
		for range measured {
			step.Lag.Record(10_000)
			step.CreateToEnd.Record(100_000)
			step.SendToEnd.Record(90_000)
			step.IntendedToEnd.Record(110_000)
		}
		p.Steps = append(p.Steps, step)
		r.Conditions = append(r.Conditions, report.Conditions{Step: s.ID, Probes: p.Name, ElapsedMs: plan.Warmup + plan.Measure, Cores: 2, BusyPct: 10, ProbePct: 5})
	}
	r.Probes = []report.Probe{p}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (b *bench) want(probe *api.OrderProbe, kind, reason, text string) {
	b.t.Helper()
	for _, c := range probe.Status.Conditions {
		if want := c.Type == kind; (c.Status == metav1.ConditionTrue) != want {
			b.t.Errorf("condition %+v", c)
		}
		if c.Reason != reason || !strings.Contains(c.Message, text) {
			b.t.Errorf("condition %s: reason %s, message %q; want %s, %q", c.Type, c.Reason, c.Message, reason, text)
		}
	}
	if len(probe.Status.Conditions) != 3 {
		b.t.Errorf("%d conditions", len(probe.Status.Conditions))
	}
}

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

	// What is finished stays finished, even without its Job.
	if err := b.client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	b.setGrid(grid, metav1.ConditionFalse)
	b.wantNoWrites(probe, "the run has ended")
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

// TestFailures: whatever ends a run without a result, Failed says why, and nothing is started again.
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
		{"a result nobody understands", "ResultInvalid", "ConfigMap pair-0 key result.json: result: ", func(b *bench) *api.OrderProbe {
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
		{"a plan that cannot be", "PlanInvalid", "rate 100: is given twice", func(b *bench) *api.OrderProbe {
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
			b.wantNoWrites(probe, "the run has failed")
			b.wantOwned(probe)
			b.wantEvent("Warning " + test.reason)
		})
	}
}

// TestAnotherRunsResults: the ConfigMaps of a deleted probe of the same name are not taken for this one's.
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
	b.want(probe, "", "NameTaken", "pair-0 exists already and is controlled by nobody")
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
	acting, ctx := mustClient(t, cfg), t.Context()
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

func (b *bench) failJob(message string) {
	b.t.Helper()
	job := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(job)
	at := metav1.NewTime(now)
	job.Status.StartTime = &at
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: message, LastTransitionTime: at})
	}
	if err := b.client.Status().Update(b.t.Context(), job); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) failedPod(name string, code int32, log string) {
	b.t.Helper()
	job := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(job)
	p := &corev1.Pod{ObjectMeta: b.meta(name), Spec: job.Spec.Template.Spec}
	p.Labels = job.Spec.Template.Labels
	if err := b.client.Create(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: log}}}}
	if err := b.client.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) wantNoWrites(probe *api.OrderProbe, when string) {
	b.t.Helper()
	if writes := b.run(probe); len(writes) != 0 {
		b.t.Errorf("%s, yet %d writes: %v", when, len(writes), writes)
	}
}

// wantOwned: everything of a probe goes with it.
func (b *bench) wantOwned(probe *api.OrderProbe) {
	b.t.Helper()
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := b.client.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, item := range items {
			if o := item.(client.Object); !metav1.IsControlledBy(o, probe) {
				b.t.Errorf("%T %s is not controlled by the probe", o, o.GetName())
			}
		}
	}
}

func (b *bench) wantEvent(prefix string) {
	b.t.Helper()
	var seen []string
	for {
		select {
		case e := <-b.events:
			if strings.HasPrefix(e, prefix) {
				return
			}
			seen = append(seen, e)
		default:
			b.t.Errorf("no event %q; there were:\n%s", prefix, strings.Join(seen, "\n"))
			return
		}
	}
}
