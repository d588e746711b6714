package orderprobe

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/workload"
	"github.com/ordergrid/ordergrid/internal/envtest"
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
	writes    *envtest.Requests
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cfg := envtest.Config(t)
	b := &bench{t: t, client: envtest.Client(t, cfg), writes: envtest.Writes()}
	b.namespace = envtest.Namespace(t, b.client, "probe-")
	observed := envtest.Client(t, b.writes.Of(cfg))
	recorder := events.NewFakeRecorder(100)
	b.events = recorder.Events
	b.reconcile = &Reconciler{Client: observed, Live: observed, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(now), Defaults: testDefaults}
	return b
}

func (b *bench) run(probe *api.OrderProbe) []string {
	b.t.Helper()
	b.writes.Forget()
	if _, err := b.reconcile.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(probe)}); err != nil {
		b.t.Fatalf("reconcile: %v", err)
	}
	b.get(probe)
	return b.writes.All()
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
	grid := &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: api.OrderGridSpec{Replicas: replicas, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
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

// say writes a key of a pod's ConfigMap with the pod's own code and permissions.
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
	if err := envtest.Client(b.t, cfg).Patch(b.t.Context(), m, client.RawPatch("application/merge-patch+json", data)); err != nil {
		b.t.Fatal(err)
	}
}

// result is the measurement of a probe: every order acknowledged once after 100 us.
func result(t *testing.T, plan scenario.Plan, index int) string {
	t.Helper()
	p := report.Probe{Name: letter(index), Index: index, Partition: fmt.Sprintf("p%d", plan.Partition(index)), Copies: []string{"a", "b"}}
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
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: workload.ContainerName, State: corev1.ContainerState{
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

// wantFinished: an hour later nothing is done any more, whatever is left of the run.
func (b *bench) wantFinished(probe *api.OrderProbe) {
	b.t.Helper()
	b.reconcile.Clock = clocktesting.NewFakePassiveClock(now.Add(time.Hour))
	b.wantNoWrites(probe, "the run has ended")
}

// wantOwned: everything of a probe is deleted with it.
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
	envtest.WantEvent(b.t, b.events, prefix)
}
