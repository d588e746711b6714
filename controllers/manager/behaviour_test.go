package manager

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noOps are the requests of a reconcile without changes.
//
// A grid and a probe are read from the cache: no request. A drill is read from the API server, once: an old status
// would repeat a fault, and the cache cannot tell that it is current.
var noOps = []struct {
	controller string
	wake       func(b *bench, w *world, n int)
	want       []string
}{
	// Annotations of a grid trigger no reconcile; its pods do. Those of links, gateways and functions trigger none either.
	{"ordergrid", func(b *bench, w *world, n int) { b.touch(&corev1.Pod{ObjectMeta: b.meta("rtd-s1-0")}, n) }, nil},
	{"orderprobe", func(b *bench, w *world, n int) { b.touch(w.probe, n) }, nil},
	{"failoverdrill", func(b *bench, w *world, n int) { b.touch(w.drill, n) }, []string{"GET /apis/ordergrid.dev/v1alpha1/namespaces/NS/failoverdrills/move"}},
}

// touch changes an object in a way that triggers a reconcile without effect.
func (b *bench) touch(o client.Object, n int) {
	b.t.Helper()
	b.patch(o, fmt.Sprintf(`{"metadata":{"annotations":{"test.example/touched":"%d"}}}`, n))
}

// TestNoOp counts the operator's requests to the API server when it reconciles an unchanged object.
func TestNoOp(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	w := b.steady()
	for _, test := range noOps {
		for n := range 5 {
			got := b.wake(test.controller, 1, func() { test.wake(b, w, n) })
			if want := strings.ReplaceAll(strings.Join(test.want, "\n"), "NS", b.namespace); strings.Join(got, "\n") != want {
				t.Errorf("%s, reconcile %d: %d requests\n%s\nwant %d\n%s", test.controller, n, len(got), strings.Join(got, "\n"), len(test.want), want)
			}
		}
	}
}

// TestRestart: a restarted operator writes nothing; so no condition flaps and no lastTransitionTime moves.
func TestRestart(t *testing.T) {
	b := newBench(t)
	stop := b.operator()
	b.steady()
	stop()
	before, ran := b.versions(), reconciles(t)
	b.requests.Forget()
	defer b.operator()()
	b.quiet()
	for controller, n := range ran {
		if reconciles(t)[controller] == n {
			t.Errorf("%s has not reconciled since the restart", controller)
		}
	}
	if after := b.versions(); after != before {
		t.Errorf("objects before the restart\n%s\nand after it\n%s", before, after)
	}
	for _, request := range b.requests.All() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("the operator wrote after its restart: %s", request)
		}
	}
}

// TestTwoOperators: two run at once, as when a Lease is lost and not noticed. The result is the same as of one; both
// revert foreign changes, and then neither writes.
func TestTwoOperators(t *testing.T) {
	b := newBench(t)
	defer b.operator()()
	defer b.operator()()
	w := b.steady()
	b.wantStill(w)

	set := &appsv1.StatefulSet{ObjectMeta: b.meta("rtd-s0")}
	b.patch(set, `{"spec":{"replicas":7}}`)
	service := &corev1.Service{ObjectMeta: b.meta("rtd-client")}
	if err := b.client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	b.until(set, "the number of replicas is reverted", func() bool { return ptr.Deref(set.Spec.Replicas, 0) == w.grid.Spec.Replicas })
	b.there("the Service is back", service)
	b.quiet()
	b.wantStill(w)

	var pods corev1.PodList
	if err := b.client.List(t.Context(), &pods, client.InNamespace(b.namespace)); err != nil || len(pods.Items) != 4 {
		t.Errorf("%d pods, error %v; want the 4 of the grid: two operators evict none", len(pods.Items), err)
	}
}

// wantStill checks that a reconcile of everything by both operators writes nothing.
func (b *bench) wantStill(w *world) {
	b.t.Helper()
	for n := range 3 {
		for _, test := range noOps {
			var before string
			got := b.wake(test.controller, 2, func() {
				test.wake(b, w, n)
				before = b.versions()
			})
			for _, request := range got {
				if !strings.HasPrefix(request, "GET ") {
					b.t.Errorf("%s, %d: %s", test.controller, n, request)
				}
			}
			if after := b.versions(); after != before {
				b.t.Errorf("%s, %d: objects were\n%s\nand are\n%s", test.controller, n, before, after)
			}
		}
	}
}
