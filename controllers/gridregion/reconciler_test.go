package gridregion

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestStatus: a region is Valid, and in use by the grids that name it, with whether their logs have it.
func TestStatus(t *testing.T) {
	cfg := envtest.Config(t)
	cl, writes := envtest.Client(t, cfg), envtest.Writes()
	r := &Reconciler{Client: envtest.Client(t, writes.Of(cfg)), Recorder: events.NewFakeRecorder(100), Clock: clocktesting.NewFakePassiveClock(time.Unix(1.8e9, 0))}
	g := &api.GridRegion{ObjectMeta: metav1.ObjectMeta{Name: "quotes", Namespace: envtest.Namespace(t, cl, "region-")}, Spec: api.GridRegionSpec{Region: "last_quotes"}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(kind, want, text string, grids ...api.RegionGrid) {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
		must(err)
		must(cl.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		c := meta.FindStatusCondition(g.Status.Conditions, kind)
		if c == nil || string(c.Status)+"/"+c.Reason != want || !strings.Contains(c.Message, text) || g.Status.ObservedGeneration != g.Generation {
			t.Errorf("%s is %+v, want %s: … %s", kind, c, want, text)
		}
		if len(g.Status.Grids) != len(grids) || len(grids) > 0 && g.Status.Grids[0] != grids[0] {
			t.Errorf("grids are %+v, want %+v", g.Status.Grids, grids)
		}
	}
	must(cl.Create(t.Context(), g))
	run(api.ConditionValid, "True/Accepted", "region last_quotes")
	run(api.ConditionInUse, "False/Unused", "no OrderGrid")
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: g.Namespace}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept},
		Regions: &api.RegionsSpec{GridRegions: []api.RegionReference{{Name: "quotes"}}}}}
	must(cl.Create(t.Context(), grid))
	run(api.ConditionInUse, "True/InUse", "trades", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionUnknown})
	if reqs := regionsOf(context.Background(), grid); len(reqs) != 1 || reqs[0].Name != "quotes" {
		t.Errorf("a grid is for %v", reqs)
	}
	before := grid.DeepCopy()
	meta.SetStatusCondition(&grid.Status.Conditions, metav1.Condition{Type: api.ConditionRegionsLoaded, Status: metav1.ConditionTrue, Reason: "Loaded", ObservedGeneration: grid.Generation})
	if !namesOthers.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: grid}) || namesOthers.Update(event.UpdateEvent{ObjectOld: grid, ObjectNew: grid.DeepCopy()}) {
		t.Error("the watch lets through another change than that of regions")
	}
	must(cl.Status().Update(t.Context(), grid))
	run(api.ConditionInUse, "True/InUse", "", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue})
	writes.Forget()
	run(api.ConditionInUse, "True/InUse", "", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue})
	if w := writes.All(); len(w) > 0 {
		t.Errorf("a second pass writes %v", w)
	}
	must(cl.Delete(t.Context(), grid))
	run(api.ConditionInUse, "False/Unused", "")
}

// TestRefused: what no node takes is not Valid, also if an API server of before has let it in.
func TestRefused(t *testing.T) {
	c := valid(&api.GridRegion{ObjectMeta: metav1.ObjectMeta{Name: "My-Region"}})
	if c.Status != metav1.ConditionFalse || c.Reason != reasonRefused || !strings.Contains(c.Message, `name is "My-Region"`) {
		t.Errorf("%+v", c)
	}
}
