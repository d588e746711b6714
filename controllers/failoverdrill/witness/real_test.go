package witness

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// TestRealNodes observes two running grid nodes: every page has what the witness needs, a healthy grid shows no fault,
// and a stopped one is seen as cut off by the other.
func TestRealNodes(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 64})
	t.Cleanup(func() { _ = syscall.Kill(g.PIDs[0], syscall.SIGCONT) })
	o := &Observer{Nodes: nodestatus.NewClient(5*time.Second, func(ctx context.Context, network, address string) (net.Conn, error) {
		var i int
		if _, err := fmt.Sscanf(address, "10.1.0.%d:9400", &i); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(g.HTTP[i], "http://"))
	})}
	pod := func(i int) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("dev-s0-%d", i)}, Status: corev1.PodStatus{PodIP: fmt.Sprintf("10.1.0.%d", i)}}
	}
	fault := func(spec api.DrillFault) *inject.Fault {
		grid := testGrid()
		grid.Name = "dev"
		return &inject.Fault{Spec: spec, Grid: grid, Pods: []corev1.Pod{pod(0)}, Peers: []corev1.Pod{pod(1)}}
	}
	latency := lasts(10 * time.Millisecond)
	for _, spec := range []api.DrillFault{
		{Type: api.FaultNetworkPartition},
		{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: &latency}},
		{Type: api.FaultNetworkLoss}, {Type: api.FaultNetworkDuplicate},
		{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: lasts(-time.Second), Clocks: []api.DrillClock{api.ClockRealtime, api.ClockMonotonic}}},
		{Type: api.FaultMemoryStress, Stress: &api.StressFault{Memory: "4Gi"}},
		{Type: api.FaultIOError, IO: &api.IOFault{Errno: ptr.To[int32](5)}},
		{Type: api.FaultAPIServerPartition},
	} {
		f := fault(spec)
		before, err := o.Baseline(t.Context(), f)
		if err != nil {
			t.Errorf("%s: %v", spec.Type, err)
			continue
		}
		r, err := o.Look(t.Context(), f, before)
		if err != nil || r.Seen || r.Message == "" || strings.Contains(r.Message, "does not answer") {
			t.Errorf("%s on a healthy grid: %+v, %v", spec.Type, r, err)
		}
		t.Logf("%s: %s", spec.Type, r.Message)
	}

	cut := fault(api.DrillFault{Type: api.FaultNetworkPartition})
	before, err := o.Baseline(t.Context(), cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(g.PIDs[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var r Result
	for limit := time.Now().Add(30 * time.Second); !r.Seen && time.Now().Before(limit); {
		if r, err = o.Look(t.Context(), cut, before); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(r.Message)
	if !r.Seen {
		t.Error("a stopped node is not seen")
	}
}
