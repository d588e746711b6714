package witness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// world is a namespace with two pods on a real API server, and grid nodes with configured answers at their addresses.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	observer  *Observer
	pods      []corev1.Pod

	mu    sync.Mutex
	pages map[string]string // "10.1.0.1/clock" -> body; missing: the node is unreachable
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := envtest.Client(t, envtest.Config(t))
	w := &world{t: t, client: c, namespace: envtest.Namespace(t, c, "witness-"), pages: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		host, _, _ := net.SplitHostPort(r.Host)
		body, known := w.pages[host+r.URL.Path]
		if !known {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/metrics" {
			rw.Header().Set("Content-Type", "text/plain; version=0.0.4")
		}
		_, _ = rw.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	w.observer = &Observer{Client: c, Nodes: nodestatus.NewClient(2*time.Second, dial)}
	for i := range 2 {
		w.pods = append(w.pods, w.pod(fmt.Sprintf("g-s0-%d", i), fmt.Sprintf("10.1.0.%d", i+1)))
	}
	return w
}

func (w *world) pod(name, ip string) corev1.Pod {
	w.t.Helper()
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: objects.Labels(objects.GridNode, "g")},
		Spec: corev1.PodSpec{NodeName: "node-" + w.namespace, Containers: []corev1.Container{{Name: gridContainer, Image: "grid-node:1"}}}}
	if err := w.client.Create(w.t.Context(), &p); err != nil {
		w.t.Fatal(err)
	}
	p.Status = corev1.PodStatus{PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: gridContainer, Image: "grid-node:1", ImageID: "i", ContainerID: "containerd://a" + name}}}
	if err := w.client.Status().Update(w.t.Context(), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) page(ip, path string, body any) {
	w.t.Helper()
	text, isText := body.(string)
	if !isText {
		content, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		text = string(content)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[ip+path] = text
}

// silence makes a node unreachable.
func (w *world) silence(ip string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.pages {
		if strings.HasPrefix(key, ip+"/") {
			delete(w.pages, key)
		}
	}
}

func (w *world) fault(spec api.DrillFault) *inject.Fault {
	grid := testGrid()
	grid.Namespace, grid.Spec.Shards = w.namespace, 1
	return &inject.Fault{Drill: inject.Drill{Namespace: w.namespace, Name: "night"}, Spec: spec, Grid: grid, Pods: w.pods[:1],
		Partitions: []string{"g-p0"}, Nodes: []string{"node-" + w.namespace}}
}

func (w *world) baseline(f *inject.Fault) Before {
	w.t.Helper()
	before, err := w.observer.Baseline(w.t.Context(), f)
	if err != nil {
		w.t.Fatal(err)
	}
	// A restarted operator knows the pods from status.
	for i := range f.Pods {
		f.Pods[i] = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: f.Pods[i].Name, UID: f.Pods[i].UID},
			Spec: corev1.PodSpec{NodeName: f.Pods[i].Spec.NodeName}, Status: corev1.PodStatus{PodIP: f.Pods[i].Status.PodIP}}
	}
	w.expect(f, before, false, "")
	return before
}

func (w *world) expect(f *inject.Fault, before Before, seen bool, says string) {
	w.t.Helper()
	r, err := w.observer.Look(w.t.Context(), f, before)
	if err != nil || r.Seen != seen || !strings.Contains(r.Message, says) {
		w.t.Fatalf("%+v, %v; want seen %v with %q", r, err, seen, says)
	}
}

func TestSeePods(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultPodKill})
	before := w.baseline(f)
	if err := w.client.Delete(t.Context(), w.pods[0].DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.expect(f, before, true, "is gone")
	w.pod("g-s0-0", "10.1.0.7")
	w.expect(f, before, true, "has its name")
}

func TestSeeAContainer(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultContainerKill})
	live := w.pods[0].DeepCopy()
	before := w.baseline(f)
	live.Status.ContainerStatuses[0].RestartCount = 1
	if err := w.client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	w.expect(f, before, true, "restarts 1")
}

func connection(to string, quiet, rtt time.Duration) nodestatus.Connection {
	return nodestatus.Connection{Kind: nodestatus.KindPeer, Pod: to, Local: "192.168.7.1:1", Remote: "192.168.7.2:2", Interface: "net1",
		TCP: &nodestatus.TCP{RTTNs: int64(rtt), ReceivedAgoNs: int64(quiet)}}
}

func (w *world) peers(ip, pod string, c ...nodestatus.Connection) {
	w.t.Helper()
	w.page(ip, nodestatus.PeersPath, nodestatus.Peers{Pod: pod, BootID: "boot-" + pod, Connections: c})
}

func TestSeeLinks(t *testing.T) {
	w := newWorld(t)
	latency := lasts(10 * time.Millisecond)
	f := w.fault(api.DrillFault{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: &latency}})
	f.Peers = w.pods[1:]
	w.peers("10.1.0.1", "g-s0-0")
	w.peers("10.1.0.2", "g-s0-1")
	if _, err := w.observer.Baseline(t.Context(), f); err == nil || !strings.Contains(err.Error(), "no connection between g-s0-0 and g-s0-1") {
		t.Fatalf("%v", err)
	}
	w.peers("10.1.0.1", "g-s0-0", connection("g-s0-1", time.Millisecond, 200*time.Microsecond))
	before := w.baseline(f)
	// A delayed acknowledgement is no delay; that affects every connection.
	w.peers("10.1.0.2", "g-s0-1", connection("g-s0-0", time.Millisecond, 12*time.Millisecond))
	w.expect(f, before, false, "200")
	w.peers("10.1.0.1", "g-s0-0", connection("g-s0-1", time.Millisecond, 12*time.Millisecond))
	w.expect(f, before, true, "(net1) a round trip takes 12ms")

	// Cut off from everything, including the operator's queries.
	all := w.fault(api.DrillFault{Type: api.FaultNetworkPartition})
	before = w.baseline(all)
	w.silence("10.1.0.1")
	w.peers("10.1.0.2", "g-s0-1", connection("g-s0-0", 2*time.Second, 200*time.Microsecond))
	w.expect(all, before, true, "nothing came for 2s")
}

// Only an executor sees the link between a grid node and a client.
func TestExecutorsWord(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultNetworkLoss, Network: &api.NetworkFault{Loss: "10%"}})
	f.Peers = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "night-recorder"}}}
	before := w.baseline(f)
	f.Reported.Seen = "executor rack: 311 of 3004 packets dropped"
	w.expect(f, before, true, "311 of 3004")
	// It does not witness a kill.
	kill := w.fault(api.DrillFault{Type: api.FaultPodKill})
	before = w.baseline(kill)
	kill.Reported.Seen = "believe me"
	w.expect(kill, before, false, "still there")
}

func TestSeeClocks(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: lasts(-time.Minute)}})
	clock := nodestatus.Clock{Pod: "g-s0-0", BootID: "b", UnixNs: 1e18, KernelUnixNs: 1e18}
	w.page("10.1.0.1", nodestatus.ClockPath, clock)
	before := w.baseline(f)
	clock.UnixNs -= int64(time.Minute)
	w.page("10.1.0.1", nodestatus.ClockPath, clock)
	w.expect(f, before, true, "-1m0s")
}

func TestSeeLoadAndSinks(t *testing.T) {
	w := newWorld(t)
	w.page("10.1.0.1", "/metrics", `# TYPE ordergrid_node_cgroup_cpu_seconds_total counter
ordergrid_node_cgroup_cpu_seconds_total 10
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 9
# TYPE ordergrid_node_cgroup_memory_anonymous_bytes gauge
ordergrid_node_cgroup_memory_anonymous_bytes 1e8
# TYPE ordergrid_node_sink_errors_total counter
ordergrid_node_sink_errors_total{sink="file"} 1
`)
	memory := w.fault(api.DrillFault{Type: api.FaultMemoryStress, Stress: &api.StressFault{Memory: "64Mi"}})
	errors := w.fault(api.DrillFault{Type: api.FaultIOError, IO: &api.IOFault{Errno: ptr.To[int32](5)}})
	beforeMemory, beforeErrors := w.baseline(memory), w.baseline(errors)
	w.page("10.1.0.1", "/metrics", `# TYPE ordergrid_node_cgroup_memory_anonymous_bytes gauge
ordergrid_node_cgroup_memory_anonymous_bytes 1.6e8
# TYPE ordergrid_node_sink_errors_total counter
ordergrid_node_sink_errors_total{sink="file"} 4
`)
	w.expect(memory, beforeMemory, true, "57 MiB more")
	w.expect(errors, beforeErrors, true, "3 writes")
}

func TestSeeArbiters(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultAPIServerOutage})
	f.Pods = nil // affects all
	arbiter := nodestatus.Arbiter{Pod: "p", BootID: "b", Reachable: true}
	for _, ip := range []string{"10.1.0.1", "10.1.0.2"} {
		w.page(ip, nodestatus.ArbiterPath, arbiter)
	}
	before := w.baseline(f)
	// The observer is cut off from the API server as well.
	w.observer.Client = client.NewNamespacedClient(w.client, "none")
	arbiter.Reachable, arbiter.Error = false, "dial tcp: i/o timeout"
	w.page("10.1.0.1", nodestatus.ArbiterPath, arbiter)
	w.expect(f, before, false, "answers g-s0-1")
	w.page("10.1.0.2", nodestatus.ArbiterPath, arbiter)
	w.expect(f, before, true, "i/o timeout")

	w.observer.Client = w.client
	if _, err := w.observer.Baseline(t.Context(), f); err == nil || !strings.Contains(err.Error(), "before the fault") {
		t.Errorf("%v", err)
	}
}

func TestSeeNodes(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultNodeLinkDown})
	f.Pods = w.pods
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.Nodes[0]}}
	if err := w.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for i, ip := range []string{"10.1.0.1", "10.1.0.2"} {
		w.page(ip, nodestatus.Path, nodestatus.Node{Pod: w.pods[i].Name, BootID: "b"})
	}
	before := w.baseline(f)
	w.silence("10.1.0.1")
	w.expect(f, before, false, "1 no longer answer")
	w.silence("10.1.0.2")
	w.expect(f, before, true, "2 no longer answer")
}

func TestSeeTheGrid(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultRollingUpdate})
	before := w.baseline(f)
	for i := range w.pods {
		if err := w.client.Delete(t.Context(), w.pods[i].DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		w.pod(fmt.Sprintf("g-s0-%d", i), fmt.Sprintf("10.1.0.%d", i+5))
		w.expect(f, before, i == 1, fmt.Sprintf("%d still exist", 1-i))
	}
}

// Answers may be invalid, and so may the baseline.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	f := w.fault(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: lasts(time.Minute)}})
	for _, page := range []string{"<html>", `{}`, `{"pod":"p","unixNs":-9223372036854775808,"kernelUnixNs":9223372036854775807}`, strings.Repeat(" ", 1<<20)} {
		w.page("10.1.0.1", nodestatus.ClockPath, page)
		if before, err := w.observer.Baseline(t.Context(), f); err == nil {
			if r, err := w.observer.Look(t.Context(), f, before); err != nil || r.Seen {
				t.Errorf("%.40s: %+v, %v", page, r, err)
			}
		}
	}
	for _, kept := range []string{"", "[]", "null", `{"clocks":[{"p":7}]}`} {
		if r, err := w.observer.Look(t.Context(), f, Before(kept)); err == nil && r.Seen {
			t.Errorf("%q: %+v", kept, r)
		}
	}
	w.silence("10.1.0.1")
	if _, err := w.observer.Baseline(t.Context(), f); err == nil || !strings.Contains(err.Error(), "g-s0-0") {
		t.Errorf("%v", err)
	}
	for _, spec := range []api.DrillFault{{Type: "Meteor"}, {Type: api.FaultPodKill}, {Type: api.FaultHandOver}} {
		none := w.fault(spec)
		none.Pods, none.Partitions = nil, nil
		if _, err := w.observer.Baseline(t.Context(), none); err == nil {
			t.Errorf("%s: a baseline without a target", spec.Type)
		}
	}
}

// A shard of three has three links, each of several connections: they must fit the limit of a step.
func TestBeforeFits(t *testing.T) {
	w := newWorld(t)
	w.pods = append(w.pods, w.pod("g-s0-2", "10.1.0.3"))
	f := w.fault(api.DrillFault{Type: api.FaultNetworkPartition})
	f.Grid.Spec.Replicas, f.Pods = 3, w.pods
	for i := range 3 {
		var c []nodestatus.Connection
		for j := range 3 {
			for range 4 {
				if i != j {
					c = append(c, connection(fmt.Sprintf("g-s0-%d", j), time.Hour, time.Hour))
				}
			}
		}
		w.peers(fmt.Sprintf("10.1.0.%d", i+1), fmt.Sprintf("g-s0-%d", i), c...)
	}
	before, err := w.observer.Baseline(t.Context(), f)
	if err != nil || len(before) > MaxBefore || strings.Count(string(before), "peer") != 24 {
		t.Errorf("%d bytes, %v", len(before), err)
	}
	t.Logf("%d of %d bytes", len(before), MaxBefore)
}
