package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/race"
)

// place names the pods that are to hold a partition, as the operator does.
func (g *grid) place(index int, preferred int, pods ...int) {
	g.t.Helper()
	if _, err := g.store.SetSpec(PartitionName("g", index), func(s *arbiter.Spec) error {
		s.Pods = nil
		for _, i := range pods {
			s.Pods = append(s.Pods, fmt.Sprintf("g-s0-%d", i))
		}
		s.PreferredPod = fmt.Sprintf("g-s0-%d", preferred)
		return nil
	}); err != nil {
		g.t.Fatal(err)
	}
}

// holds is what node i has open.
func (g *grid) holds(i int) (ids []string) {
	g.t.Helper()
	if err := g.nodes[i].onLoop(func() {
		for _, p := range g.nodes[i].data.parts.list {
			ids = append(ids, p.id.String())
		}
	}); err != nil {
		g.t.Fatal(err)
	}
	return ids
}

func (g *grid) wantHeld(want ...[]string) {
	g.t.Helper()
	g.until(func() bool {
		for i := range want {
			if !slices.Equal(g.holds(i), want[i]) {
				return false
			}
		}
		return true
	}, "the nodes hold %v, want %v", func() any {
		var got [][]string
		for i := range want {
			got = append(got, g.holds(i))
		}
		return got
	}, want)
}

// placed is a grid of three nodes of which each of two partitions has two.
func placed(t *testing.T) *grid {
	g := newGrid(t, 3, 2)
	g.base.Replicas, g.base.HandOverDelay = 2, 50*time.Millisecond
	for i := range 2 {
		if _, err := g.store.SetSpec(PartitionName("g", i), func(s *arbiter.Spec) error { s.Replicas = 2; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	g.place(0, 0, 0, 1)
	g.place(1, 1, 1, 2)
	return g.up()
}

// A node opens exactly the partitions whose records name it, when it starts and while it
// runs; it closes those it no longer has a copy of, and releases their memory.
func TestNodesHoldWhatRecordsSay(t *testing.T) {
	g := placed(t)
	g.wantHeld([]string{"p0"}, []string{"p0", "p1"}, []string{"p1"})
	submit(t, g.client(), "before", 200)

	g.place(0, 2, 1, 2)
	g.wantHeld(nil, []string{"p0", "p1"}, []string{"p0", "p1"})
	g.ready()
	g.until(func() (none bool) {
		_ = g.nodes[0].onLoop(func() { none = g.nodes[0].data.parts.budget.Used() == 0 })
		return none
	}, "the memory of the closed partition is not given back")
	g.until(func() bool {
		rec := g.records()[0]
		return rec.Primary.PodName == "g-s0-2" && len(rec.InSync) == 2
	}, "the partition is on %+v", func() any { return g.records()[0].InSync })
	submit(t, g.client(), "after", 200)
	g.verify("")

	// And back: another member than the one that was there.
	before := g.nodes[0].self
	g.place(0, 0, 0, 1)
	g.wantHeld([]string{"p0"}, []string{"p0", "p1"}, []string{"p1"})
	g.until(func() bool { return g.records()[0].Primary.PodName == "g-s0-0" }, "the partition is not back")
	if id := g.records()[0].Primary.ID; id == before {
		t.Errorf("member %s came back as the same", id)
	}
	submit(t, g.client(), "back", 200)
	g.verify("")
}

// Partitions move while orders flow: none fails, none is lost, none is there twice.
func TestMovesUnderLoad(t *testing.T) {
	g := placed(t)
	var wg sync.WaitGroup
	var stop atomic.Bool
	var mu sync.Mutex
	var failed []error
	var receipts []client.Receipt
	for w := range 3 {
		c := g.client()
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				r, err := c.Submit(context.Background(), fix(fmt.Sprintf("L%d-%d", w, n)))
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				} else {
					receipts = append(receipts, r)
				}
				mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { stop.Store(true); wg.Wait() })
	pairs := [][]int{{0, 1}, {1, 2}, {0, 2}}
	rng := rand.New(rand.NewPCG(16, 1))
	for range 8 {
		index := rng.IntN(2)
		to := pairs[rng.IntN(3)]
		g.place(index, to[rng.IntN(2)], to...)
		g.until(func() bool {
			rec := g.records()[index]
			return len(rec.InSync) == 2 && rec.Primary.PodName == rec.Spec.PreferredPod && !slices.ContainsFunc(rec.InSync, func(m arbiter.Member) bool { return !slices.Contains(rec.Spec.Pods, m.PodName) })
		}, "partition %d is on %+v", index, func() any { return g.records()[index].InSync })
	}
	stop.Store(true)
	wg.Wait()
	for _, err := range failed {
		t.Errorf("an order failed: %v", err)
	}
	c := g.client()
	for _, r := range receipts {
		if _, err := c.Get(t.Context(), r.ID()); err != nil {
			t.Fatalf("order %s, of %d: %v", r.ID(), len(receipts), err)
		}
	}
	g.verify("")
}

// A request for a partition that was closed is sent on to where it is.
func TestClosedPartitionSendsClientsOn(t *testing.T) {
	g := placed(t)
	r := dialRaw(t, g.addrs[0])
	if _, err := r.Write(hello(wire.RoleClient, 0, "t", "")); err != nil {
		t.Fatal(err)
	}
	r.next()
	g.place(0, 1, 1, 2)
	g.wantHeld(nil)
	g.until(func() bool {
		return g.table(g.addrs[0]).Parts[0].Epoch == g.records()[0].Epoch && g.records()[0].Primary.PodName == "g-s0-1"
	}, "the table is behind")
	if _, err := r.Write(wire.AppendSubmit(nil, 0, &wire.Submit{ClientSeq: 7, Payload: fix("x")})); err != nil {
		t.Fatal(err)
	}
	var np wire.NotPrimary
	if err := wire.DecodeNotPrimary(r.next(), &np); err != nil || np.RequestID != 7 || string(np.Address) != g.addrs[1] {
		t.Fatalf("%+v, %v; want %s", np, err, g.addrs[1])
	}
}

// A record from a backup, which names others, removes no copy from a member that is in
// sync by its own knowledge; nor does a deleted record.
func TestOldRecordTakesNoCopy(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.up()
	submit(t, g.client(), "o", 50)
	rec := g.records()[0]
	old := rec
	old.Epoch, old.ChangeID, old.Spec.Pods = 1, "c-of-the-backup", []string{"g-s0-8", "g-s0-9"}
	old.Primary = arbiter.Member{ID: "g-s0-8/0000000000000008", PodName: "g-s0-8", BootID: "0000000000000008", Address: "10.0.0.8:7400"}
	old.InSync = []arbiter.Member{old.Primary}
	for i := range 2 {
		n := g.nodes[i]
		for range 3 { // the watch shows it, and time passes
			if err := n.onLoop(func() {
				n.data.parts.hear(arbiter.News{All: true, Records: []arbiter.Record{old}}, nil)
				n.data.parts.tick(n.loop.Clock().Mono())
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got := g.holds(i); len(got) != 1 {
			t.Errorf("node %d closed the partition: %v", i, got)
		}
	}
	if err := g.store.Delete(rec.Name); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		g.until(func() (gone bool) {
			_ = g.nodes[i].onLoop(func() { gone = g.nodes[i].data.parts.list[0].record.gone })
			return gone
		}, "node %d does not know that the record is gone", i)
		if got := g.holds(i); len(got) != 1 {
			t.Errorf("node %d closed the partition of the deleted record: %v", i, got)
		}
	}
}

// A pod named in a thousand partitions opens them, within its memory and beside those it
// had, and closes them all.
func TestManyPartitions(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Partitions = wire.MaxPartitions
	g.up()
	c := g.client()
	submit := func(what string) { // to the one that has a primary all the time
		t.Helper()
		for i := range 20 {
			if _, err := c.SubmitTo(t.Context(), 0, fix(fmt.Sprintf("%s-%d", what, i))); err != nil {
				t.Fatalf("%s, order %d: %v", what, i, err)
			}
		}
	}
	submit("before")
	many := 1000
	if race.Enabled { // a tenth of the work takes as long
		many = 100
	}
	var names []string
	for i := range many {
		name := PartitionName("g", 1+i)
		names = append(names, name)
		// Only a pod that never starts may claim them: they stay as they are.
		if err := g.store.Create(name, arbiter.Spec{Grid: "g", Partition: 1 + i, Shard: 1, Replicas: 1, MinInSync: 1, PreferredPod: "g-s9-9", Pods: []string{"g-s0-0"}}); err != nil {
			t.Fatal(err)
		}
	}
	g.until(func() bool { return len(g.holds(0)) == many+1 }, "%d are open", func() any { return len(g.holds(0)) })
	submit("with")
	code, body := g.nodes[0].get(nodestatus.Path)
	var said nodestatus.Node
	if err := json.Unmarshal([]byte(body), &said); err != nil || code != http.StatusOK || len(said.Partitions) != many+1 || said.Partitions[0].Bytes < 40*100 {
		t.Errorf("/status: %d, %v, %d partitions", code, err, len(said.Partitions))
	}
	for _, name := range names {
		if _, err := g.store.SetSpec(name, func(s *arbiter.Spec) error { s.Pods = []string{"g-s9-9"}; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	// It keeps what it has claimed in the meantime: it is the only copy.
	g.until(func() bool {
		claimed := 0
		for _, r := range g.store.List() {
			if len(r.InSync) > 0 {
				claimed++
			}
		}
		return len(g.holds(0)) == claimed
	}, "%d are still open", func() any { return len(g.holds(0)) })
	submit("after")
}

// A partition that is named and not named in quick succession ends as its last record,
// with one writer of its sink's file at a time.
func TestOpenedAndClosedRapidly(t *testing.T) {
	g := newGrid(t, 3, 1)
	g.base.Replicas, g.base.Sink, g.base.SinkDir = 2, SinkFile, t.TempDir()
	if _, err := g.store.SetSpec(PartitionName("g", 0), func(s *arbiter.Spec) error { s.Replicas = 2; return nil }); err != nil {
		t.Fatal(err)
	}
	g.place(0, 0, 0, 1)
	g.up()
	c := g.client()
	submit(t, c, "a", 50)
	for i := range 40 {
		g.place(0, 0, [][]int{{0, 2}, {0, 1}, {0, 1, 2}}[i%3]...)
		if i%4 == 0 {
			submit(t, c, fmt.Sprintf("b%d", i), 5)
		} else {
			time.Sleep(time.Duration(i%4) * time.Millisecond)
		}
	}
	g.place(0, 0, 0, 2)
	g.wantHeld([]string{"p0"}, nil, []string{"p0"})
	g.until(func() bool { return len(g.records()[0].InSync) == 2 }, "the copies are not there")
	submit(t, c, "c", 50)
	g.verify(g.base.SinkDir)
}

// Without the records a node serves nothing, reports that, and opens its partitions when
// they arrive.
func TestRecordsThatComeLate(t *testing.T) {
	g := newGrid(t, 1, 1)
	late := &latecomer{Arbiter: g.arb, come: make(chan struct{})}
	g.arb = late
	g.start(0)
	g.until(func() bool { // it waits for them before it listens, and not forever
		c, err := net.Dial("tcp", g.addrs[0])
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, "it does not listen")
	g.until(func() bool {
		r := g.readiness(0)
		return !r.Ready && len(r.Missing) == 1 && strings.Contains(r.Missing[0], "have not been read")
	}, "it is %+v", func() any { return g.readiness(0) })
	r := dialRaw(t, g.addrs[0])
	if _, err := r.Write(wire.AppendSubmit(hello(wire.RoleClient, 0, "t", ""), 0, &wire.Submit{ClientSeq: 7, Payload: fix("x")})); err != nil {
		t.Fatal(err)
	}
	r.next()
	var np wire.NotPrimary
	if err := wire.DecodeNotPrimary(r.next(), &np); err != nil || np.RequestID != 7 || len(np.Address) != 0 {
		t.Fatalf("%+v, %v", np, err)
	}
	close(late.come)
	g.ready()
	submit(t, g.client(), "o", 5)
}

// latecomer is an arbiter whose watch is silent for a while.
type latecomer struct {
	arbiter.Arbiter
	come chan struct{}
}

func (l *latecomer) Watch(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	select {
	case <-l.come:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.Arbiter.Watch(ctx, grid, f)
}
