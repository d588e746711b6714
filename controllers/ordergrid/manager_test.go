package ordergrid

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestWatches runs the controller as the operator does, on a cache, without explicit reconciles: events of the grid's
// objects must trigger them. Then it restarts the operator, which must not write anything.
func TestWatches(t *testing.T) {
	b := newBench(t)
	stop := b.manager(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	condition := func(kind string, want metav1.ConditionStatus) func(context.Context) bool {
		return func(ctx context.Context) bool {
			if b.client.Get(ctx, client.ObjectKeyFromObject(grid), grid) != nil {
				return false
			}
			c := meta.FindStatusCondition(grid.Status.Conditions, kind)
			return c != nil && c.Status == want && grid.Status.ReadyShards == b.readyShards
		}
	}
	eventually(t, "the grid has its objects", condition(api.ConditionProgressing, metav1.ConditionTrue))
	b.readyShards = 1
	b.play(grid)
	eventually(t, "pods and partitions wake the controller", condition(api.ConditionRedundant, metav1.ConditionTrue))
	b.readyShards = 0
	b.setReady("rtd-s0-1", corev1.ConditionFalse)
	eventually(t, "a pod that is not ready wakes the controller", condition(api.ConditionAvailable, metav1.ConditionFalse))
	b.readyShards = 1
	b.setReady("rtd-s0-1", corev1.ConditionTrue)
	eventually(t, "a pod that is ready again wakes the controller", condition(api.ConditionAvailable, metav1.ConditionTrue))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rtd-client", Namespace: b.namespace}}
	if err := b.client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted Service is created again", func(ctx context.Context) bool {
		return b.client.Get(ctx, client.ObjectKeyFromObject(service), service) == nil
	})

	stop()
	b.writes.Forget()
	stop = b.manager(t)
	defer stop()
	eventually(t, "the restarted operator has reconciled", func(context.Context) bool { return b.reconciled.Load() > 0 })
	time.Sleep(200 * time.Millisecond) // a write that should not happen has no event to wait for
	if writes := b.writes.All(); len(writes) != 0 {
		t.Errorf("a restart of the operator made %d writes:\n%s", len(writes), strings.Join(writes, "\n"))
	}
}

// manager runs the controller until stop is called.
func (b *bench) manager(t *testing.T) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(b.writes.Of(envtest.Config(t)), ctrl.Options{
		Scheme:     envtest.Scheme(),
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.reconciled.Store(0)
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: &events.FakeRecorder{}, Clock: clock.RealClock{}, Nodes: b.nodes.client(), Defaults: testDefaults}
	if err := setup(mgr, 2, apply.RetryLimiter(), counting{r, b}); err != nil {
		t.Fatal(err)
	}
	return envtest.Operate(t, mgr)
}

// counting counts the passes, so that a test can wait for one without changes.
type counting struct {
	next *Reconciler
	b    *bench
}

func (c counting) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := c.next.Reconcile(ctx, req)
	c.b.reconciled.Add(1)
	return result, err
}
