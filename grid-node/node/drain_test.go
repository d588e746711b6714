package node

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// load submits from four goroutines until stop is called; stop returns how many
// orders were acknowledged. Any order that fails fails the test.
func (g *grid) load(c *client.Client) (acked *atomic.Int64, stop func() int64) {
	acked = &atomic.Int64{}
	ctx, cancel := context.WithCancel(g.t.Context())
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := c.Submit(g.t.Context(), fix(fmt.Sprintf("load%d-%d", k, i))); err != nil {
					g.t.Errorf("order %d of %d: %v", i, k, err)
					return
				}
				acked.Add(1)
			}
		})
	}
	return acked, func() int64 { cancel(); wg.Wait(); return acked.Load() }
}

// alarms of a node; its loop may have ended.
func (r *running) alarmCounts() (counts map[string]uint64) {
	if r.onLoop(func() { counts = maps.Clone(r.counters.Alarms) }) != nil {
		counts = r.counters.Alarms
	}
	return counts
}

// A planned stop hands the primaries over and retires the process: no order fails, without
// a take-over or a drop.
func TestPlannedStopFailsNoOrder(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.base.Lease, g.base.Grace = 2*time.Second, 3*time.Second // a busy machine is not to be suspected
	g.up()
	c := g.client()
	acked, stop := g.load(c)
	for round := range 4 {
		before := acked.Load()
		g.until(func() bool { return acked.Load() > before+200 }, "no orders flow")
		i := round % 2
		leaves, stays := g.nodes[i], g.nodes[1-i]
		leaves.cancel() // SIGTERM
		await(t, leaves.done)
		if leaves.err != nil {
			t.Fatalf("Run returned %v", leaves.err)
		}
		g.nodes[i] = nil
		if d := leaves.counters.Drains; d[drainLeft] != 2 || len(d) != 1 {
			t.Errorf("round %d: drains %v, want 2 left in good order", round, d)
		}
		handed, retired := leaves.alarmCounts(), stays.alarmCounts()
		if handed[string(replica.AlarmHandOver)] == 0 || retired[string(replica.AlarmRetired)] == 0 {
			t.Errorf("round %d: alarms of the one that leaves %v, of the other %v", round, handed, retired)
		}
		for _, kind := range []replica.AlarmKind{replica.AlarmTakeOver, replica.AlarmMemberDropped} {
			if n := handed[string(kind)] + retired[string(kind)]; n != 0 {
				t.Errorf("round %d: %d alarms %s", round, n, kind)
			}
		}
		for i, rec := range g.records() {
			if len(rec.InSync) != 1 || rec.Primary.ID != rec.InSync[0].ID || rec.Primary.PodName != fmt.Sprintf("g-s0-%d", (round+1)%2) {
				t.Errorf("round %d, partition %d: %+v", round, i, rec)
			}
		}
		g.start(i)
		g.ready()
	}
	n := stop()
	res := g.verify("")
	if int64(res.Orders) != n {
		t.Fatalf("%d orders in the log, %d acknowledged", res.Orders, n)
	}
}

// lonely returns a node of two that holds the only copies and is draining.
func lonely(t *testing.T, change func(*grid)) (*grid, *running) {
	g := newGrid(t, 2, 2)
	g.base.DrainTimeout = time.Minute
	if change != nil {
		change(g)
	}
	g.up()
	g.kill(1)
	c := g.client()
	submit(t, c, "alone", 10)
	r := g.nodes[0]
	r.cancel()
	g.until(func() bool { return r.alarmCounts()[string(replica.AlarmNoTarget)] >= 2 }, "the lack of a hand-over target was not reported")
	return g, r
}

// left waits for the end and checks its outcome.
func (g *grid) left(r *running, outcome string) {
	g.t.Helper()
	await(g.t, r.done)
	if r.err != nil {
		g.t.Fatalf("Run returned %v", r.err)
	}
	g.nodes[0] = nil
	if d := r.counters.Drains; d[outcome] != 2 || len(d) != 1 {
		g.t.Fatalf("drains %v, want 2 %s", d, outcome)
	}
}

// The only copy keeps serving, new clients too, until another has caught up.
func TestDrainOfTheOnlyCopyWaits(t *testing.T) {
	g, r := lonely(t, nil)
	if got := g.readiness(0); got.Ready || !strings.Contains(strings.Join(got.Missing, " "), "stopping") {
		t.Errorf("a node that is to go is ready: %+v", got)
	}
	submit(t, g.client(), "still", 10)
	g.start(1)
	g.left(r, drainLeft)
	g.ready()
	if res := g.verify(""); res.Orders != 20 {
		t.Fatalf("%d orders, want 20", res.Orders)
	}
}

func TestDrainEndsAtASecondSignal(t *testing.T) {
	g, r := lonely(t, nil)
	r.StopNow()
	r.StopNow()
	g.left(r, drainStopped)
}

func TestDrainEndsInTime(t *testing.T) {
	g, r := lonely(t, func(g *grid) { g.base.DrainTimeout = time.Second })
	g.left(r, drainStopped)
}

// When the grid is being deleted no node waits.
func TestDrainEndsWithItsRecord(t *testing.T) {
	gone := make(chan struct{})
	g, r := lonely(t, func(g *grid) { g.arb = &deleted{Arbiter: g.store, gone: gone} })
	close(gone)
	g.left(r, drainStopped)
}

// The deletion of the record may be seen before the signal, and then nothing at all: the
// right to read it goes with the grid.
func TestDrainOfAGridThatWasDeletedBefore(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.DrainTimeout = time.Minute
	gone, away := make(chan struct{}), make(chan struct{})
	g.arb = &flaky{Arbiter: &deleted{Arbiter: g.store, gone: gone}, away: away}
	g.up()
	g.kill(1)
	submit(t, g.client(), "alone", 10)
	r := g.nodes[0]
	close(gone)
	_ = r.onLoop(r.data.parts.readRecords)
	g.until(func() bool {
		n := 0
		_ = r.onLoop(func() {
			for _, p := range r.data.parts.list {
				if p.record.gone {
					n++
				}
			}
		})
		return n == 2
	}, "the deletion is not noticed")
	close(away)
	r.cancel()
	g.left(r, drainStopped)
}

// deleted is an arbiter whose records are gone.
type deleted struct {
	arbiter.Arbiter
	gone chan struct{} // closed when they are
}

func (d *deleted) Get(ctx context.Context, name string) (arbiter.Record, error) {
	select {
	case <-d.gone:
		return arbiter.Record{}, fmt.Errorf("%w: %s", arbiter.ErrNotFound, name)
	default:
		return d.Arbiter.Get(ctx, name)
	}
}

// A replica that has ended answers nothing; its node does, so that no client
// waits.
func TestEndedReplicaSendsClientsOn(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	backup := g.nodes[1]
	if err := backup.onLoop(func() { backup.data.parts.list[0].ended = true }); err != nil {
		t.Fatal(err)
	}
	r := dialRaw(t, g.addrs[1])
	b := hello(wire.RoleClient, 0, "t", "")
	b = wire.AppendSubmit(b, 0, &wire.Submit{ClientSeq: 7, Slot: 3, Payload: fix("x")})
	b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: 8, IDLo: 1, Attempt: 1})
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	r.next()
	for _, want := range []uint64{7, 8} {
		var m wire.NotPrimary
		if err := wire.DecodeNotPrimary(r.next(), &m); err != nil || m.RequestID != want || string(m.Address) != g.addrs[0] || m.Epoch == 0 {
			t.Fatalf("request %d: %+v, %v", want, m, err)
		}
	}
}
