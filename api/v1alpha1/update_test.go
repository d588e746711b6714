package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestGridDefaults: a spec with security alone is complete, and fields that a Go client omits are defaulted.
func TestGridDefaults(t *testing.T) {
	cl := newClient(t)
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: "default"}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	if err := cl.Create(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Delete(t.Context(), grid) })
	s := grid.Spec
	if s.Shards != 1 || s.Replicas != 2 || s.MinInSync != 1 || s.PartitionBy != api.PartitionByClOrdID || s.Memory.String() != "1Gi" {
		t.Errorf("spec %+v", s)
	}
	if s.WriteBehind != (api.WriteBehindSpec{}) || grid.Sinks() != nil || s.Placement.Spread != api.SpreadRequired {
		t.Errorf("writeBehind %+v, sinks %+v, placement %+v", s.WriteBehind, grid.Sinks(), s.Placement)
	}
	if p := s.Placement; p.ShardSpread != api.SpreadPreferred || p.Pool != (api.NodePool{CPU: api.PoolCPUAny, Network: api.PoolNetworkAny}) || p.CPU != (api.CPUPlacement{Policy: api.CPUShared}) || s.Fabric != nil {
		t.Errorf("placement %+v, fabric %+v", p, s.Fabric)
	}
	want := api.TimingSpec{
		BeaconInterval: metav1.Duration{Duration: 20 * time.Millisecond}, Lease: metav1.Duration{Duration: 200 * time.Millisecond},
		Grace: metav1.Duration{Duration: 300 * time.Millisecond}, ClaimDelay: metav1.Duration{Duration: 10 * time.Second},
		HandOverDelay: metav1.Duration{Duration: 5 * time.Second}, DrainTimeout: metav1.Duration{Duration: 20 * time.Second},
	}
	if s.Replication.LearnerRate.String() != "256Mi" {
		t.Errorf("replication %+v", s.Replication)
	}
	if s.Timing != want {
		t.Errorf("timing %+v, want %+v", s.Timing, want)
	}
}

// TestGridUpdates: changes that a running grid cannot apply are refused, with the reason.
func TestGridUpdates(t *testing.T) {
	cl := newClient(t)
	for _, test := range []struct {
		name   string
		change func(*api.OrderGridSpec)
		refuse string
	}{
		{"more shards", func(s *api.OrderGridSpec) { s.Shards = 4 }, ""},
		{"another minInSync", func(s *api.OrderGridSpec) { s.MinInSync = 2 }, ""},
		{"more memory", func(s *api.OrderGridSpec) { s.Memory = resource.MustParse("2Gi") }, ""},
		{"another timing", func(s *api.OrderGridSpec) { s.Timing.Grace.Duration = time.Second }, ""},
		{"fewer shards", func(s *api.OrderGridSpec) { s.Shards = 2 }, ""},
		{"more shards than partitions", func(s *api.OrderGridSpec) { s.Shards = 9 }, "spec.shards: Invalid value: 9 shards for 8 partitions, so some would have none; give at most 8, or create a grid with more partitions"},
		{"another number of partitions", func(s *api.OrderGridSpec) { s.Partitions = 16 }, "spec.partitions: Invalid value: 16: 16 differs from 8: the partition of every order depends on it; create a second grid with the number you want"},
		{"no shards", func(s *api.OrderGridSpec) { s.Shards = -1 }, "-1 is out of range; allowed are 1 to 256"},
		{"more replicas", func(s *api.OrderGridSpec) { s.Replicas = 3 }, ""},
		{"more replicas, all of them needed", func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync = 3, 3 }, ""},
		{"one copy", func(s *api.OrderGridSpec) { s.Replicas = 1 }, "spec.replicas: Invalid value: 1 would leave one copy of every order where there are 2 now, and the orders of a pod that ends would be lost with it; keep at least 2, or set spec.singleCopy to Accept with the same change"},
		{"one copy, accepted", func(s *api.OrderGridSpec) { s.Replicas, s.SingleCopy = 1, api.SingleCopyAccept }, ""},
		{"fewer copies than are needed", func(s *api.OrderGridSpec) { s.Replicas, s.MinInSync, s.SingleCopy = 1, 2, api.SingleCopyAccept }, "spec.minInSync: Invalid value: 2 is more than spec.replicas 1"},
		{"singleCopy is not set", func(s *api.OrderGridSpec) { s.SingleCopy = "Perhaps" }, "spec.singleCopy: Unsupported value"},
		{"a fabric", func(s *api.OrderGridSpec) {
			s.Fabric = &api.FabricSpec{Network: api.NetworkReference{Name: "fabric"}}
		}, "spec.fabric: Invalid value: changed; the copies of a running grid reach each other by one network; keep it as it was, or create a second OrderGrid and move the traffic"},
		{"another pool", func(s *api.OrderGridSpec) { s.Placement.Pool.CPU = api.PoolCPUXeon }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{GenerateName: "update-", Namespace: "default"}, Spec: api.OrderGridSpec{Shards: 3, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
			if err := cl.Create(t.Context(), grid); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cl.Delete(t.Context(), grid) }()
			test.change(&grid.Spec)
			checkRefusal(t, cl.Update(t.Context(), grid), test.refuse)
		})
	}
}

// TestProbeSpecIsFixed: a result belongs to the spec it was measured with.
func TestProbeSpecIsFixed(t *testing.T) {
	cl := newClient(t)
	probe := &api.OrderProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "fixed", Namespace: "default"},
		Spec:       api.OrderProbeSpec{GridRef: api.GridReference{Name: "rtd"}, Scenario: api.ScenarioPair},
	}
	if err := cl.Create(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Delete(t.Context(), probe) }()
	if probe.Spec.Parameters != api.ParametersScaled {
		t.Errorf("parameters default to %q", probe.Spec.Parameters)
	}
	labelled := probe.DeepCopy()
	labelled.Labels = map[string]string{"desk": "emea"}
	checkRefusal(t, cl.Update(t.Context(), labelled), "")
	labelled.Spec.Parameters = api.ParametersExact
	checkRefusal(t, cl.Update(t.Context(), labelled), "changed; a probe's result belongs to the spec it was run with; create another OrderProbe")
}

func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted; want: %s", want)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("message\n got: %v\nwant: %s", err, want)
	}
}
