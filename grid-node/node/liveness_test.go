package node

import (
	"cmp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// stall blocks the data loop of node i until the function returned is called.
func (g *grid) stall(i int) (resume func()) {
	g.t.Helper()
	began, release := make(chan struct{}), make(chan struct{})
	g.nodes[i].loop.Post(func() { close(began); <-release })
	await(g.t, began)
	var once atomic.Bool
	resume = func() {
		if once.CompareAndSwap(false, true) {
			close(release)
		}
	}
	g.t.Cleanup(resume) // before the node is killed
	return resume
}

func (r *running) vitals(partition int) replica.VitalsCounters {
	return r.live.vitalsOf(wire.PartitionID(partition)).Counters()
}

func (g *grid) records() (recs []arbiter.Record) {
	for i := range g.partitions {
		rec, err := g.store.Get(g.t.Context(), PartitionName("g", i))
		if err != nil {
			g.t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

// A loop that is busy for twice the grace is not dead: there is no take-over from it, and
// it is not dropped.
func TestStalledLoopIsNotDead(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuto, transport.KindNet} {
		t.Run(cmp.Or(string(kind), "default"), func(t *testing.T) { stalledLoop(t, kind) })
	}
}

func stalledLoop(t *testing.T, kind transport.Kind) {
	g := newGrid(t, 2, 2)
	g.base.Transport = kind
	// Stuck for more than 10 s: a busy machine has time for the beacons counted below.
	g.base.Beacon, g.base.Lease, g.base.Grace = 50*time.Millisecond, 700*time.Millisecond, 2500*time.Millisecond
	g.up()
	c := g.client()
	submit(t, c, "before", 10)
	before := g.records()
	if before[0].Primary.PodName != "g-s0-0" || before[1].Primary.PodName != "g-s0-1" {
		t.Fatalf("primaries %+v", before)
	}
	// A liveness connection is accepted by the data loop: both must be open.
	g.until(func() bool { return g.nodes[0].vitals(0).Answered > 0 && g.nodes[0].vitals(1).Heard > 0 }, "no beacons")
	resume := g.stall(0)
	led, heard := g.nodes[0].vitals(0).Answered, g.nodes[0].vitals(1).Heard
	const graces = 2 * 2500 / 50 // beacons in twice the grace
	g.until(func() bool {
		return g.nodes[0].vitals(0).Answered > led+graces && g.nodes[0].vitals(1).Heard > heard+graces
	}, "the liveness thread stops with the loop: %+v", func() any { return []any{g.nodes[0].vitals(0), g.nodes[0].vitals(1), g.nodes[1].vitals(1)} })
	resume()
	submit(t, c, "after", 10)
	for i, now := range g.records() {
		if now.Epoch != before[i].Epoch {
			t.Errorf("partition %d: epoch %d, was %d: a busy loop was taken for a dead process", i, now.Epoch, before[i].Epoch)
		}
	}
	g.verify("")
}

// A loop that hangs permanently is replaced although its liveness thread is alive.
func TestHungLoopIsReplaced(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Beacon, g.base.Lease, g.base.Grace = 10*time.Millisecond, 60*time.Millisecond, 100*time.Millisecond
	g.up()
	c := g.client()
	submit(t, c, "before", 10)
	resume := g.stall(0)
	g.until(func() bool { return g.records()[0].Primary.PodName == "g-s0-1" }, "no take-over: %+v", func() any { return g.records() })
	submit(t, c, "during", 10)
	resume()
	g.ready()
	submit(t, c, "after", 10)
	if res := g.verify(""); res.Orders != 30 {
		t.Fatalf("%d orders, want 30", res.Orders)
	}
}

// Broken liveness connections are redialled, and no member is suspected.
func TestLivenessConnectionsComeBack(t *testing.T) {
	g := newGrid(t, 2, 2).up()
	before := g.records()
	for round := range 5 {
		for i, r := range g.nodes {
			answered := r.vitals(i).Answered
			done := make(chan struct{})
			r.live.loop.Post(func() {
				for _, p := range r.live.pulses {
					if p.conn != nil {
						p.conn.Close(nil)
					}
				}
				close(done)
			})
			await(t, done)
			g.until(func() bool { return r.vitals(i).Answered > answered+2 }, "round %d, node %d: no beacon is answered", round, i)
		}
	}
	for i, now := range g.records() {
		if now.Epoch != before[i].Epoch {
			t.Errorf("partition %d: epoch %d, was %d", i, now.Epoch, before[i].Epoch)
		}
	}
	s, err := g.nodes[0].pages.snapshot()
	if err != nil || s.Liveness.Links[nodestatus.ProtectionKey] != 2 || s.Liveness.Dials < 5 {
		t.Fatalf("%+v, %v: want a link each way, and one attempt a round", s.Liveness, err)
	}
}

// While a learner that is far behind does not read, the orders of its primary flow, and
// its unsent feed stays within the window.
func TestSlowLearnerCostsItsWindowOnly(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Grace = 2 * time.Second // the learner's loop hangs meanwhile
	g.up()
	g.kill(1)
	f := newFastClient(t, g)
	for range 40_000 / 500 {
		f.batch(500)
	}
	g.start(1)
	primary := g.nodes[0]
	fed := func() (n uint64) {
		_ = primary.onLoop(func() { n = primary.data.parts.list[0].replica.Counters().LearnerBytes })
		return n
	}
	g.until(func() bool { return fed() > 0 }, "nothing is fed")
	resume := g.stall(1)
	// Everything until the window is full; its loop reads nothing.
	g.until(func() bool {
		before := fed()
		time.Sleep(50 * time.Millisecond)
		return fed() == before
	}, "the feed does not stop")
	var held int
	_ = primary.onLoop(func() {
		if l := primary.data.peers.byAddr[g.addrs[1]].bulk.link; l != nil {
			held = l.conn.Buffered()
		}
	})
	if held > bulkHardOut {
		t.Errorf("%d bytes wait for the learner, allowed %d", held, bulkHardOut)
	}
	for range 100 {
		f.batch(10)
	}
	resume()
	g.ready()
	if res := g.verify(""); res.Orders != 41_000 {
		t.Fatalf("%d orders, want 41000", res.Orders)
	}
}
