package kube_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Two nodes form a shard through a real API server with the rights of a pod: claim, join,
// hand-over when the primary stops, with orders before and after.
func TestNodesOnARealAPIServer(t *testing.T) {
	f := newFixture(t)
	if err := transport.TuneScheduler(4); err != nil {
		t.Fatal(err)
	}
	name := node.PartitionName("g", 0)
	gp := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Labels: map[string]string{api.LabelGrid: "g"}}, Spec: api.GridPartitionSpec{
		GridRef: api.GridReference{Name: "g"}, Replicas: 2, MinInSync: 1, PreferredPod: "g-s0-0"}}
	if err := f.admin.Create(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	cfg := f.nodeConfig(t, name)
	keys := peerkey.Of(peerkey.New())
	var stops []context.CancelFunc
	var ends []chan error
	var addrs []string
	for i := range 2 {
		a, err := kube.New(cfg, f.ns)
		if err != nil {
			t.Fatal(err)
		}
		addr := proc.PortForTest(t)
		n, err := node.New(node.Config{Grid: "g", Pod: fmt.Sprintf("g-s0-%d", i), Partitions: 1, Listen: addr, Advertise: addr,
			MemoryLimit: 256 << 20, DrainTimeout: 4 * time.Second, PeerKeys: keys, Arbiter: a})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		end := make(chan error, 1)
		go func() { end <- n.Run(ctx) }()
		t.Cleanup(cancel)
		stops, ends, addrs = append(stops, cancel), append(ends, end), append(addrs, addr)
	}
	inSync := func(n int) *api.GridPartition {
		t.Helper()
		for range 2000 {
			if err := f.admin.Get(t.Context(), ctrl.ObjectKeyFromObject(gp), gp); err != nil {
				t.Fatal(err)
			}
			if len(gp.Status.InSync) == n && int(gp.Status.InSyncCount) == n {
				return gp
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("after 20 s: %+v", gp.Status)
		return nil
	}
	if p := inSync(2).Status.Primary; p.PodName != "g-s0-0" || p.Address != addrs[0] {
		t.Fatalf("primary %+v, want the preferred pod", p)
	}
	c, err := client.Dial(t.Context(), client.Config{Endpoints: addrs, Grid: "g", RequestTimeout: 20 * time.Second, IO: client.IONet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	submit := func(id string, copies uint8) {
		t.Helper()
		r, err := c.Submit(t.Context(), order(id))
		if err != nil || r.Copies != copies {
			t.Fatalf("order %s: %v, %v; want %d copies", id, r, err, copies)
		}
	}
	submit("before", 2)
	version := inSync(2).ResourceVersion
	for i := range 200 {
		submit(fmt.Sprintf("flow-%d", i), 2)
	}
	if now := inSync(2).ResourceVersion; now != version {
		t.Errorf("the record was written while orders flowed: version %s, was %s", now, version)
	}
	stops[0]()
	if err := <-ends[0]; err != nil {
		t.Fatalf("the stopped node: %v", err)
	}
	submit("after", 1)
	if p := inSync(1).Status.Primary; p.PodName != "g-s0-1" {
		t.Fatalf("primary %+v", p)
	}
	if _, err := c.GetByClOrdID(t.Context(), "flow-199"); err != nil {
		t.Fatalf("an acknowledged order: %v", err)
	}
	stops[1]()
	if err := <-ends[1]; err != nil {
		t.Fatalf("the last node: %v", err)
	}
}

// order is a valid NewOrderSingle.
func order(id string) []byte {
	body := "35=D\x0149=GW\x0156=OG\x0134=1\x0152=20261121-06:42:29.852\x0111=" + id +
		"\x0121=1\x0155=INTC\x0154=1\x0160=20261121-06:42:29.852\x0138=500\x0140=1\x01"
	msg := fmt.Sprintf("8=FIX.4.2\x019=%d\x01%s", len(body), body)
	sum := 0
	for _, c := range []byte(msg) {
		sum += int(c)
	}
	return fmt.Appendf([]byte(msg), "10=%03d\x01", sum%256)
}
