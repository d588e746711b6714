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
	run(api.ConditionInUse, "True/InUse", "trades", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionUnknown, Writes: api.RegionWritesUnknown})
	if reqs := regionsOf(context.Background(), grid); len(reqs) != 1 || reqs[0].Name != "quotes" {
		t.Errorf("a grid is for %v", reqs)
	}
	before := grid.DeepCopy()
	meta.SetStatusCondition(&grid.Status.Conditions, metav1.Condition{Type: api.ConditionRegionsLoaded, Status: metav1.ConditionTrue, Reason: "Loaded", ObservedGeneration: grid.Generation})
	if !namesOthers.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: grid}) || namesOthers.Update(event.UpdateEvent{ObjectOld: grid, ObjectNew: grid.DeepCopy()}) {
		t.Error("the watch lets through another change than that of regions")
	}
	must(cl.Status().Update(t.Context(), grid))
	run(api.ConditionInUse, "True/InUse", "", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue, Writes: api.RegionWritesUnknown})
	writes.Forget()
	run(api.ConditionInUse, "True/InUse", "", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue, Writes: api.RegionWritesUnknown})
	if w := writes.All(); len(w) > 0 {
		t.Errorf("a second pass writes %v", w)
	}
	run(api.ConditionAcceptsWrites, "Unknown/NotReported", "not every partition of OrderGrid trades", g.Status.Grids...)
	must(cl.Get(t.Context(), client.ObjectKeyFromObject(grid), grid))
	before = grid.DeepCopy()
	grid.Status.Regions = []api.RegionUse{{Name: "last_quotes", Entries: 120, Bytes: 16000, Writes: api.RegionWritesRefused, Message: "no memory for more in partitions p1"}, {Name: "quotes", Entries: 1, Writes: api.RegionWritesTaken}}
	if !namesOthers.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: grid}) {
		t.Error("the watch does not let through what the regions have")
	}
	must(cl.Status().Update(t.Context(), grid))
	run(api.ConditionAcceptsWrites, "False/Full", "OrderGrid trades: no memory for more in partitions p1", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue, Entries: 120, Bytes: 16000, Writes: api.RegionWritesRefused})
	if g.Status.Entries != 120 || g.Status.Bytes != 16000 {
		t.Errorf("%d entries of %d bytes", g.Status.Entries, g.Status.Bytes)
	}
	grid.Status.Regions[0].Writes, grid.Status.Regions[0].Message = api.RegionWritesTaken, ""
	must(cl.Status().Update(t.Context(), grid))
	run(api.ConditionAcceptsWrites, "True/Taken", "", api.RegionGrid{Name: "trades", RegionsLoaded: metav1.ConditionTrue, Entries: 120, Bytes: 16000, Writes: api.RegionWritesTaken})
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

// TestAcceptsWrites: one grid that refuses is enough, and True needs the word of all.
func TestAcceptsWrites(t *testing.T) {
	taken, unknown := api.RegionGrid{Name: "a", Writes: api.RegionWritesTaken}, api.RegionGrid{Name: "b", Writes: api.RegionWritesUnknown}
	for name, c := range map[string]struct {
		grids    []api.RegionGrid
		refusing []string
		want     string
	}{
		"unused":                   {nil, nil, "Unknown/Unused: no OrderGrid"},
		"taken":                    {[]api.RegionGrid{taken}, nil, "True/Taken: no partition refuses"},
		"one has not reported":     {[]api.RegionGrid{taken, unknown}, nil, "Unknown/NotReported: not every partition of OrderGrid b"},
		"one refuses":              {[]api.RegionGrid{taken, {Name: "c", Writes: api.RegionWritesRefused}}, []string{"OrderGrid c: why"}, "False/Full: changes are refused. OrderGrid c: why"},
		"refuses and not reported": {[]api.RegionGrid{unknown, {Name: "c", Writes: api.RegionWritesRefused}}, []string{"OrderGrid c: why"}, "False/Full: changes are refused"},
	} {
		if got := acceptsWrites(c.grids, c.refusing); !strings.HasPrefix(string(got.Status)+"/"+got.Reason+": "+got.Message, c.want) {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
