package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Suite is a named list of faults.
type Suite struct {
	Name api.DrillSuite
	// Shows is what the suite shows, Needs what the cluster must have: one sentence each, for users.
	Shows, Needs string
	// Faults in their order. The expectations of each are in expect.
	Faults []api.DrillFault
	// RatePerProbe, Repetitions and Order are defaults of the drill.
	RatePerProbe int32
	Repetitions  int32
	Order        api.DrillOrder
	// Matches is true of a suite that needs a grid that matches. Overnight has none of these.
	Matches bool
	// Auctions is how often each book has a call and its auction, in a suite that Matches; 0: never.
	Auctions time.Duration
}

// Rate of each probe in orders a second where neither the drill nor a suite sets one.
const defaultRate = 1000

// Default expectations of the suites. They are limits for a busy machine: with the default timing a silent primary is
// removed after 300 ms (docs/robustness.md has measurements).
const (
	killOutage   = time.Second     // the connections of a process that ends are reset
	silentOutage = 2 * time.Second // without a reset; leases and grace decide
)

// Suites returns the suites in the order of `kubectl ordergrid drill suites`. The caller may change the result.
func Suites() []Suite {
	list := []Suite{pullThePlug(), network(), node(), clockAndCPU(), rollingUpgrade(), apiOutage(), cascade()}
	return append(list, killMidSweep(), killInAuction(), overnight(list))
}

// SuiteByName finds a suite.
func SuiteByName(name api.DrillSuite) (Suite, error) {
	var names []string
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, string(s.Name))
	}
	return Suite{}, fmt.Errorf("suite %q is unknown; allowed are %s", name, strings.Join(names, ", "))
}

// ResolveSuite returns the spec completed by the suite and the defaults: faults with targets, order, repetitions, rate,
// and expectations. The given spec is not changed; suite stays set, to show the source of the faults. Seed stays as it is.
func ResolveSuite(spec *api.FailoverDrillSpec) (*api.FailoverDrillSpec, error) {
	s := Suite{Faults: spec.Faults, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed}
	if spec.Suite != "" {
		var err error
		if s, err = SuiteByName(spec.Suite); err != nil {
			return nil, err
		}
	}
	out := spec.DeepCopy()
	out.Faults = nil
	for _, f := range s.Faults {
		out.Faults = append(out.Faults, complete(f))
	}
	if out.Order == "" {
		out.Order = s.Order
	}
	if out.Repetitions == nil {
		out.Repetitions = new(s.Repetitions)
	}
	if out.Traffic.RatePerProbe == nil {
		out.Traffic.RatePerProbe = new(s.RatePerProbe)
	}
	if out.SteadyState.FailedOrders == "" {
		out.SteadyState.FailedOrders = api.FailedOrdersNone
	}
	// Settings of the whole drill apply to the faults of a suite too.
	if spec.Suite != "" && (spec.SteadyState.Outage != nil || spec.SteadyState.FailedOrders != "") {
		for i := range out.Faults {
			override(&out.Faults[i], &spec.SteadyState)
		}
	}
	return out, nil
}

// complete sets the defaults that the API server sets for a drill's own faults.
func complete(f api.DrillFault) api.DrillFault {
	f = *f.DeepCopy()
	if f.Start == "" {
		f.Start = api.StartRedundant
	}
	if f.Target == nil && !f.Type.GridWide() {
		f.Target = &api.DrillTarget{}
	}
	if t := f.Target; t != nil {
		if t.Role == "" {
			t.Role = api.RolePrimary
		}
		if t.Peer == "" && strings.HasPrefix(string(f.Type), "Network") {
			t.Peer = api.PeerCopies
		}
	}
	if n := f.Network; n != nil && n.Direction == "" {
		n.Direction = api.DirectionBoth
	}
	if f.Type == api.FaultNetworkPartition && f.Network == nil {
		f.Network = &api.NetworkFault{Direction: api.DirectionBoth}
	}
	if c := f.Clock; c != nil && len(c.Clocks) == 0 {
		c.Clocks = []api.DrillClock{api.ClockRealtime}
	}
	if s := f.Stress; s != nil && s.CPUWorkers != nil && s.CPULoad == "" {
		s.CPULoad = "100%"
	}
	if io := f.IO; io != nil && io.Percent == "" {
		io.Percent = "100%"
	}
	return f
}

// override removes the suite's limits from a fault where the drill sets one. The expected state of the grid stays, and
// so does an outage that is the purpose of the fault.
func override(f *api.DrillFault, y *api.DrillSteadyState) {
	e := f.Expect
	if e == nil || e.Grid == api.GridRefusesOrders {
		return
	}
	if y.Outage != nil {
		e.Outage = nil
	}
	if y.FailedOrders != "" {
		e.FailedOrders = ""
	}
}

// overnight is all other suites of grids that store, in an order drawn from the seed.
func overnight(list []Suite) Suite {
	s := Suite{
		Name: api.SuiteOvernight, RatePerProbe: defaultRate, Repetitions: 10, Order: api.OrderRandom,
		Shows: "faults that only show after many hours and in random order: all other suites of grids that store, repeatedly",
		Needs: "what the other suites need; node and api-outage need an executor",
	}
	for _, other := range list {
		s.Faults = append(s.Faults, slices.Clone(other.Faults)...)
	}
	return s
}
