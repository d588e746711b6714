package failoverdrill

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

const mib = 1 << 20

// serveMemory is the port of a grid node's metrics, as it exports them, on a loopback address.
func serveMemory(t *testing.T, ip string, used *atomic.Int64, limit int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, strconv.Itoa(api.HTTPPort)))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := func() (*metrics.Snapshot, error) {
		return &metrics.Snapshot{MemoryUsed: used.Load(), MemoryLimit: limit}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics.NewRegistry(&metrics.Collector{Snapshot: snapshot}).Handler())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}

// memoryBench has a pair whose first node has 384 MiB for orders, and the second more. net is the network of their addresses.
func memoryBench(t *testing.T, net string) (b *bench, used *atomic.Int64) {
	t.Helper()
	b, used = newBench(t), &atomic.Int64{}
	b.rec.Memories = &witness.Observer{Client: b.client, Nodes: nodestatus.NewClient(10*time.Second, nil)}
	b.grid(2)
	for i, limit := range []int64{384 * mib, 512 * mib} {
		ip := fmt.Sprintf("%s.%d", net, i+1)
		serveMemory(t, ip, used, limit)
		p := &corev1.Pod{ObjectMeta: b.meta(api.PodName(b.gridName, 0, int32(i)))}
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		if err := b.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return b, used
}

// TestGridTooSmall: a drill does not begin on a grid that would be full before its end, reports figures and remedy, and
// begins by itself once there is room.
func TestGridTooSmall(t *testing.T) {
	b, used := memoryBench(t, "127.78.0")
	used.Store(344 * mib)
	d := b.drill("long", faults(failing("fail", time.Minute)))
	b.until(d, "looked at", func() bool {
		c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionPreflight)
		return c != nil && c.Reason != reasonChecking
	})
	// At least 63 s at 2,000/s.
	b.want(d, api.ConditionPreflight, metav1.ConditionFalse, "GridTooSmall", "OrderGrid rtd would be full before the drill ends: at least 126000 orders at 2000/s take about 48Mi in each grid node, "+
		"and rtd-s0-0 has 40Mi left of 384Mi for orders, which is enough for 104596; raise spec.memory")
	b.want(d, api.ConditionPreflight, metav1.ConditionFalse, "GridTooSmall", "spec.safety.whenMemoryShort: Allow")
	if d.Spec.Safety.WhenMemoryShort != api.MemoryShortRefuse {
		t.Errorf("whenMemoryShort is %q by default", d.Spec.Safety.WhenMemoryShort)
	}

	used.Store(300 * mib)
	b.untilStep(d, 0, api.StepWaiting)
	b.want(d, api.ConditionPreflight, metav1.ConditionTrue, "Passed", "made by: PodFailure by ChaosMesh; memory may run short: if steps take as long as they often do, "+
		"276000 orders at 2000/s take about 105Mi in each grid node, and rtd-s0-0 has 84Mi left")
	b.untilOver(d)
	b.want(d, api.ConditionPreflight, metav1.ConditionTrue, "Passed", "memory may run short")
}

// TestMemoryShortAllowed: it begins where allowed.
func TestMemoryShortAllowed(t *testing.T) {
	b, used := memoryBench(t, "127.78.1")
	used.Store(384 * mib)
	d := b.drill("forced", func(s *api.FailoverDrillSpec) {
		s.Faults, s.Safety.WhenMemoryShort = []api.DrillFault{failing("fail", time.Minute)}, api.MemoryShortAllow
	})
	b.untilStep(d, 0, api.StepWaiting)
	b.want(d, api.ConditionPreflight, metav1.ConditionTrue, "Passed", "memory will run short, which spec.safety.whenMemoryShort allows: at least 126000 orders")
}

type memories map[string]witness.Memory

func (m memories) Memory(context.Context, []corev1.Pod) map[string]witness.Memory { return m }

// TestMemoryCheck: the node with the least room counts, and unknown figures are not reported.
func TestMemoryCheck(t *testing.T) {
	const least, most = 1000 * 100, 1000 * (100 + 60 + 30) // orders: with the minute around, and the wait
	room := func(orders int64) witness.Memory {
		return witness.Memory{Used: 7 * mib, Limit: 7*mib + orders*orderBytes}
	}
	plenty := room(10 * most)
	for name, c := range map[string]struct {
		asked  Memories
		change func(*api.OrderGrid)
		want   string // refused, noted, or nothing
	}{
		"room":                        {asked: memories{"a": plenty, "b": room(most)}},
		"room as far as it has to be": {asked: memories{"a": plenty, "b": room(most - 1)}, want: "noted"},
		"just enough for the least":   {asked: memories{"a": room(least), "b": plenty}, want: "noted"},
		"too little on one":           {asked: memories{"a": plenty, "b": room(least - 1)}, want: "refused"},
		"full":                        {asked: memories{"a": {Used: 9 * mib, Limit: 8 * mib}}, want: "refused"},
		"no memories":                 {},
		"no answer":                   {asked: memories{}},
		"a node that does not answer": {asked: memories{"a": {}}},
		"it frees":                    {asked: memories{"a": room(1)}, change: func(g *api.OrderGrid) { g.Spec.Retention.Policy = api.RetentionFreeDownstream }},
		"several shards":              {asked: memories{"a": room(1)}, change: func(g *api.OrderGrid) { g.Spec.Shards = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			d := &api.FailoverDrill{}
			d.Spec.Traffic.Probes, d.Spec.Traffic.RatePerProbe = 2, new(int32(500))
			d.Spec.SteadyState.Calm, d.Spec.SteadyState.Settle, d.Spec.SteadyState.RedundantWithin = in(5*time.Second), in(3*time.Second), in(2*time.Minute)
			grid := &api.OrderGrid{Spec: api.OrderGridSpec{Shards: 1, Replicas: 2}}
			if c.change != nil {
				c.change(grid)
			}
			var check preflight
			check.memoryCheck(t.Context(), &observation{drill: d, grid: grid, plan: []plan.Step{{After: 2 * time.Second, Duration: 90 * time.Second}}}, nil, c.asked)
			got := ""
			switch {
			case len(check.problems) == 1 && check.reason() == reasonGridTooSmall:
				got = "refused"
			case len(check.notes) == 1:
				got = "noted"
			}
			if got != c.want {
				t.Errorf("%q, want %q: %+v", got, c.want, check)
			}
			if text := fmt.Sprint(check.problems, check.notes); got != "" && !strings.Contains(text, "1000/s") {
				t.Error(text)
			}
		})
	}
}
