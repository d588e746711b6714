package ordergrid

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// matchingGrid matches orders.
func matchingGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Execution = &api.ExecutionSpec{Mode: api.ExecutionMatch, InstrumentsFrom: &api.InstrumentsReference{Name: "equities"}, SelfTrade: api.SelfTradeBySession}
	return grid
}

// executing are answers of pods that match.
func executing(pods map[string]*nodestatus.Execution) (answers []*nodestatus.Memory) {
	for pod, x := range pods {
		m := memoryOf(pod, 100, nil)
		m.Execution = x
		answers = append(answers, m)
	}
	return answers
}

func TestExecutionArgs(t *testing.T) {
	if args := strings.Join(nodeArgs(matchingGrid(), 0), " "); !strings.HasSuffix(args, " --execution match --instruments /etc/ordergrid/instruments/instruments.json --self-trade session") {
		t.Error(args)
	}
	stores := pairGrid()
	stores.Spec.Execution = &api.ExecutionSpec{Mode: api.ExecutionStore}
	if with, without := nodeArgs(stores, 0), nodeArgs(pairGrid(), 0); !slices.Equal(with, without) {
		t.Errorf("mode Store has other arguments than no mode: %v", with)
	}
}

func tradable(symbol, tick string) api.Instrument {
	return api.Instrument{Symbol: symbol, Tick: tick, Lot: "1", Band: api.InstrumentBand{Low: "0", High: "1000"}, State: api.InstrumentOpen}
}

func setOf(list ...api.Instrument) *api.InstrumentSet {
	return &api.InstrumentSet{ObjectMeta: metav1.ObjectMeta{Name: "equities"}, Spec: api.InstrumentSetSpec{Instruments: list}}
}

// TestPlanInstruments: what the nodes were given once stays as it is, and only what is new is added.
func TestPlanInstruments(t *testing.T) {
	given, first, err := planInstruments("", setOf(tradable("IBM", "0.05")))
	if err != nil || first.n != 1 || first.sha256 == "" || !strings.Contains(given, `"symbol": "IBM"`) {
		t.Fatalf("the first: %q, %+v, %v", given, first, err)
	}
	for name, c := range map[string]struct {
		before string
		set    *api.InstrumentSet
		n      int
		kept   string
		wrong  string
		same   bool
	}{
		"the same":       {given, setOf(tradable("IBM", "0.05")), 1, "", "", true},
		"one more":       {given, setOf(tradable("OIL", "1"), tradable("IBM", "0.05")), 2, "", "", false},
		"another tick":   {given, setOf(tradable("IBM", "0.01")), 1, "IBM is another there", "", true},
		"gone, one more": {given, setOf(tradable("OIL", "1")), 2, "IBM is not in it", "", false},
		"no set":         {given, nil, 1, "", "", true},
		"never a set":    {"", nil, 0, "", "", false},
		"wrong":          {given, setOf(tradable("IBM", "0.05"), tradable("OIL", "0.3")), 1, "", `"OIL": prices`, true},
		"wrong at first": {"", setOf(tradable("OIL", "0.3")), 0, "", `"OIL": prices`, false},
	} {
		t.Run(name, func(t *testing.T) {
			text, s, err := planInstruments(c.before, c.set)
			if err != nil || s.n != c.n || strings.Join(s.kept, ", ") != c.kept || !strings.Contains(s.invalid, c.wrong) || (c.wrong == "") != (s.invalid == "") || s.missing != (c.set == nil) {
				t.Errorf("%q, %+v, %v", text, s, err)
			}
			if c.same && text != given || (text == "") != (s.sha256 == "") {
				t.Errorf("the nodes are given %q, digest %s; they had %q", text, s.sha256, given)
			}
		})
	}
	if _, _, err := planInstruments("edited", setOf(tradable("IBM", "1"))); err == nil {
		t.Error("a ConfigMap that was edited is taken for nothing")
	}
}

// TestExecutionConditions: the conditions are of what the nodes report, and tell what to do.
func TestExecutionConditions(t *testing.T) {
	type nodes = map[string]*nodestatus.Execution
	for name, c := range map[string]struct {
		change       func(*observation, nodes)
		loaded, text string
		agree        string
	}{
		"stores":          {func(o *observation, _ nodes) { o.grid.Spec.Execution = nil }, "/", "", "/"},
		"trades":          {func(*observation, nodes) {}, "True/Loaded", "the nodes trade the 2 instruments of InstrumentSet equities", "True/Equal"},
		"not asked":       {func(o *observation, _ nodes) { o.roomAsked = false }, "Unknown/NodesSilent", "", "Unknown/NodesSilent"},
		"not looked at":   {func(o *observation, _ nodes) { o.instruments = nil }, "Unknown/NotLooked", "", "True/Equal"},
		"no set":          {func(o *observation, _ nodes) { o.instruments.missing = true }, "False/InstrumentSetNotFound", "there is no InstrumentSet equities in namespace trading; create it", "True/Equal"},
		"no set, no file": {func(o *observation, _ nodes) { *o.instruments = instruments{missing: true} }, "False/InstrumentSetNotFound", "and the pods wait for it", "True/Equal"},
		"invalid":         {func(o *observation, _ nodes) { o.instruments.invalid = "prices 0..1" }, "False/InstrumentSetInvalid", "is not given to the nodes: prices 0..1", "True/Equal"},
		"changed":         {func(o *observation, _ nodes) { o.instruments.kept = []string{"IBM is another there"} }, "False/ChangeRefused", "IBM is another there. An instrument that is in the log is neither changed nor removed", "True/Equal"},
		"not read yet":    {func(_ *observation, n nodes) { n["rtd-s0-1"].SHA256 = "old" }, "False/OnTheWay", "1 of 2 pods: rtd-s0-1", "True/Equal"},
		"not defined yet": {func(_ *observation, n nodes) { n["rtd-s0-0"].Missing = 1 }, "False/OnTheWay", "1 of 2 pods: rtd-s0-0", "True/Equal"},
		"refused":         {func(_ *observation, n nodes) { n["rtd-s0-0"].Error = "it has more bytes" }, "False/RefusedByNode", "rtd-s0-0: it has more bytes", "True/Equal"},
		"log differs":     {func(_ *observation, n nodes) { n["rtd-s0-0"].Differ = []string{"IBM"} }, "False/LogDiffers", "rtd-s0-0: IBM", "True/Equal"},
		"diverged":        {func(_ *observation, n nodes) { n["rtd-s0-1"].Diverged = []string{"p3"} }, "True/Loaded", "", "False/Diverged"},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Execution = matchingGrid().Spec.Execution
			o.instruments, o.roomAsked = &instruments{sha256: "new", n: 2}, true
			n := nodes{"rtd-s0-0": {SHA256: "new"}, "rtd-s0-1": {SHA256: "new"}}
			c.change(o, n)
			answers := executing(n)
			o.room = roomOf(answers, len(answers))
			j := judgeInstruments(o)
			if got := string(j.status) + "/" + j.reason; got != c.loaded || !strings.Contains(strings.ReplaceAll(j.message, o.grid.Namespace, "trading"), c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.loaded, c.text)
			}
			j = judgeExecutions(o)
			if got := string(j.status) + "/" + j.reason; got != c.agree {
				t.Errorf("%s: %s, want %s", got, j.message, c.agree)
			}
		})
	}
}

// TestInstrumentsReachNodes: the operator makes the file from the InstrumentSet, adds what is added, and keeps what was
// there when another set takes its place.
func TestInstrumentsReachNodes(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{PartitionBy: api.PartitionBySymbol, Execution: &api.ExecutionSpec{Mode: api.ExecutionMatch, InstrumentsFrom: &api.InstrumentsReference{Name: "equities"}}})
	b.run(grid)
	b.wantCondition(grid, api.ConditionInstrumentsLoaded, metav1.ConditionFalse, reasonInstrumentsNotFound, "create it")
	set := setOf(tradable("IBM", "0.05"))
	set.Namespace = b.namespace
	if err := b.client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	file := func() string {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd.instruments"}}
		b.get(m)
		return m.Data["instruments.json"]
	}
	b.run(grid)
	if text := file(); !strings.Contains(text, "IBM") {
		t.Errorf("the nodes are given %s", text)
	}
	if again := b.run(grid); len(again) > 0 {
		t.Errorf("a second pass writes %v", again)
	}
	other := setOf(tradable("OIL", "1"))
	other.Namespace, other.Name = b.namespace, "commodities"
	if err := b.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	grid.Spec.Execution.InstrumentsFrom.Name = "commodities"
	if err := b.client.Update(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	if text := file(); !strings.Contains(text, "IBM") || !strings.Contains(text, "OIL") {
		t.Errorf("the nodes are given %s", text)
	}
	b.wantCondition(grid, api.ConditionInstrumentsLoaded, metav1.ConditionFalse, reasonInstrumentsKept, "IBM is not in it")
	if reqs := b.reconcile.gridsOfInstruments(t.Context(), other); len(reqs) != 1 || reqs[0].Name != "rtd" {
		t.Errorf("a change of the set is for %v", reqs)
	}
}
