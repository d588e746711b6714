package failoverdrill

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// bench is a reconciler on a real API server with Chaos Mesh's real CRDs, in a namespace of its own. What runs in a
// cluster beside it, the test plays: kubelets, Chaos Mesh's controller, and the recorder's HTTP.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
	clock     *clocktesting.FakePassiveClock
	gridName  string
	// lasts is set where something real takes part: then time is what it is. killed is told of every pod that is killed.
	lasts    bool
	killed   func(pod string)
	rec      *Reconciler
	recorder *fakeRecorder
	mesh     *meshPlayer
	events   chan string
	mu       sync.Mutex
	writes   []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel() // most of the time goes into waiting for the API server
	b := &bench{t: t, client: mustClient(t, envtest.Config(t)), clock: clocktesting.NewFakePassiveClock(time.Now()), gridName: "rtd"}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "drill-"}}
	if err := b.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b.namespace = ns.Name
	b.mesh = &meshPlayer{b: b}
	b.recorder = newFakeRecorder(b)
	b.mesh.install()
	b.start()
	return b
}

// start is an operator that starts anew: it knows nothing.
func (b *bench) start() {
	recorded := rest.CopyConfig(envtest.Config(b.t))
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
	observed := mustClient(b.t, recorded)
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

// run reconciles once, lets the cluster do its part, and moves the clock to when the reconciler wants to look again. It
// gives what was written.
func (b *bench) run(d *api.FailoverDrill) []string {
	b.t.Helper()
	b.mu.Lock()
	b.writes = nil
	b.mu.Unlock()
	res, err := b.rec.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	if err != nil {
		b.t.Logf("reconcile: %v", err)
		res.RequeueAfter = pollStep
	}
	b.mu.Lock()
	writes := slices.Clone(b.writes)
	b.mu.Unlock()
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

// until runs until done says so.
func (b *bench) until(d *api.FailoverDrill, what string, done func() bool) {
	b.t.Helper()
	for range 400 {
		if done() {
			return
		}
		b.run(d)
	}
	b.t.Fatalf("%s: not after 400 looks; status %s", what, jsonOf(d.Status))
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

// killing and failing are the two kinds of fault that the tests use: over in a moment, and lasting.
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
