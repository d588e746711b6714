package gridfunction

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// bench is a GridFunction on a real API server.
type bench struct {
	*testing.T
	cl     client.Client
	r      *Reconciler
	f      *api.GridFunction
	writes *envtest.Requests
	events chan string
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

func newBench(t *testing.T, kind api.FunctionKind, module []byte) *bench {
	cfg := envtest.Config(t)
	b := &bench{T: t, cl: envtest.Client(t, cfg), writes: envtest.Writes()}
	observed := envtest.Client(t, b.writes.Of(cfg))
	recorder := events.NewFakeRecorder(100)
	b.events = recorder.Events
	b.r = &Reconciler{Client: observed, Live: observed, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(time.Unix(1.8e9, 0))}
	b.f = &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Name: "limit", Namespace: envtest.Namespace(t, b.cl, "function-")},
		Spec: api.GridFunctionSpec{Kind: kind, Module: api.FunctionModule{ConfigMap: &api.ConfigMapFile{Name: "modules", Key: "f.wasm"}, SHA256: digest(module)}}}
	b.must(b.cl.Create(t.Context(), b.f))
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) configMap(content []byte) {
	b.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.f.Namespace, Name: "modules"}, BinaryData: map[string][]byte{"f.wasm": content}}
	if err := b.cl.Create(b.Context(), m); err != nil {
		b.must(b.cl.Update(b.Context(), m))
	}
}

func (b *bench) run(kind, want, text string) (again time.Duration) {
	b.Helper()
	result, err := b.r.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.f)})
	b.must(err)
	b.must(b.cl.Get(b.Context(), client.ObjectKeyFromObject(b.f), b.f))
	c := meta.FindStatusCondition(b.f.Status.Conditions, kind)
	if c == nil || string(c.Status)+"/"+c.Reason != want || !strings.Contains(c.Message, text) {
		b.Errorf("%s is %+v, want %s: … %s", kind, c, want, text)
	}
	return result.RequeueAfter
}

// TestValid: a function is Valid once its file is there, has its digest, and is loaded; a change of spec is checked anew.
func TestValid(t *testing.T) {
	b := newBench(t, api.FunctionPre, examples.RestrictedList)
	if again := b.run(api.ConditionValid, "False/FileNotFound", "there is no ConfigMap modules"); again == 0 {
		t.Error("a ConfigMap that is missing is not looked for again")
	}
	envtest.WantEvent(t, b.events, "Warning FileNotFound")
	if Checked(b.f) || b.f.Status.Module != nil {
		t.Errorf("status %+v", b.f.Status)
	}
	b.configMap(examples.FatFinger)
	if again := b.run(api.ConditionValid, "False/DigestDiffers", "has sha256 "+digest(examples.FatFinger)); again == 0 {
		t.Error("a file that is another one is not looked at again")
	}
	b.configMap(examples.RestrictedList)
	if again := b.run(api.ConditionValid, "True/Loadable", "is loaded as kind Pre"); again != 0 {
		t.Errorf("a valid function is looked at again in %v", again)
	}
	envtest.WantEvent(t, b.events, "Normal Loadable")
	if m := b.f.Status.Module; !Checked(b.f) || m == nil || m.SHA256 != digest(examples.RestrictedList) || int(m.Bytes) != len(examples.RestrictedList) || b.f.Status.ObservedGeneration != b.f.Generation {
		t.Errorf("status %+v", b.f.Status)
	}
	b.writes.Forget()
	b.run(api.ConditionValid, "True/Loadable", "")
	if w := b.writes.All(); len(w) > 0 {
		t.Errorf("a second pass writes %v", w)
	}
	b.f.Spec.Module.SHA256 = digest(examples.FatFinger)
	b.must(b.cl.Update(t.Context(), b.f))
	if Checked(b.f) {
		t.Error("what was found out about the module of before is taken for the new one")
	}
	b.run(api.ConditionValid, "False/DigestDiffers", "Grids go on with what they were given")
	if b.f.Status.Module != nil {
		t.Errorf("status has the module of before: %+v", b.f.Status.Module)
	}
}

// TestModuleRefused: a module that no node would load is refused, and not looked at again before it changes.
func TestModuleRefused(t *testing.T) {
	b := newBench(t, api.FunctionPost, examples.FatFinger)
	b.configMap(examples.FatFinger)
	if again := b.run(api.ConditionValid, "False/ModuleRefused", `no export "og1_post"`); again != 0 {
		t.Errorf("it is looked at again in %v", again)
	}
}

// TestInUse: status names the grids that name the function, and what they call.
func TestInUse(t *testing.T) {
	b := newBench(t, api.FunctionPre, examples.RestrictedList)
	b.configMap(examples.RestrictedList)
	b.run(api.ConditionInUse, "False/Unused", "")
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: b.f.Namespace}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept},
		Callbacks: &api.CallbacksSpec{Pre: []api.CallbackReference{{Name: "limit"}}}}}
	b.must(b.cl.Create(t.Context(), grid))
	other := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "fills", Namespace: b.f.Namespace}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept},
		Callbacks: &api.CallbacksSpec{Post: []api.CallbackReference{{Name: "limit"}}}}}
	b.must(b.cl.Create(t.Context(), other))
	b.run(api.ConditionInUse, "True/InUse", "trades")
	if g := b.f.Status.Grids; len(g) != 1 || g[0] != (api.FunctionGrid{Name: "trades"}) {
		t.Errorf("grids %+v; a function of kind Post with the same name is another one", g)
	}
	if reqs := functionsOf(context.Background(), grid); len(reqs) != 1 || reqs[0].Name != "limit" {
		t.Errorf("a grid is for %v", reqs)
	}
	before := grid.DeepCopy()
	grid.Status.Functions = []api.GridFunctionUse{{Kind: api.FunctionPre, Name: "limit", SHA256: digest(examples.RestrictedList)}}
	if !callsOthers.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: grid}) || callsOthers.Update(event.UpdateEvent{ObjectOld: grid, ObjectNew: grid.DeepCopy()}) {
		t.Error("the watch lets through another change than that of functions")
	}
	b.must(b.cl.Status().Update(t.Context(), grid))
	grid.Spec.Callbacks = nil
	b.must(b.cl.Update(t.Context(), grid))
	b.run(api.ConditionInUse, "True/InUse", "trades")
	if g := b.f.Status.Grids; len(g) != 1 || g[0].SHA256 != digest(examples.RestrictedList) {
		t.Errorf("grids %+v; its pods still call it", g)
	}
	b.must(b.cl.Delete(t.Context(), grid))
	b.run(api.ConditionInUse, "False/Unused", "")
}
