package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestInstrumentsGrow: an InstrumentSet gets further instruments, and none that is there is changed or removed.
func TestInstrumentsGrow(t *testing.T) {
	cl := newClient(t)
	instrument := func(symbol, tick string) api.Instrument {
		return api.Instrument{Symbol: symbol, Tick: tick, Band: api.InstrumentBand{Low: "0", High: "1000"}}
	}
	set := &api.InstrumentSet{ObjectMeta: metav1.ObjectMeta{Name: "equities", Namespace: envtest.Namespace(t, cl, "execution-")},
		Spec: api.InstrumentSetSpec{Instruments: []api.Instrument{instrument("IBM", "0.05")}}}
	if err := cl.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if in := set.Spec.Instruments[0]; in.Lot != "1" || in.State != api.InstrumentOpen {
		t.Errorf("defaults are %+v", in)
	}
	set.Spec.Instruments = append(set.Spec.Instruments, instrument("OIL", "1"))
	if err := cl.Update(t.Context(), set); err != nil {
		t.Fatalf("a further instrument: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*api.InstrumentSetSpec)
		want   string
	}{
		"another tick":       {func(s *api.InstrumentSetSpec) { s.Instruments[0].Tick = "0.01" }, "IBM is changed; a book is made for one tick, lot and band"},
		"another band":       {func(s *api.InstrumentSetSpec) { s.Instruments[1].Band.High = "2000" }, "OIL is changed"},
		"an instrument less": {func(s *api.InstrumentSetSpec) { s.Instruments = s.Instruments[:1] }, "1 instruments where there were 2"},
	} {
		t.Run(name, func(t *testing.T) {
			other := set.DeepCopy()
			c.change(&other.Spec)
			if err := cl.Update(t.Context(), other); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestExecutionModeStays: a grid that stores never matches, and the other way round; a spec without execution is one that
// stores. What it trades may be named otherwise.
func TestExecutionModeStays(t *testing.T) {
	cl := newClient(t)
	match := &api.ExecutionSpec{Mode: api.ExecutionMatch, InstrumentsFrom: &api.InstrumentsReference{Name: "equities"}}
	for name, c := range map[string]struct {
		before, after *api.ExecutionSpec
		want          string
	}{
		"begins to match": {nil, match, "Match; the logs of the grid were begun with Store"},
		"ceases to match": {match, nil, "Store; the logs of the grid were begun with Match"},
		"says so":         {nil, &api.ExecutionSpec{Mode: api.ExecutionStore}, ""},
		"another set":     {match, &api.ExecutionSpec{Mode: api.ExecutionMatch, InstrumentsFrom: &api.InstrumentsReference{Name: "more"}, SelfTrade: api.SelfTradeBySession}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: envtest.Namespace(t, cl, "execution-")}}
			grid.Spec.Security.Insecure = api.InsecureAccept
			by := func(x *api.ExecutionSpec) api.PartitionKey {
				if x != nil && x.Mode == api.ExecutionMatch {
					return api.PartitionBySymbol
				}
				return api.PartitionByClOrdID
			}
			grid.Spec.Execution, grid.Spec.PartitionBy = c.before, by(c.before)
			if err := cl.Create(t.Context(), grid); err != nil {
				t.Fatal(err)
			}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(grid), grid); err != nil {
				t.Fatal(err)
			}
			grid.Spec.Execution, grid.Spec.PartitionBy = c.after, by(c.after)
			if err := cl.Update(t.Context(), grid); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
