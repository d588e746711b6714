package v1alpha1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func newDrill(spec api.FailoverDrillSpec) *api.FailoverDrill {
	spec.GridRef.Name = "rtd"
	return &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{GenerateName: "drill-", Namespace: "default"}, Spec: spec}
}

// TestDrillDefaults: a grid and a suite are a complete drill, and a safe one.
func TestDrillDefaults(t *testing.T) {
	cl := newClient(t)
	drill := newDrill(api.FailoverDrillSpec{Suite: api.SuitePullThePlug})
	drill.GenerateName, drill.Name = "", "defaults"
	if err := cl.Create(t.Context(), drill); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Delete(t.Context(), drill) })
	s := drill.Spec
	if s.State != api.DrillRun || s.UnsupportedFaults != api.UnsupportedRefuse || s.TTL.Duration != time.Hour {
		t.Errorf("state %q, ttl %v", s.State, s.TTL)
	}
	if want := (api.DrillSafety{WhenNotRedundant: api.NotRedundantRefuse, LastCopy: api.LastCopyKeep, MaxShards: 1, WhenMemoryShort: api.MemoryShortRefuse}); s.Safety != want {
		t.Errorf("safety %+v, want %+v", s.Safety, want)
	}
	if y := s.SteadyState; y.RedundantWithin.Duration != 2*time.Minute || y.Calm.Duration != 5*time.Second || y.Settle.Duration != 3*time.Second || y.Outage != nil || y.P99 != nil {
		t.Errorf("steadyState %+v", y)
	}
	if f := s.Traffic; f.Probes != 2 || f.Sessions != 2 || f.Reads == nil || *f.Reads != 50 || f.RequestTimeout.Duration != 30*time.Second || f.RatePerProbe != nil {
		t.Errorf("traffic %+v", f)
	}
	if s.Seed != nil || s.Repetitions != nil || s.Order != "" {
		t.Errorf("the API server defaulted what the suite decides: %+v", s)
	}
}

// TestDrillFaultsAreAccepted: every type of fault with what it needs.
func TestDrillFaultsAreAccepted(t *testing.T) {
	cl := newClient(t)
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	n := func(n int32) *int32 { return &n }
	hold := d(10 * time.Second)
	faults := []api.DrillFault{
		{Name: "kill", Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RoleNode}, After: d(0)},
		{Name: "fail", Type: api.FaultPodFailure, Duration: hold, Expect: &api.DrillExpectation{Grid: api.GridNotRedundant}},
		{Name: "container", Type: api.FaultContainerKill, Start: api.StartHeld, Expect: &api.DrillExpectation{Injection: api.InjectionRefused}},
		{Name: "delete", Type: api.FaultPodDelete, Target: &api.DrillTarget{Role: api.RoleBackup, Shard: n(0), Partition: n(1)}},
		{Name: "cut", Type: api.FaultNetworkPartition, Duration: hold, Target: &api.DrillTarget{Peer: api.PeerEverything}},
		{Name: "cut-one-way", Type: api.FaultNetworkPartition, Duration: hold, Network: &api.NetworkFault{Direction: api.DirectionTo}},
		{Name: "delay", Type: api.FaultNetworkDelay, Duration: hold, Network: &api.NetworkFault{Latency: d(time.Millisecond), Jitter: d(time.Millisecond), Correlation: "25%"}},
		{Name: "loss", Type: api.FaultNetworkLoss, Duration: hold, Network: &api.NetworkFault{Loss: "0.5%"}},
		{Name: "twice", Type: api.FaultNetworkDuplicate, Duration: hold, Network: &api.NetworkFault{Duplicate: "100%"}},
		{Name: "flip", Type: api.FaultNetworkCorrupt, Duration: hold, Network: &api.NetworkFault{Corrupt: "1%"}},
		{Name: "clock", Type: api.FaultClockSkew, Duration: hold, Clock: &api.ClockFault{Offset: metav1.Duration{Duration: -90 * time.Second}, Clocks: []api.DrillClock{api.ClockRealtime, api.ClockMonotonic}}},
		{Name: "busy", Type: api.FaultCPUStress, Duration: hold, Stress: &api.StressFault{CPUWorkers: n(2), CPULoad: "80%"}},
		{Name: "slow-disk", Type: api.FaultIODelay, Duration: hold, IO: &api.IOFault{Delay: d(time.Second), Path: "orders-*"}},
		{Name: "full-disk", Type: api.FaultIOError, Duration: hold, IO: &api.IOFault{Errno: n(28), Percent: "50%"}},
		{Name: "no-api", Type: api.FaultAPIServerPartition, Duration: hold},
		{Name: "api-gone", Type: api.FaultAPIServerOutage, Duration: hold},
		{Name: "power", Type: api.FaultNodePowerOff, Duration: hold},
		{Name: "cable", Type: api.FaultNodeLinkDown, Duration: hold},
		{Name: "hand-over", Type: api.FaultHandOver, Target: &api.DrillTarget{Role: api.RolePrimary}},
		{Name: "roll", Type: api.FaultRollingUpdate, Start: api.StartServed},
	}
	drill := newDrill(api.FailoverDrillSpec{Faults: faults, Repetitions: n(1000)})
	if err := cl.Create(t.Context(), drill); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Delete(t.Context(), drill) })
	if f := drill.Spec.Faults[0]; f.Start != api.StartRedundant {
		t.Errorf("start defaults to %q", f.Start)
	}
	if f := drill.Spec.Faults[6]; f.Network.Direction != api.DirectionBoth {
		t.Errorf("direction defaults to %q", f.Network.Direction)
	}
	for _, f := range faults {
		if f.Type.Momentary() == (f.Duration != nil) {
			t.Errorf("%s: Momentary says %v, the API server the opposite", f.Type, f.Type.Momentary())
		}
	}
}

// TestDrillSpecIsFixed: only state may change, and only to Abort.
func TestDrillSpecIsFixed(t *testing.T) {
	cl := newClient(t)
	const fixed = "changed; a certificate belongs to the spec the drill was run with; create another FailoverDrill, or end this one with state: Abort"
	for _, test := range []struct {
		name   string
		change func(*api.FailoverDrillSpec)
		refuse string
	}{
		{"nothing", func(*api.FailoverDrillSpec) {}, ""},
		{"abort", func(s *api.FailoverDrillSpec) { s.State = api.DrillAbort }, ""},
		{"another grid", func(s *api.FailoverDrillSpec) { s.GridRef.Name = "x" }, fixed},
		{"another suite", func(s *api.FailoverDrillSpec) { s.Suite = api.SuiteNetwork }, fixed},
		{"faults of its own", func(s *api.FailoverDrillSpec) {
			s.Suite, s.Faults = "", []api.DrillFault{{Name: "a", Type: api.FaultPodKill}}
		}, fixed},
		{"an order", func(s *api.FailoverDrillSpec) { s.Order = api.OrderRandom }, fixed},
		{"repetitions", func(s *api.FailoverDrillSpec) { s.Repetitions = new(int32(3)) }, fixed},
		{"a seed", func(s *api.FailoverDrillSpec) { s.Seed = new(int64(3)) }, fixed},
		{"the ttl", func(s *api.FailoverDrillSpec) { s.TTL.Duration = time.Minute }, fixed},
		{"what is skipped", func(s *api.FailoverDrillSpec) { s.UnsupportedFaults = api.UnsupportedSkip }, fixed},
		{"safety", func(s *api.FailoverDrillSpec) { s.Safety.LastCopy = api.LastCopyTake }, fixed},
		{"the steady state", func(s *api.FailoverDrillSpec) { s.SteadyState.Calm.Duration = time.Minute }, fixed},
		{"the traffic", func(s *api.FailoverDrillSpec) { s.Traffic.RatePerProbe = new(int32(7)) }, fixed},
	} {
		t.Run(test.name, func(t *testing.T) {
			drill := newDrill(api.FailoverDrillSpec{Suite: api.SuiteOvernight})
			if err := cl.Create(t.Context(), drill); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cl.Delete(t.Context(), drill) }()
			test.change(&drill.Spec)
			checkRefusal(t, cl.Update(t.Context(), drill), test.refuse)
		})
	}
	aborted := newDrill(api.FailoverDrillSpec{Suite: api.SuiteOvernight, State: api.DrillAbort})
	if err := cl.Create(t.Context(), aborted); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Delete(t.Context(), aborted) }()
	aborted.Spec.State = api.DrillRun
	checkRefusal(t, cl.Update(t.Context(), aborted), "Run after Abort: an aborted drill does not go on; create another FailoverDrill")
}
