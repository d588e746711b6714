package gridlink

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestLinkRuns: a link waits for its grid, then has a Deployment of its own, and its status is what the pod reports.
func TestLinkRuns(t *testing.T) {
	cfg := envtest.Config(t)
	writes := envtest.Writes()
	cl := envtest.Client(t, cfg)
	observed := envtest.Client(t, writes.Of(cfg))
	namespace := envtest.Namespace(t, cl, "link-")
	body := page(`{"partition":"p0","open":true,"lagSeconds":75}`)
	status := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	defer status.Close()
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Client: observed, Live: observed, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(time.Unix(1.8e9, 0)), Defaults: testDefaults,
		Links: &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", status.Listener.Addr().String()) }}}}
	link := aLink()
	link.ObjectMeta = metav1.ObjectMeta{Name: "to-b", Namespace: namespace}
	if err := cl.Create(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	run := func(kind, want string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(link)}); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(link), link); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(link.Status.Conditions, kind); c == nil || string(c.Status)+"/"+c.Reason != want {
			t.Errorf("%s is %+v, want %s", kind, c, want)
		}
	}
	run(api.ConditionConnected, "False/GridNotFound")
	envtest.WantEvent(t, recorder.Events, "Warning GridNotFound")
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: namespace}, Spec: api.OrderGridSpec{
		Sinks: []api.SinkSpec{{Name: "link", Type: api.SinkExternal}}, Security: api.SecuritySpec{TLS: &api.TLSSpec{Clients: []string{"to-b"}}}}}
	if err := cl.Create(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	run(api.ConditionConnected, "Unknown/NoAnswer")
	d := &appsv1.Deployment{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "to-b-link"}, d); err != nil || !metav1.IsControlledBy(d, link) {
		t.Fatalf("Deployment %v, owners %v", err, d.OwnerReferences)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "to-b-link-0", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	if err := cl.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "192.0.2.1", []corev1.PodIP{{IP: "192.0.2.1"}}
	if err := cl.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	run(api.ConditionConnected, "True/Connected")
	run(api.ConditionLagging, "True/Behind")
	if link.Status.Lag == nil || link.Status.Lag.Seconds != 50 || link.Status.From != "trades" || link.Status.Open != 1 {
		t.Errorf("status is %+v", link.Status)
	}
	writes.Forget()
	run(api.ConditionLagging, "True/Behind")
	if w := writes.All(); len(w) != 0 {
		t.Errorf("writes when nothing has changed: %v", w)
	}
	link.Spec.NetworkPolicy = api.NetworkPolicyNone
	if err := cl.Update(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	run(api.ConditionConnected, "True/Connected")
	policy := &networkingv1.NetworkPolicy{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "to-b-link"}, policy); err != nil || len(policy.Spec.PodSelector.MatchExpressions) != 1 || len(policy.Spec.Egress) != 0 {
		t.Errorf("the policy that is not used: %v %+v", err, policy.Spec)
	}
	if err := cl.Delete(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	run(api.ConditionConnected, "False/GridNotFound")
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Errorf("the pod of a link whose grid is gone: %v", err)
	}
}
