package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

func TestReplicatesAndWritesBehind(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	c := g.client()
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for _, r := range submit(t, c, fmt.Sprintf("k%d", k), 100) {
				if r.Copies != 2 {
					t.Errorf("receipt %v, want 2 copies", r)
				}
			}
		})
	}
	wg.Wait()
	o, err := c.GetByClOrdID(t.Context(), "k3-99")
	if err != nil || string(o.FIX) != string(fix("k3-99")) {
		t.Fatalf("read back %q, %v", o.FIX, err)
	}
	for i, r := range g.nodes {
		p := r.data.parts.list[i] // node i is primary of partition i
		g.until(func() bool { return p.inc.outlets[0].queue.Durable() >= p.store.Committed() }, "the sink of partition %d lags", i)
	}
	res := g.verify(g.base.SinkDir)
	if res.Orders != 400 || res.Partitions[0].Sink.Repeats != 0 {
		t.Fatalf("%d orders verified, want 400; sink %+v", res.Orders, res.Partitions[0].Sink)
	}
	if code, body := g.nodes[0].get("/metrics"); code != 200 || !strings.Contains(body, `ordergrid_node_partition_role{partition="p0",role="primary"} 1`) ||
		!strings.Contains(body, `ordergrid_node_gaps_total{partition="p0",side="server"} 0`) {
		t.Fatalf("metrics: %d\n%s", code, body)
	}
}

// Each node is primary of one partition, so both serve.
func TestPrimariesAreSpread(t *testing.T) {
	g := newGrid(t, 3, 3).up()
	for _, p := range g.client().Table() {
		if want := g.addrs[int(p.ID)]; p.Primary.Address != want || len(p.Members) != 3 {
			t.Errorf("partition %s: %+v, want primary %s of 3", p.ID, p, want)
		}
	}
}

// Both nodes dial, by address or by name; one connection is kept, and it is the one
// that frames for the other's address take.
func TestOneConnectionPerPair(t *testing.T) {
	t.Run("addresses", func(t *testing.T) { oneConnection(t, func(addr string) string { return addr }) })
	t.Run("names", func(t *testing.T) {
		oneConnection(t, func(addr string) string { return strings.Replace(addr, "127.0.0.1", "localhost", 1) })
	})
}

func oneConnection(t *testing.T, called func(addr string) string) {
	g := newGrid(t, 2, 2)
	g.base.Peers = []string{called(g.addrs[0]), called(g.addrs[1])}
	g.up()
	for i, r := range g.nodes {
		g.until(func() bool {
			var peers, links, conns int
			_ = r.onLoop(func() {
				peers, conns = len(r.data.peers.byAddr), r.loop.Stats().Conns
				if p := r.data.peers.byAddr[g.addrs[1-i]]; p != nil {
					links = len(p.links)
				}
			})
			return peers == 1 && links == 1 && conns == 1
		}, "node %d does not settle on one connection", i)
	}
	submit(t, g.client(), "a", 10)
	g.verify("")
}

func TestBackupDiesAndReturns(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	submit(t, c, "before", 50)
	old := g.nodes[1].self
	g.kill(1)
	submit(t, c, "alone", 50) // the primary continues once it is alone by configuration
	if rec, _ := g.store.Get(t.Context(), "g-p0"); len(rec.InSync) != 1 || rec.Primary.ID != g.nodes[0].self {
		t.Fatalf("record %+v", rec)
	}
	if code, _ := g.nodes[0].get("/readyz"); code != 200 {
		t.Errorf("the node that serves alone is not ready: %d", code)
	}
	r := g.start(1)
	g.ready()
	if r.self == old {
		t.Fatal("the member id did not change")
	}
	for _, rc := range submit(t, c, "again", 50) {
		if rc.Copies != 2 {
			t.Fatalf("receipt %v, want 2 copies", rc)
		}
	}
	if res := g.verify(""); res.Orders != 150 {
		t.Fatalf("%d orders, want 150", res.Orders)
	}
}

func TestPrimaryDiesNothingIsLost(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuto, transport.KindNet} {
		t.Run(string(kind.Resolve()), func(t *testing.T) { primaryDies(t, kind) })
	}
}

func primaryDies(t *testing.T, kind transport.Kind) {
	g := newGrid(t, 2, 1)
	g.base.Transport = kind
	g.up()
	c := g.client()
	var acked atomic.Int64
	var ids sync.Map
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 300 {
				id := fmt.Sprintf("k%d-%d", k, i)
				if _, err := c.Submit(t.Context(), fix(id)); err != nil {
					t.Errorf("order %s: %v", id, err)
					return
				}
				ids.Store(id, true)
				acked.Add(1)
			}
		})
	}
	g.until(func() bool { return acked.Load() > 200 }, "no orders flow")
	g.kill(0)
	wg.Wait()
	g.start(0)
	g.ready()
	n := 0
	ids.Range(func(id, _ any) bool {
		n++
		if _, err := c.GetByClOrdID(t.Context(), id.(string)); err != nil {
			t.Errorf("acknowledged order %s: %v", id, err)
		}
		return true
	})
	if res := g.verify(""); int(res.Orders) != n || n != 1200 {
		t.Fatalf("%d orders in the log, %d acknowledged, want 1200", res.Orders, n)
	}
}

// The arbiter is needed for changes of membership only.
func TestArbiterAwayCostsNothing(t *testing.T) {
	g := newGrid(t, 2, 1)
	away := make(chan struct{})
	g.arb = &flaky{Arbiter: g.store, away: away}
	g.up()
	c := g.client()
	close(away)
	submit(t, c, "away", 200)
	if code, body := g.nodes[0].get("/healthz"); code != 200 {
		t.Fatalf("healthz %d %s", code, body)
	}
	g.kill(1)
	// Alone and without an arbiter it must not acknowledge.
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := c.Submit(ctx, fix("alone")); failed <- err }()
	g.until(func() bool {
		var s replica.Status
		_ = g.nodes[0].onLoop(func() { s = g.nodes[0].data.parts.list[0].replica.Status() })
		return s.Suspended && s.LastSeq > s.CommitSeq
	}, "the primary was not suspended")
	cancel()
	if err := <-failed; err == nil {
		t.Fatal("an order was acknowledged by a primary that may have been replaced")
	}
	if code, _ := g.nodes[0].get("/healthz"); code != 200 {
		t.Fatal("healthz depends on the arbiter or on the peer")
	}
}

// A member removed from inSync must discard its data: it joins again, as another member,
// and the rest of its process continues.
func TestRemovedMemberJoinsAnew(t *testing.T) {
	g := newGrid(t, 2, 2).up()
	c := g.client()
	submit(t, c, "before", 20)
	rec, err := g.store.Get(t.Context(), "g-p0")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := g.store.Get(t.Context(), "g-p1")
	rec.Epoch, rec.ChangeID = rec.Epoch+1, "by-a-test"
	rec.InSync = []arbiter.Member{rec.Primary}
	if _, err := g.store.CompareAndSwap(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool {
		now, _ := g.store.Get(t.Context(), "g-p0")
		return len(now.InSync) == 2 && now.InSync[1].PodName == "g-s0-1" && now.InSync[1].ID != g.nodes[1].self
	}, "the removed member did not join as another")
	submit(t, c, "after", 20)
	if now, _ := g.store.Get(t.Context(), "g-p1"); now.Epoch != other.Epoch {
		t.Errorf("the other partition changed: %+v", now)
	}
	g.ready()
	if res := g.verify(""); res.Orders != 40 {
		t.Fatalf("%d orders, want 40", res.Orders)
	}
	if s, err := g.nodes[1].pages.snapshot(); err != nil || s.Node.Restarts != 1 {
		t.Fatalf("restarts %+v, %v", s.Node, err)
	}
}

// A connection that is reset while both processes live must not cost a change of
// the configuration.
func TestResetConnectionIsNoDeath(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	before, _ := g.store.Get(t.Context(), "g-p0")
	for i := range 10 {
		err := g.nodes[i%2].onLoop(func() {
			for _, p := range g.nodes[i%2].data.peers.byAddr {
				for _, l := range p.links {
					l.conn.Close(nil)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, c, fmt.Sprintf("round%d", i), 5)
	}
	if now, _ := g.store.Get(t.Context(), "g-p0"); now.Epoch != before.Epoch {
		t.Fatalf("epoch %d, was %d", now.Epoch, before.Epoch)
	}
	g.verify("")
}

func TestGracefulStop(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	c := g.client()
	var acked atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				switch _, err := c.Submit(ctx, fix(fmt.Sprintf("k%d-%d", k, i))); {
				case err == nil:
					acked.Add(1)
				case ctx.Err() == nil:
					t.Errorf("order: %v", err)
					return
				}
			}
		})
	}
	g.until(func() bool { return acked.Load() > 200 }, "no orders flow")
	primary := g.nodes[0]
	primary.cancel() // SIGTERM
	await(t, primary.done)
	if primary.err != nil {
		t.Fatalf("Run returned %v", primary.err)
	}
	g.nodes[0] = nil
	after := acked.Load()
	g.until(func() bool { return acked.Load() > after+100 }, "the other node does not serve")
	cancel()
	wg.Wait()
	p := g.nodes[1].data.parts.list[0]
	g.until(func() bool { return p.inc.outlets[0].queue.Durable() >= p.store.Committed() }, "the sink lags")
	if res := g.verify(g.base.SinkDir); int64(res.Orders) < acked.Load() || res.Partitions[0].Sink.Orders != res.Orders {
		t.Fatalf("%d acknowledged, %d in the log, sink %+v", acked.Load(), res.Orders, res.Partitions[0].Sink)
	}
}

func TestConfigErrorsNameFlagValueAndRemedy(t *testing.T) {
	good := Config{Grid: "g", Pod: "p", Partitions: 1, Listen: ":0", Advertise: "127.0.0.1:7400", InsecurePeers: true, Arbiter: newGrid(t, 1, 1).store}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"grid":       {func(c *Config) { c.Grid = "" }, []string{"--grid", `""`, "1..200"}},
		"pod":        {func(c *Config) { c.Pod = "a b" }, []string{"--pod", `"a b"`}},
		"shard":      {func(c *Config) { c.Shard = 256 }, []string{"--shard", "256", "0..255"}},
		"partitions": {func(c *Config) { c.Partitions = 1025 }, []string{"--partitions", "1025", "1..1024"}},
		"replicas":   {func(c *Config) { c.Replicas = 4 }, []string{"--replicas", "4", "1..3"}},
		"minInSync":  {func(c *Config) { c.MinInSync = 3 }, []string{"--min-in-sync", "3", "1..2"}},
		"prefault":   {func(c *Config) { c.Prefault = 2 << 30 }, []string{"--prefault: value 2147483648", "what --memory-limit leaves to orders"}},
		"memory":     {func(c *Config) { c.MemoryLimit = 1 }, []string{"--memory-limit", "at least 64Mi"}},
		"listen":     {func(c *Config) { c.Listen = "7400" }, []string{"--listen", `"7400"`, "host:port"}},
		"advertise":  {func(c *Config) { c.Advertise = "host:7400" }, []string{"--advertise", `"host:7400"`, "ip:port"}},
		"lease":      {func(c *Config) { c.Lease = 1 }, []string{"--lease", "at least twice --beacon"}},
		"grace":      {func(c *Config) { c.Grace = 1 }, []string{"--grace", "more than --lease"}},
		"hand-over":  {func(c *Config) { c.HandOverDelay = -1 }, []string{"--hand-over-delay", "-1ns", "such as 5s"}},
		"learner":    {func(c *Config) { c.LearnerRate = 1 }, []string{"--learner-rate", "value 1,", "1Mi to 16Gi"}},
		"per client": {func(c *Config) { c.MaxConns, c.MaxClientConns = 100, 101 }, []string{"--max-connections-per-client", "value 101,", "0 (any number) to 100"}},
		"sink":       {func(c *Config) { c.Sink = "tape" }, []string{"--sink", `"tape"`, "hold, file"}},
		"file-sink":  {func(c *Config) { c.FileSinks = map[string]string{"file": "/d"} }, []string{"--file-sink", `"file"`, "--sink=file with --sink-dir"}},
		"sink-dir":   {func(c *Config) { c.Sink = SinkFile }, []string{"--sink-dir", "a directory"}},
		"arbiter":    {func(c *Config) { c.Arbiter = nil }, []string{"--arbiter", "kube"}},
		"peer key":   {func(c *Config) { c.InsecurePeers = false }, []string{`--peer-key-file: value ""`, "head -c 32 /dev/urandom", "--tls-cert", "--insecure-peers"}},
		"transport":  {func(c *Config) { c.Transport = "rdma" }, []string{`"rdma"`, "epoll"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := New(cfg)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}
