package ordergrid

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// fakeNodes answers at the pods' addresses over real HTTP. An address without an answer is silent: it accepts the
// connection and sends nothing.
type fakeNodes struct {
	server *httptest.Server

	mu      sync.Mutex
	answers map[string]*nodestatus.Node   // by "ip:port"
	traffic map[string]*fakeTraffic       // by "ip:port": content of /metrics
	memory  map[string]*nodestatus.Memory // by "ip:port"; missing ones answer like a node of the previous version
	asked   int

	memoryAsked int
	onAsk       func() // before the next answer, once
}

func newFakeNodes(t *testing.T) *fakeNodes {
	f := &fakeNodes{answers: map[string]*nodestatus.Node{}}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			f.serveMetrics(w, r)
			return
		}
		if r.URL.Path == nodestatus.MemoryPath {
			f.serveMemory(w, r)
			return
		}
		f.mu.Lock()
		if then := f.onAsk; then != nil {
			f.onAsk = nil
			f.mu.Unlock()
			then()
			f.mu.Lock()
		}
		f.asked++
		answer := f.answers[r.Host]
		body, err := json.Marshal(answer)
		f.mu.Unlock()
		switch {
		case r.URL.Path != nodestatus.Path || err != nil:
			t.Errorf("asked for %s: %v", r.URL, err)
		case answer == nil: // not by silence: the wait would depend on the machine's load
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeNodes) serveMemory(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	m := f.memory[r.Host]
	f.memoryAsked++
	f.mu.Unlock()
	if m == nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(m)
}

func (f *fakeNodes) remembers(address string, m *nodestatus.Memory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory == nil {
		f.memory = map[string]*nodestatus.Memory{}
	}
	f.memory[address] = m
}

// client connects to the server for every address; the Host header keeps it. Its timeout is one that a busy machine
// does not reach.
func (f *fakeNodes) client() *http.Client {
	return nodestatus.NewClient(time.Minute, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, f.server.Listener.Addr().String())
	})
}

// questions returns the number of queries since the last call.
func (f *fakeNodes) questions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.asked
	f.asked = 0
	return n
}

// says makes a pod of shard 0 answer as a process with a record and a role.
func (f *fakeNodes) says(grid *api.OrderGrid, ordinal int32, boot, role string, records ...*api.GridPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := incarnation(grid, 0, ordinal, boot)
	n := &nodestatus.Node{Grid: grid.Name, Pod: m.PodName, BootID: boot}
	for _, p := range records {
		n.Partitions = append(n.Partitions, nodestatus.Partition{Record: p.Name, Member: m.ID, BootID: boot, Role: role,
			Epoch: uint64(p.Status.Epoch), Lineage: uint64(p.Status.Lineage), ChangeID: p.Status.ChangeID, LastSeq: 42})
	}
	f.answers[podIP(0, ordinal)+":9400"] = n
}

func (f *fakeNodes) silence(ordinal int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.answers, podIP(0, ordinal)+":9400")
}
