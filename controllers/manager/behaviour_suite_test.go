package manager

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/gridlink"
	"github.com/ordergrid/ordergrid/controllers/ordergateway"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/controllers/orderprobe"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// bench runs whole operators, as assembled by main, on a real API server, and counts their requests.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
	requests  *envtest.Requests // except watches, which last
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cl := envtest.Client(t, envtest.Config(t))
	ends := func(req *http.Request) bool { return req.URL.Query().Get("watch") == "" }
	return &bench{t: t, client: cl, namespace: envtest.Namespace(t, cl, "operator-"), requests: &envtest.Requests{Keep: ends}}
}

// operator runs one, without leader election, until stop is called.
func (b *bench) operator() (stop func()) {
	b.t.Helper()
	mgr, err := New(b.requests.Of(envtest.Config(b.t)), Options{
		MetricsAddress: "0", HealthAddress: "0", Workers: 4, Namespaces: []string{b.namespace}, PodTemplateAllow: []string{b.namespace + "=Capability", b.namespace + "=PrivilegeEscalation"}, LeaderElectionNamespace: b.namespace, shareProcess: true,
		Grid: ordergrid.Defaults{Image: "grid-node:test"}, Probe: orderprobe.Defaults{Image: "order-probe:test"},
		Link: gridlink.Defaults{Image: "grid-link:test"}, Gateway: ordergateway.Defaults{Image: "order-gateway:test"}, Drill: failoverdrill.Defaults{Namespaces: []string{b.namespace}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return envtest.Operate(b.t, mgr)
}

// world is a grid that serves, a probe that has failed, a drill that was aborted, a link and a gateway that wait for
// grids, and a function that is valid: all steady.
type world struct {
	grid  *api.OrderGrid
	probe *api.OrderProbe
	drill *api.FailoverDrill
	link  *api.GridLink
	door  *api.OrderGateway
	code  *api.GridFunction
	keyed *api.GridRegion
}

// steady has the running operators reconcile a world, and waits until they are quiet.
func (b *bench) steady() *world {
	b.t.Helper()
	w := &world{
		grid: &api.OrderGrid{ObjectMeta: b.meta("rtd"), Spec: api.OrderGridSpec{Shards: 2, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}},
		probe: &api.OrderProbe{ObjectMeta: b.meta("pair"), Spec: api.OrderProbeSpec{
			GridRef: api.GridReference{Name: "rtd"}, Scenario: api.ScenarioPair}},
		drill: &api.FailoverDrill{ObjectMeta: b.meta("move"), Spec: api.FailoverDrillSpec{
			GridRef: api.GridReference{Name: "rtd"}, Faults: []api.DrillFault{{Name: "it", Type: api.FaultHandOver}}}},
		link: &api.GridLink{ObjectMeta: b.meta("to-b"), Spec: api.GridLinkSpec{
			From: api.LinkEnd{GridRef: &api.GridReference{Name: "rtd"}}, To: api.LinkEnd{GridRef: &api.GridReference{Name: "not-there"}}}},
		door: &api.OrderGateway{ObjectMeta: b.meta("street"), Spec: api.OrderGatewaySpec{
			GridRef:      api.GridReference{Name: "not-there"},
			Listeners:    []api.GatewayListener{{Name: "fix", Protocol: api.GatewayFIX, Port: 7440, Insecure: api.InsecureAccept}},
			SessionsFrom: &api.GatewaySessions{Secret: &api.GatewayFile{Name: "sessions", Key: "fix.json"}}}},
		keyed: &api.GridRegion{ObjectMeta: b.meta("positions")},
		code: &api.GridFunction{ObjectMeta: b.meta("audit"), Spec: api.GridFunctionSpec{Kind: api.FunctionPost,
			Module: api.FunctionModule{ConfigMap: &api.ConfigMapFile{Name: "modules", Key: "audit.wasm"}, SHA256: fmt.Sprintf("%x", sha256.Sum256(examples.AuditTrail))}}},
	}
	b.create(&corev1.ConfigMap{ObjectMeta: b.meta("modules"), BinaryData: map[string][]byte{"audit.wasm": examples.AuditTrail}})
	b.create(w.code)
	b.create(w.keyed)
	b.create(w.grid)
	b.until(w.grid, "the grid has its objects", func() bool { return w.grid.Status.Shards == 2 })
	envtest.Serve(b.t, b.client, w.grid)
	b.until(w.grid, "the grid serves", func() bool {
		return w.grid.Status.ReadyShards == 2 && is(w.grid.Status.Conditions, api.ConditionRedundant) && !is(w.grid.Status.Conditions, api.ConditionProgressing)
	})
	b.create(w.probe)
	b.create(w.drill)
	b.create(w.link)
	b.create(w.door)
	channel := &corev1.ConfigMap{ObjectMeta: b.meta("pair-0")}
	b.there("the probe has its Job", &batchv1.Job{ObjectMeta: b.meta("pair")})
	b.there("the probe has its channel", channel)
	b.patch(channel, `{"data":{"error":"no route to the grid"}}`)
	b.until(w.probe, "the probe has failed", func() bool { return is(w.probe.Status.Conditions, api.ConditionFailed) })
	b.there("the drill has its recorder", &batchv1.Job{ObjectMeta: b.meta("move-recorder")})
	b.patch(w.drill, `{"spec":{"state":"Abort"}}`)
	b.until(w.drill, "the drill is over", func() bool { return is(w.drill.Status.Conditions, api.ConditionFailed) })
	b.until(w.link, "the link has conditions", func() bool { return len(w.link.Status.Conditions) > 0 })
	b.until(w.code, "the function is valid", func() bool { return is(w.code.Status.Conditions, api.ConditionValid) })
	b.until(w.door, "the gateway has conditions", func() bool { return len(w.door.Status.Conditions) > 0 })
	b.quiet()
	return w
}

func is(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
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

func (b *bench) patch(o client.Object, data string) {
	b.t.Helper()
	if err := b.client.Patch(b.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(data))); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) there(what string, o client.Object) {
	b.t.Helper()
	b.until(o, what, func() bool { return true })
}

// until reads an object until it satisfies a condition.
func (b *bench) until(o client.Object, what string, ok func() bool) {
	b.t.Helper()
	envtest.Eventually(b.t, what, func(ctx context.Context) error {
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !ok() {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
}

// quiet waits until the operators have neither reconciled nor sent requests for longer than the retry delay after a
// conflict, which is two seconds.
func (b *bench) quiet() {
	b.t.Helper()
	before, calm := "", 0
	envtest.Eventually(b.t, "the operators are quiet", func(context.Context) error {
		now := fmt.Sprint(reconciles(b.t), len(b.requests.All()))
		if calm++; now != before {
			before, calm = now, 0
		}
		if calm < 60 { // of 50 ms each
			return errors.New(now)
		}
		return nil
	})
}

// reconciles is how often each controller of this process has reconciled.
func reconciles(t *testing.T) map[string]int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" {
					out[l.GetValue()] += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return out
}

// wake has each of the operators reconcile one object, and returns their requests for it.
func (b *bench) wake(controller string, operators int, wake func()) []string {
	b.t.Helper()
	before := reconciles(b.t)[controller]
	b.requests.Forget()
	wake()
	envtest.Eventually(b.t, controller+" has reconciled", func(context.Context) error {
		if n := reconciles(b.t)[controller] - before; n < operators {
			return fmt.Errorf("%d times, of %d", n, operators)
		}
		return nil
	})
	time.Sleep(200 * time.Millisecond) // an unexpected request has no event to wait for
	return b.requests.All()
}

// versions is the resourceVersion of everything in the namespace: a write of anything, including status and events,
// changes it.
func (b *bench) versions() string {
	b.t.Helper()
	var out []string
	for _, list := range []client.ObjectList{
		&api.OrderGridList{}, &api.GridPartitionList{}, &api.OrderProbeList{}, &api.FailoverDrillList{}, &api.GridLinkList{}, &api.OrderGatewayList{}, &api.GridFunctionList{}, &api.GridRegionList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{},
		&corev1.ConfigMapList{}, &corev1.EventList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
		&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		if err := b.client.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, item := range items {
			o := item.(client.Object)
			out = append(out, fmt.Sprintf("%T %s %s", o, o.GetName(), o.GetResourceVersion()))
		}
	}
	return strings.Join(out, "\n")
}
