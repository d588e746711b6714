package inject

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// The tests on an API server use Chaos Mesh's own CRDs.
func TestMain(m *testing.M) {
	chaos, err := crds.Objects(context.Background(), envtest.Root(), append(chaosKinds, "PodNetworkChaos", "PodIOChaos")...)
	if err != nil {
		panic(err)
	}
	os.Exit(envtest.Run(m, envtest.WithMoreCRDs(chaos...)))
}

// bench is a namespace of its own on a real API server.
type bench struct {
	t         *testing.T
	client    client.Client
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c := envtest.Client(t, envtest.Config(t))
	return &bench{t, c, envtest.Namespace(t, c, "inject-")}
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	o.SetNamespace(b.namespace)
	if err := b.client.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(o client.Object) error {
	return b.client.Get(b.t.Context(), client.ObjectKeyFromObject(o), o)
}

// pod is one of grid g, as created by the operator, with an address.
func (b *bench) pod(name, ip string) corev1.Pod {
	b.t.Helper()
	p := podOf(name)
	p.UID = ""
	b.create(&p)
	p.Status = corev1.PodStatus{PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := b.client.Status().Update(b.t.Context(), &p); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) drill() Drill {
	return Drill{Namespace: b.namespace, Name: "night", UID: "5a1e0c3d-0000-4000-8000-000000000001"}
}

func podOf(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: name, UID: types.UID(name + "-uid")},
		Spec: corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{
			{Name: gridContainer, Image: "grid-node:1", Args: []string{"serve", "--sink-dir", "/var/lib/ordergrid/sink"}}}},
	}
}

func testGrid(namespace string) *api.OrderGrid {
	return &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g"}, Spec: api.OrderGridSpec{Shards: 1, Replicas: 2, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
}

func fault(spec api.DrillFault, pods ...string) *Fault {
	f := &Fault{
		Drill: Drill{Namespace: "trading", Name: "night", UID: "5a1e0c3d-0000-4000-8000-000000000001"}, Step: 7,
		Spec: spec, Grid: testGrid("trading"), Duration: 10 * time.Second,
	}
	for _, name := range pods {
		f.Pods = append(f.Pods, podOf(name))
	}
	return f
}

func (f *Fault) with(peers ...string) *Fault {
	for _, name := range peers {
		f.Peers = append(f.Peers, podOf(name))
	}
	return f
}

// onPlane puts pods on a network: device "" is the cluster's.
func onPlane(device string, pods ...string) *surroundings {
	s := &surroundings{planes: map[string]Plane{}, apiServer: []string{"10.96.0.1", "10.89.0.1:6443"}, volume: "/var/lib/ordergrid/sink"}
	for i, name := range pods {
		s.planes[name] = Plane{Address: netip.MustParseAddr(fmt.Sprintf("192.168.7.%d", i+1)), Device: device}
	}
	return s
}

func lasts(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// everyFault has one of every type that Chaos Mesh makes, and network faults with peers and without.
func everyFault() []*Fault {
	net := func(t api.DrillFaultType, n api.NetworkFault) *Fault {
		return fault(api.DrillFault{Name: "x", Type: t, Network: &n}, "g-s0-0")
	}
	out := []*Fault{
		fault(api.DrillFault{Type: api.FaultPodKill}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultPodFailure}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultContainerKill}, "g-s0-0", "g-s0-1"),
		fault(api.DrillFault{Type: api.FaultAPIServerPartition}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: *lasts(-90 * time.Second), Clocks: []api.DrillClock{api.ClockRealtime, api.ClockMonotonic}}}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: *lasts(time.Hour)}}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultCPUStress, Stress: &api.StressFault{CPUWorkers: ptr.To[int32](2), CPULoad: "50%"}}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultMemoryStress, Stress: &api.StressFault{Memory: "256Mi"}}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultIODelay, IO: &api.IOFault{Delay: lasts(100 * time.Millisecond), Percent: "50%"}}, "g-s0-0"),
		fault(api.DrillFault{Type: api.FaultIOError, IO: &api.IOFault{Errno: ptr.To[int32](28), Path: "p1/*.log"}}, "g-s0-0"),
	}
	for _, peers := range [][]string{{"g-s0-1"}, nil} {
		direction := api.DirectionBoth
		if peers == nil {
			direction = api.DirectionTo
		}
		out = append(out,
			net(api.FaultNetworkPartition, api.NetworkFault{}).with(peers...),
			net(api.FaultNetworkDelay, api.NetworkFault{Latency: lasts(1500 * time.Microsecond), Jitter: lasts(time.Millisecond), Correlation: "25%", Direction: direction}).with(peers...),
			net(api.FaultNetworkLoss, api.NetworkFault{Loss: "0.5%", Direction: direction}).with(peers...),
			net(api.FaultNetworkDuplicate, api.NetworkFault{Duplicate: "50%", Direction: direction}).with(peers...),
			net(api.FaultNetworkCorrupt, api.NetworkFault{Corrupt: "1%", Correlation: "10%", Direction: direction}).with(peers...),
			net(api.FaultNetworkBandwidth, api.NetworkFault{Rate: "10M", Direction: direction}).with(peers...))
	}
	return out
}
