package ordergateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// bench is a gateway on a real API server, with pods that answer what a test has them.
type bench struct {
	*testing.T
	cl        client.Client
	r         *Reconciler
	namespace string
	gateway   *api.OrderGateway
	page      atomic.Pointer[string]
	writes    *envtest.Requests
	events    chan string
}

func (b *bench) run(kind, want string) {
	b.Helper()
	if _, err := b.r.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.gateway)}); err != nil {
		b.Fatal(err)
	}
	b.get(b.gateway, b.gateway.Name)
	if c := meta.FindStatusCondition(b.gateway.Status.Conditions, kind); c == nil || string(c.Status)+"/"+c.Reason != want {
		b.Errorf("%s is %+v, want %s", kind, c, want)
	}
}

func (b *bench) get(o client.Object, name string) {
	b.Helper()
	if err := b.cl.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, o); err != nil {
		b.Fatal(err)
	}
}

// runs gives the Deployment a pod that serves.
func (b *bench) runs(d *appsv1.Deployment) {
	b.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "street-gateway-0", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	if err := b.cl.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "192.0.2.1", []corev1.PodIP{{IP: "192.0.2.1"}}
	if err := b.cl.Status().Update(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	if err := b.cl.Status().Update(b.Context(), d); err != nil {
		b.Fatal(err)
	}
}

func newBench(t *testing.T) *bench {
	cfg := envtest.Config(t)
	writes := envtest.Writes()
	b := &bench{T: t, cl: envtest.Client(t, cfg), writes: writes}
	observed := envtest.Client(t, writes.Of(cfg))
	b.namespace = envtest.Namespace(t, b.cl, "gateway-")
	text := page("")
	b.page.Store(&text)
	status := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(*b.page.Load())) }))
	t.Cleanup(status.Close)
	recorder := events.NewFakeRecorder(100)
	b.events = recorder.Events
	b.r = &Reconciler{Client: observed, Live: observed, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(time.Unix(1.8e9, 0)), Defaults: testDefaults,
		Pods: &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", status.Listener.Addr().String()) }}}}
	b.gateway = aGateway()
	b.gateway.ObjectMeta = metav1.ObjectMeta{Name: "street", Namespace: b.namespace}
	if err := b.cl.Create(t.Context(), b.gateway); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGatewayRuns: a gateway waits for its grid, then has objects of its own, and its status is what the pods report.
func TestGatewayRuns(t *testing.T) {
	b := newBench(t)
	b.run(api.ConditionReady, "False/GridNotFound")
	envtest.WantEvent(t, b.events, "Warning GridNotFound")
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: b.namespace}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{TLS: &api.TLSSpec{}}}}
	if err := b.cl.Create(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	b.run(api.ConditionReady, "False/PodsNotReady")
	d := &appsv1.Deployment{}
	b.get(d, "street-gateway")
	for _, o := range []client.Object{d, &corev1.Service{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}} {
		if b.get(o, "street-gateway"); !metav1.IsControlledBy(o, b.gateway) {
			t.Errorf("%T has owners %v", o, o.GetOwnerReferences())
		}
	}
	b.runs(d)
	b.run(api.ConditionReady, "True/Serving")
	b.run(api.ConditionGridReachable, "True/Reachable")
	if s := b.gateway.Status; s.Sessions != 10 || s.Configured != 20 || s.Replicas != 1 || s.ReadyReplicas != 1 {
		t.Errorf("status is %+v", s)
	}
	b.writes.Forget()
	b.run(api.ConditionSessionsRefused, "False/NoneRefused")
	if w := b.writes.All(); len(w) != 0 {
		t.Errorf("writes when nothing has changed: %v", w)
	}
	text := refusedPage(`{"reason":"Credentials","count":3,"session":"FIX.4.4:BANK->GRID","text":"not those","last":"2026-01-02T03:04:05Z"}`)
	b.page.Store(&text)
	b.run(api.ConditionSessionsRefused, "True/CredentialsWrong")
	envtest.WantEvent(t, b.events, "Warning CredentialsWrong")
}

// TestGatewayChanges: what spec no longer asks for is undone as far as the operator may, and a gateway keeps its pods
// when its grid is gone.
func TestGatewayChanges(t *testing.T) {
	b := newBench(t)
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: b.namespace}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	if err := b.cl.Create(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	b.run(api.ConditionReady, "False/PodsNotReady")
	d := &appsv1.Deployment{}
	b.get(d, "street-gateway")
	b.runs(d)
	b.run(api.ConditionReady, "True/Serving")

	b.gateway.Spec.NetworkPolicy = api.NetworkPolicyNone
	b.gateway.Spec.Service.Type = corev1.ServiceTypeClusterIP
	if err := b.cl.Update(t.Context(), b.gateway); err != nil {
		t.Fatal(err)
	}
	b.run(api.ConditionGridReachable, "True/Reachable")
	policy, service := &networkingv1.NetworkPolicy{}, &corev1.Service{}
	if b.get(policy, "street-gateway"); len(policy.Spec.PodSelector.MatchExpressions) != 1 || len(policy.Spec.Egress) != 0 {
		t.Errorf("the policy that is not used: %+v", policy.Spec)
	}
	if b.get(service, "street-gateway"); service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("the Service: %+v", service.Spec)
	}
	for _, pods := range []int32{3, 0} {
		scale := &api.OrderGateway{}
		b.get(scale, b.gateway.Name)
		scale.Spec.Replicas = &pods
		if err := b.cl.Update(t.Context(), scale); err != nil {
			t.Fatal(err)
		}
		b.run(api.ConditionReady, map[int32]string{3: "False/PodsNotReady", 0: "False/ScaledToZero"}[pods])
		if b.get(d, "street-gateway"); *d.Spec.Replicas != pods {
			t.Errorf("the Deployment has %d replicas", *d.Spec.Replicas)
		}
	}
	if err := b.cl.Delete(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	b.run(api.ConditionReady, "False/GridNotFound")
	b.get(d, "street-gateway")
}
