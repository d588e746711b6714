package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// grid is a shard of nodes in this process, over real sockets.
type grid struct {
	t       *testing.T
	store   *memory.Store
	arb     arbiter.Arbiter // the nodes' arbiter; store unless a test wraps it
	base    Config
	addrs   []string
	outside []string // of Config.External, by node; nil: none
	// advertise is where nodes find each other, where that is another address.
	advertise []string
	nodes     []*running

	partitions int
}

// running is a node under test.
type running struct {
	*Node
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run, after done
}

func TestMain(m *testing.M) {
	// Every loop of this process keeps a P of its own.
	if err := transport.TuneScheduler(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newGrid prepares a shard without starting its nodes.
func newGrid(t *testing.T, nodes, partitions int) *grid {
	t.Helper()
	specs := map[string]arbiter.Spec{}
	for i := range partitions {
		specs[PartitionName("g", i)] = arbiter.Spec{Grid: "g", Partition: i, Replicas: nodes, MinInSync: 1,
			PreferredPod: fmt.Sprintf("g-s0-%d", i%nodes)}
	}
	g := &grid{t: t, store: memory.NewStore(specs), addrs: freeAddrs(t, nodes), nodes: make([]*running, nodes), partitions: partitions,
		base: Config{Grid: "g", Partitions: partitions, Replicas: nodes, MemoryLimit: 512 << 20, PeerKeys: peerkey.Of(peerkey.New()), Log: testLog(t)}}
	g.arb = g.store
	t.Cleanup(func() {
		for i := range g.nodes {
			g.kill(i)
		}
	})
	return g
}

// testLog prints the nodes' logs with -v.
func testLog(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(logWriter{t}, nil))
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(b []byte) (int, error) {
	fmt.Fprintf(os.Stderr, "%s: %s", w.t.Name(), b)
	return len(b), nil
}

func freeAddrs(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		out = append(out, proc.PortForTest(t))
	}
	return out
}

// start starts node i as a new process would: with nothing.
func (g *grid) start(i int) *running {
	g.t.Helper()
	cfg := g.base
	cfg.Pod = fmt.Sprintf("g-s0-%d", i)
	cfg.Listen, cfg.Advertise, cfg.Arbiter = g.addrs[i], g.addrs[i], g.arb
	if g.outside != nil {
		cfg.External = g.outside[i]
	}
	if g.advertise != nil {
		cfg.Advertise = g.advertise[i]
	}
	if cfg.FabricOnly { // as in a pod: the port is on the pod network too
		_, port, _ := net.SplitHostPort(g.addrs[i])
		cfg.Listen = ":" + port
	}
	n, err := New(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Node: n, cancel: cancel, done: make(chan struct{})}
	go func() { r.err = n.Run(ctx); close(r.done) }()
	g.nodes[i] = r
	return r
}

// kill ends node i without notifying any peer, as kill -9 does.
func (g *grid) kill(i int) {
	r := g.nodes[i]
	if r == nil {
		return
	}
	r.loop.Stop()
	await(g.t, r.done)
	r.cancel()
	g.nodes[i] = nil
}

// up starts all nodes and waits until they are in sync.
func (g *grid) up() *grid {
	g.t.Helper()
	for i := range g.nodes {
		g.start(i)
	}
	g.ready()
	return g
}

// ready waits until every node that runs is ready.
func (g *grid) ready() {
	g.t.Helper()
	for i, r := range g.nodes {
		if r != nil {
			g.until(func() bool { return g.readiness(i).Ready }, "node %d is not ready: %+v", i, func() any { return g.readiness(i) })
		}
	}
}

func (g *grid) readiness(i int) (out Readiness) {
	g.t.Helper()
	r := g.nodes[i]
	if err := r.onLoop(func() { out = r.data.parts.readiness() }); err != nil {
		g.t.Fatalf("node %d: %v, Run: %v", i, err, r.err)
	}
	return out
}

// until polls; the limit only turns a hang into a failure.
func (g *grid) until(cond func() bool, format string, args ...any) {
	g.t.Helper()
	for range 20_000 {
		if cond() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	for i, a := range args {
		if f, ok := a.(func() any); ok {
			args[i] = f()
		}
	}
	g.t.Fatalf("after 20 s: "+format, args...)
}

func await(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(5 * time.Minute):
		t.Fatal("nothing happened for 5 minutes")
	}
}

func (g *grid) client() *client.Client {
	g.t.Helper()
	c, err := client.Dial(g.t.Context(), client.Config{Endpoints: g.addrs, Grid: "g", DialTimeout: 2 * time.Minute, RequestTimeout: 2 * time.Minute, IO: client.IONet})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// verify compares all copies; sinkDir may be empty. On a starved machine a copy may be
// dropped while it is read: failed reads are retried, a difference fails.
func (g *grid) verify(sinkDir string) *verify.Result {
	g.t.Helper()
	c := g.client()
	var r *verify.Result
	for attempt := 0; attempt < 10 && (r == nil || r.ExitCode() == verify.ExitIncomplete); attempt++ {
		g.settled()
		var err error
		if r, err = verify.Run(g.t.Context(), verify.FromClient(c), verify.Options{SinkDir: sinkDir, Grid: "g"}); err != nil {
			g.t.Fatal(err)
		}
	}
	if r.ExitCode() != verify.ExitEqual {
		_ = r.WriteText(os.Stderr)
		g.t.Fatalf("verify: %d problems, %d not read", r.Problems, r.Unread)
	}
	return r
}

// settled waits until every node knows everything to be committed: a backup
// learns of the last commit with the next beacon.
func (g *grid) settled() {
	g.t.Helper()
	g.until(func() bool {
		seqs := map[string]uint64{}
		for i, r := range g.nodes {
			if r == nil {
				continue
			}
			for _, p := range g.readiness(i).Partitions {
				if old, seen := seqs[p.Partition]; p.LastSeq != p.CommitSeq || (seen && old != p.CommitSeq) {
					return false
				}
				seqs[p.Partition] = p.CommitSeq
			}
		}
		return true
	}, "the copies do not settle")
}

// get asks a node's HTTP handler.
func (r *running) get(path string) (int, string) {
	w := httptest.NewRecorder()
	r.pages.mux().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	b, _ := io.ReadAll(w.Body)
	return w.Code, string(b)
}

// fix is a valid order.
func fix(id string) []byte { return fixMore(id, "") }

// fixMore is one with more fields.
func fixMore(id, more string) []byte {
	body := "35=D\x0149=GW\x0156=OG\x0134=1\x0152=20261121-06:42:29.852\x0111=" + id +
		"\x011=ACCT\x0121=1\x0155=INTC\x0154=1\x0160=20261121-06:42:29.852\x0138=500\x0140=2\x0144=21.35\x0159=0\x01" + more
	msg := fmt.Sprintf("8=FIX.4.2\x019=%d\x01%s", len(body), body)
	sum := 0
	for _, c := range []byte(msg) {
		sum += int(c)
	}
	return fmt.Appendf([]byte(msg), "10=%03d\x01", sum%256)
}

// submit sends n orders and fails the test unless all are acknowledged.
func submit(t *testing.T, c *client.Client, prefix string, n int) (out []client.Receipt) {
	t.Helper()
	for i := range n {
		r, err := c.Submit(t.Context(), fix(fmt.Sprintf("%s-%d", prefix, i)))
		if err != nil {
			t.Fatalf("order %d: %v", i, err)
		}
		out = append(out, r)
	}
	return out
}

// flaky is an arbiter that can be away.
type flaky struct {
	arbiter.Arbiter
	away chan struct{} // closed while it is away
}

var errAway = errors.New("the API server is away")

func (f *flaky) isAway() bool {
	select {
	case <-f.away:
		return true
	default:
		return false
	}
}

func (f *flaky) Get(ctx context.Context, name string) (arbiter.Record, error) {
	if f.isAway() {
		return arbiter.Record{}, errAway
	}
	return f.Arbiter.Get(ctx, name)
}

func (f *flaky) CompareAndSwap(ctx context.Context, r arbiter.Record) (arbiter.Record, error) {
	if f.isAway() {
		return arbiter.Record{}, fmt.Errorf("%w: %w", arbiter.ErrUnknown, errAway)
	}
	return f.Arbiter.CompareAndSwap(ctx, r)
}
