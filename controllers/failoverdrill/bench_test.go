package failoverdrill

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) {
	chaos, err := crds.Objects(context.Background(), envtest.Root(), "PodChaos", "NetworkChaos", "StressChaos", "TimeChaos", "IOChaos")
	if err != nil {
		panic(err)
	}
	os.Exit(envtest.Run(m, envtest.WithMoreCRDs(chaos...)))
}

var testDefaults = Defaults{Image: "ordergrid.dev/order-probe:test", Namespaces: []string{AllNamespaces}}

// bench is a reconciler on a real API server with Chaos Mesh's real CRDs, in a namespace of its own. The test plays the
// rest of a cluster: kubelets, Chaos Mesh's controller, and the recorder's HTTP.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
	clock     *clocktesting.FakePassiveClock
	gridName  string
	// lasts is set where something real takes part: then time is real. killed is called for every pod that is killed.
	lasts    bool
	killed   func(pod string)
	rec      *Reconciler
	recorder *fakeRecorder
	mesh     *meshPlayer
	events   chan string
	writes   *envtest.Requests
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel() // most of the time goes into waiting for the API server
	b := &bench{t: t, client: envtest.Client(t, envtest.Config(t)), writes: envtest.Writes(), clock: clocktesting.NewFakePassiveClock(time.Now()), gridName: "rtd"}
	b.namespace = envtest.Namespace(t, b.client, "drill-")
	b.mesh = &meshPlayer{b: b}
	b.recorder = newFakeRecorder(b)
	b.mesh.install()
	b.start()
	return b
}

// start is an operator that restarts: it has no state.
func (b *bench) start() {
	observed := envtest.Client(b.t, b.writes.Of(envtest.Config(b.t)))
	recorder := events.NewFakeRecorder(4096)
	b.events = recorder.Events
	b.rec = &Reconciler{
		Client: observed, Live: observed, Recorder: recorder, Clock: b.clock, Defaults: testDefaults,
		Injectors:   []inject.Injector{&inject.ChaosMesh{Client: observed, ProbeImage: testDefaults.Image}, &inject.Grid{Client: observed}},
		Witness:     &witness.Observer{Client: observed, Nodes: nodestatus.NewClient(time.Second, nil)},
		Keys:        StoredKey{Client: observed, Live: observed, Namespace: b.namespace},
		RecorderURL: func(*corev1.Pod) string { return b.recorder.url },
	}
}

// run reconciles once, lets the cluster do its part, and advances the clock to the next requested reconcile. It returns
// what was written.
func (b *bench) run(d *api.FailoverDrill) []string {
	b.t.Helper()
	b.writes.Forget()
	res, err := b.rec.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	if err != nil {
		b.t.Logf("reconcile: %v", err)
		res.RequeueAfter = pollStep
	}
	writes := b.writes.All()
	b.play()
	if b.lasts {
		time.Sleep(min(res.RequeueAfter, time.Second))
		b.clock.SetTime(time.Now())
	} else {
		b.clock.SetTime(b.clock.Now().Add(max(res.RequeueAfter, 10*time.Millisecond)))
	}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(d), d); err != nil && !apierrors.IsNotFound(err) {
		b.t.Fatal(err)
	}
	return writes
}

// play is the rest of the cluster.
func (b *bench) play() {
	b.playKubelet()
	b.mesh.play()
}

// until runs until done returns true.
func (b *bench) until(d *api.FailoverDrill, what string, done func() bool) {
	b.t.Helper()
	for range 400 {
		if done() {
			return
		}
		b.run(d)
	}
	b.t.Fatalf("%s: not after 400 reconciles; status %s", what, jsonOf(d.Status))
}

// untilStep runs until the step is in the state.
func (b *bench) untilStep(d *api.FailoverDrill, index int, state api.DrillStepState) *api.DrillStep {
	b.t.Helper()
	find := func() *api.DrillStep { return stepBefore(d, int32(index)) }
	b.until(d, "step in state "+string(state), func() bool { s := find(); return s != nil && s.State == state })
	return find()
}

func (b *bench) untilOver(d *api.FailoverDrill) {
	b.t.Helper()
	b.until(d, "the drill is over", func() bool { return over(d) })
}

func (b *bench) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: b.namespace}
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	if err := b.client.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) drill(name string, change func(*api.FailoverDrillSpec)) *api.FailoverDrill {
	b.t.Helper()
	d := &api.FailoverDrill{ObjectMeta: b.meta(name)}
	d.Spec.GridRef.Name = b.gridName
	d.Spec.SteadyState.Calm.Duration, d.Spec.SteadyState.Settle.Duration = 2*time.Second, time.Second
	d.Spec.SteadyState.RedundantWithin.Duration = time.Minute
	change(&d.Spec)
	b.create(d)
	return d
}

// killing and failing are the two kinds of fault that the tests use: momentary and lasting.
func killing(name string) api.DrillFault {
	return api.DrillFault{Name: name, Type: api.FaultPodKill}
}

func failing(name string, d time.Duration) api.DrillFault {
	return api.DrillFault{Name: name, Type: api.FaultPodFailure, Duration: &metav1.Duration{Duration: d}}
}

func faults(list ...api.DrillFault) func(*api.FailoverDrillSpec) {
	return func(s *api.FailoverDrillSpec) { s.Faults = list }
}

// want is the condition, its reason, and a part of its message.
func (b *bench) want(d *api.FailoverDrill, kind string, status metav1.ConditionStatus, reason, text string) {
	b.t.Helper()
	c := meta.FindStatusCondition(d.Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		b.t.Errorf("condition %s is %+v; want %s, %s, %q", kind, c, status, reason, text)
	}
}

func (b *bench) wantEvent(prefix string) {
	b.t.Helper()
	envtest.WantEvent(b.t, b.events, prefix)
}
