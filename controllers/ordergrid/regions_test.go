package ordergrid

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/regionfile"
)

// regionGrid has regions.
func regionGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Regions = &api.RegionsSpec{Memory: resource.MustParse("256Mi"), GridRegions: []api.RegionReference{{Name: "positions"}, {Name: "quotes"}}}
	return grid
}

func gridRegion(name string, spec api.GridRegionSpec) *api.GridRegion {
	return &api.GridRegion{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// TestPlanRegions: the nodes are given the regions that they take, in the order of spec.regions.
func TestPlanRegions(t *testing.T) {
	quotes := gridRegion("quotes", api.GridRegionSpec{Region: "last_quotes", MaxBytes: ptr.To(resource.MustParse("64Mi")), Life: &metav1.Duration{Duration: 10 * time.Minute}})
	for name, c := range map[string]struct {
		found            []*api.GridRegion
		text             string
		missing, invalid string
	}{
		"both":       {[]*api.GridRegion{quotes, gridRegion("positions", api.GridRegionSpec{})}, `{"regions":[{"name":"positions"},{"name":"last_quotes","maxBytes":"64Mi","life":"10m0s"}]}`, "", ""},
		"none":       {nil, `{"regions":[]}`, "positions quotes", ""},
		"one":        {[]*api.GridRegion{quotes}, `{"regions":[{"name":"last_quotes","maxBytes":"64Mi","life":"10m0s"}]}`, "positions", ""},
		"two of one": {[]*api.GridRegion{gridRegion("quotes", api.GridRegionSpec{Region: "positions"}), gridRegion("positions", api.GridRegionSpec{})}, `{"regions":[{"name":"positions"}]}`, "", "it is region positions, as GridRegion positions is"},
		"no name":    {[]*api.GridRegion{gridRegion("quotes", api.GridRegionSpec{Region: "Q"}), gridRegion("positions", api.GridRegionSpec{})}, `{"regions":[{"name":"positions"}]}`, "", `GridRegion quotes: regions: name is "Q"`},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := planRegions("", regionGrid(), c.found, time.UnixMilli(5000))
			text := f.Plain().Text()
			for _, r := range f.Regions {
				if r.Source == nil || r.Source.SinceMs != 5000 {
					t.Errorf("%s has the source %v", r.Name, r.Source)
				}
			}
			if got := strings.Join(strings.Fields(strings.ReplaceAll(text, ": ", ":")), ""); got != c.text || strings.Join(s.missing, " ") != c.missing || !strings.Contains(strings.Join(s.invalid, " "), c.invalid) || (c.invalid == "") != (len(s.invalid) == 0) {
				t.Errorf("%s\n%+v\nwant %s, missing %q, invalid %q", got, s, c.text, c.missing, c.invalid)
			}
		})
	}
}

// TestRegionSources: later generations have the beginning of the ones before, a GridRegion made anew begins later, whatever the
// clock has, and an older one, of a cache that is behind, changes nothing.
func TestRegionSources(t *testing.T) {
	grid := regionGrid()
	grid.UID = "g"
	of := func(uid types.UID, generation int64, most string) *api.GridRegion {
		r := gridRegion("positions", api.GridRegionSpec{MaxBytes: ptr.To(resource.MustParse(most))})
		r.UID, r.Generation = uid, generation
		return r
	}
	before := ""
	for i, c := range []struct {
		g      *api.GridRegion
		now    int64
		most   string
		source string
		begins bool
	}{
		{of("a", 1, "1Mi"), 5000, "1Mi", "generation 1 of a, since 5000", true},
		{of("a", 3, "2Mi"), 6000, "2Mi", "generation 3 of a, since 5000", false},
		{of("a", 2, "1Mi"), 7000, "2Mi", "generation 3 of a, since 5000", false},
		{of("a", 3, "2Mi"), 7000, "2Mi", "generation 3 of a, since 5000", false},
		{of("a", 3, "3Mi"), 8000, "3Mi", "generation 3 of a, since 8000", true}, // as another release of the operator may make it
		{of("b", 1, "1Mi"), 100, "1Mi", "generation 1 of b, since 8001", true},
	} {
		f, s := planRegions(before, grid, []*api.GridRegion{c.g}, time.UnixMilli(c.now))
		if r := f.Regions[0]; r.MaxBytes != c.g.Spec.MaxBytes.Value() && c.most == c.g.Spec.MaxBytes.String() || resource.NewQuantity(r.MaxBytes, resource.BinarySI).String() != c.most ||
			r.Source.String() != c.source || (len(s.begins) == 1) != c.begins {
			t.Errorf("step %d: %+v with %v, %d begin; want %s, %s", i, r, r.Source, len(s.begins), c.most, c.source)
		}
		before = f.Text()
	}
	if f, _ := planRegions("edited", grid, []*api.GridRegion{of("b", 1, "1Mi")}, time.UnixMilli(9000)); f.Regions[0].Source.SinceMs != 9000 {
		t.Errorf("behind a file that was edited: %v", f.Regions[0].Source)
	}
}

// TestRegionsCondition: the condition is of what the nodes report, and tells what to do.
func TestRegionsCondition(t *testing.T) {
	type nodes = map[string]*nodestatus.Regions
	loaded := func() *nodestatus.Regions {
		return &nodestatus.Regions{SHA256: "new", MemoryBytes: 256 << 20, Partitions: []nodestatus.PartitionRegions{{Partition: "p0"}, {Partition: "p1"}}}
	}
	for name, c := range map[string]struct {
		change     func(*observation, nodes)
		want, text string
	}{
		"none":           {func(o *observation, n nodes) { o.grid.Spec.Regions = nil; clear(n) }, "/", ""},
		"loaded":         {func(*observation, nodes) {}, "True/Loaded", "2 regions are in the logs of 2 partitions"},
		"not asked":      {func(o *observation, _ nodes) { o.roomAsked = false }, "Unknown/NodesSilent", ""},
		"not looked":     {func(o *observation, _ nodes) { o.regions = nil }, "Unknown/NotLooked", ""},
		"not found":      {func(o *observation, _ nodes) { o.regions.missing = []string{"quotes"} }, "False/NotFound", "quotes; create them"},
		"invalid":        {func(o *observation, _ nodes) { o.regions.invalid = []string{"GridRegion quotes: no"} }, "False/Invalid", "GridRegion quotes: no"},
		"file is old":    {func(_ *observation, n nodes) { n["rtd-s0-1"].SHA256 = "old" }, "False/OnTheWay", "the file of rtd-s0-1"},
		"no file":        {func(_ *observation, n nodes) { n["rtd-s0-1"] = nil }, "False/OnTheWay", "the file of rtd-s0-1"},
		"memory is old":  {func(_ *observation, n nodes) { n["rtd-s0-1"].MemoryBytes = 1 }, "False/OnTheWay", "the memory of rtd-s0-1"},
		"log lacks one":  {func(_ *observation, n nodes) { n["rtd-s0-1"].Partitions[0].Awaited = []string{"quotes"} }, "False/OnTheWay", "in the logs of 1 of 2 partitions with their bounds: p0 on rtd-s0-1: quotes"},
		"other bound":    {func(_ *observation, n nodes) { n["rtd-s0-1"].Partitions[0].BoundAwaited = true }, "False/OnTheWay", "p0 on rtd-s0-1: the bound of memory"},
		"no partition":   {func(_ *observation, n nodes) { n["rtd-s0-0"].Partitions, n["rtd-s0-1"].Partitions = nil, nil }, "False/OnTheWay", "in the logs of 0 of 2 partitions"},
		"later in force": {func(_ *observation, n nodes) { n["rtd-s0-1"].Partitions[0].Later = []string{"quotes"} }, "False/LaterInForce", "quotes in p0 on rtd-s0-1"},
		"release before": {func(_ *observation, n nodes) { n["rtd-s0-1"].SHA256 = "plain" }, "True/Loaded", ""},
		"refused":        {func(_ *observation, n nodes) { n["rtd-s0-0"].Error = "unknown field" }, "False/RefusedByNode", "rtd-s0-0: unknown field"},
		"one is silent":  {func(_ *observation, n nodes) { delete(n, "rtd-s0-1") }, "Unknown/NodesSilent", "a pod does not answer"},
		"none has a say": {func(_ *observation, n nodes) { clear(n) }, "Unknown/NodesSilent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Regions = regionGrid().Spec.Regions
			o.regions, o.roomAsked = &regions{sha256: fileDigests{"new", "plain"}, n: 2}, true
			n := nodes{"rtd-s0-0": loaded(), "rtd-s0-1": loaded()}
			c.change(o, n)
			answers := []*nodestatus.Memory{}
			for pod, x := range n {
				m := memoryOf(pod, 100, nil)
				m.Regions = x
				answers = append(answers, m)
			}
			o.room = roomOf(answers, 2)
			j := judgeRegions(o)
			if got := string(j.status) + "/" + j.reason; got != c.want || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.want, c.text)
			}
			switch name {
			case "loaded":
				if !o.room.hasRegions(fileDigests{"new", "plain"}) {
					t.Error("a grid that has its regions is asked again soon")
				}
			case "file is old", "no file", "log lacks one", "other bound", "refused":
				if o.room.hasRegions(fileDigests{"new", "plain"}) {
					t.Error("a grid that lacks regions is not asked again soon")
				}
			}
		})
	}
}

// TestRegionsReachNodes: the file has the regions that exist; a change of one reaches it; the memory is that of the pod.
func TestRegionsReachNodes(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Regions: regionGrid().Spec.Regions})
	b.run(grid)
	b.wantCondition(grid, api.ConditionRegionsLoaded, metav1.ConditionFalse, reasonRegionsNotFound, "positions, quotes; create them")
	file := func(want string) {
		t.Helper()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd.regions"}}
		b.get(m)
		if got := strings.Join(strings.Fields(strings.ReplaceAll(m.Data["regions.json"], ": ", ":")), ""); got != want {
			t.Errorf("the nodes are given %s, want %s", got, want)
		}
		f, err := regionfile.Parse([]byte(m.Data["regions.json.sourced"]))
		if err != nil || f.Plain().Text() != m.Data["regions.json"] {
			t.Errorf("with sources they are given %s, %v", m.Data["regions.json.sourced"], err)
			return
		}
		for _, r := range f.Regions {
			if r.Source == nil || r.Source.Grid != string(grid.UID) {
				t.Errorf("%s has the source %v", r.Name, r.Source)
			}
		}
	}
	file(`{"regions":[]}`)
	positions, quotes := gridRegion("positions", api.GridRegionSpec{}), gridRegion("quotes", api.GridRegionSpec{})
	for _, g := range []*api.GridRegion{positions, quotes} {
		g.Namespace = b.namespace
		if err := b.client.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if reqs := b.reconcile.gridsOfRegion(context.Background(), g); len(reqs) != 1 || reqs[0].Name != "rtd" {
			t.Errorf("a change of a region is for %v", reqs)
		}
	}
	b.run(grid)
	file(`{"regions":[{"name":"positions"},{"name":"quotes"}]}`)
	if again := b.run(grid); len(again) > 0 {
		t.Errorf("a second pass writes %v", again)
	}
	quotes.Spec.MaxBytes = ptr.To(resource.MustParse("1Mi"))
	if err := b.client.Update(t.Context(), quotes); err != nil {
		t.Fatal(err)
	}
	quotes.Spec.Region = "other"
	if err := b.client.Update(t.Context(), quotes); err == nil || !strings.Contains(err.Error(), "spec.region: other differs from quotes") {
		t.Errorf("a region that gets another name: %v", err)
	}
	if err := b.client.Delete(t.Context(), positions); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	file(`{"regions":[{"name":"quotes","maxBytes":"1Mi"}]}`)
	b.wantCondition(grid, api.ConditionRegionsLoaded, metav1.ConditionFalse, reasonRegionsNotFound, "positions; create them")
	args := strings.Join(nodeArgs(grid, 0), " ")
	if !strings.Contains(args, " --regions /etc/ordergrid/regions/regions.json --regions-memory 256Mi") || !strings.Contains(args, "--memory-limit 1472Mi") {
		t.Error(args)
	}
	b.get(grid)
	grid.Spec.Regions = nil
	if err := b.client.Update(t.Context(), grid); err == nil || !strings.Contains(err.Error(), "removed from a running grid") {
		t.Errorf("regions are removed: %v", err)
	}
}

// TestRegionUse: the primaries are summed; one partition that refuses is enough, and taken needs the word of all.
func TestRegionUse(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*observation, map[string]*nodestatus.Regions)
		entries int64
		writes  api.RegionWrites
		text    string
	}{
		"taken":   {func(*observation, map[string]*nodestatus.Regions) {}, 130, api.RegionWritesTaken, ""},
		"refused": {func(_ *observation, n map[string]*nodestatus.Regions) { n["rtd-s0-1"].Use[0].Full = []string{"p1"} }, 130, api.RegionWritesRefused, "in partitions p1"},
		"silent":  {func(_ *observation, n map[string]*nodestatus.Regions) { delete(n, "rtd-s0-1") }, 120, api.RegionWritesUnknown, "1 of 2 partitions"},
		"refused and silent": {func(_ *observation, n map[string]*nodestatus.Regions) {
			n["rtd-s0-0"].Use[0].Full = []string{"p0"}
			delete(n, "rtd-s0-1")
		}, 120, api.RegionWritesRefused, "in partitions p0"},
		"no orders": {func(o *observation, _ map[string]*nodestatus.Regions) { o.room.refusing = []string{"rtd-s0-0"} }, 130, api.RegionWritesRefused, "AcceptingOrders of the grid: Full"},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Regions = regionGrid().Spec.Regions
			n := map[string]*nodestatus.Regions{
				"rtd-s0-0": {Use: []nodestatus.RegionUse{{Name: "positions", Partitions: 1, Entries: 111, Bytes: 12345}}},
				"rtd-s0-1": {Use: []nodestatus.RegionUse{{Name: "positions", Partitions: 1, Entries: 9, Bytes: 128}}},
			}
			c.change(o, n)
			var answers []*nodestatus.Memory
			for pod, x := range n {
				answers = append(answers, &nodestatus.Memory{Pod: pod, Regions: x})
			}
			refusing := o.room.refusing
			o.roomAsked, o.room = true, roomOf(answers, 2)
			o.room.refusing = append(o.room.refusing, refusing...)
			use := o.regionUse()
			if len(use) != 1 || use[0].Name != "positions" || use[0].Entries != c.entries || use[0].Writes != c.writes || !strings.Contains(use[0].Message, c.text) || (c.text == "") != (use[0].Message == "") {
				t.Errorf("%+v; want %d entries, %s, %q", use, c.entries, c.writes, c.text)
			}
		})
	}
	for n, want := range map[uint64]uint64{0: 0, 1: 1, 99: 99, 101: 110, 1000: 1000, 12345: 13000} {
		if got := twoDigits(n); got != want {
			t.Errorf("%d is %d, want %d", n, got, want)
		}
	}
}
