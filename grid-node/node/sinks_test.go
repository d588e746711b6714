package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client/verify"
)

// Two sinks of one grid hold every order, each in files of its own, through a primary that is
// killed.
func TestTwoSinks(t *testing.T) {
	g := newGrid(t, 2, 1)
	dirs := map[string]string{"": t.TempDir(), "audit": t.TempDir()}
	g.base.Sink, g.base.SinkDir, g.base.FileSinks = SinkFile, dirs[""], map[string]string{"audit": dirs["audit"]}
	g.up()
	c := g.client()
	submit(t, c, "before", 300)
	g.sunk()
	g.kill(0)
	submit(t, c, "after", 300)
	g.start(0)
	g.ready()
	g.sunk()
	for name, dir := range dirs {
		if r := g.verify(dir); r.Partitions[0].Sink.Orders != 600 || r.ExitCode() != verify.ExitEqual {
			t.Errorf("sink %q: %+v", name, r.Partitions[0].Sink)
		}
	}
}

// Nothing is freed that a sink which stands still does not hold, also while another one goes
// on, until a person says that it was removed.
func TestASinkThatStandsStillHoldsTheLog(t *testing.T) {
	g := newGrid(t, 1, 1)
	dir, stuck := t.TempDir(), t.TempDir()
	g.base.Sink, g.base.SinkDir, g.base.FileSinks = SinkFile, dir, map[string]string{"stuck": stuck}
	g.base.MemoryLimit, g.base.Retention, g.base.HighWatermark = 64<<20, RetentionFreeDownstream, 20
	if err := os.WriteFile(filepath.Join(stuck, "g-s0-0"), nil, 0o600); err != nil { // where its directory should be
		t.Fatal(err)
	}
	g.up()
	n, c := g.nodes[0], g.client()
	freed := func() (seq uint64) {
		_ = n.onLoop(func() { seq = n.data.parts.list[0].replica.Status().FreedSeq })
		return seq
	}
	sent := 0
	fill := func(full func() bool) {
		for ; !full() && sent < 60; sent++ {
			if err := burst(t, c, "F"+time.Duration(sent).String(), 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	memory := func() (used int64) {
		_ = n.onLoop(func() { used = n.data.parts.budget.Used() })
		return used
	}
	high := n.cfg.retention(n.data.parts.plan.orders).High
	fill(func() bool { return memory() > high+high/2 })
	first := n.data.parts.list[0].inc.outlets[0].queue
	g.until(func() bool { return first.Durable() == n.data.parts.list[0].store.Committed() }, "the sink that works lags")
	if memory() <= high || freed() != 0 {
		t.Fatalf("%d bytes used of %d, freed up to %d: the other sink holds nothing", memory(), high, freed())
	}
	if err := os.Remove(filepath.Join(stuck, "g-s0-0")); err != nil {
		t.Fatal(err)
	}
	second := n.data.parts.list[0].inc.outlets[1].queue
	g.until(func() bool { return second.Durable() == n.data.parts.list[0].store.Committed() }, "the sink that stood still does not go on")
	g.until(func() bool { return freed() > 0 }, "nothing is freed once both sinks have it")
	b, err := os.ReadFile(filepath.Join(stuck, "g-s0-0", "g-s0p0.log"))
	if err != nil || strings.Count(string(b), "\torder\t") != sent*1000 {
		t.Errorf("the sink that stood still has %d orders of %d, %v", strings.Count(string(b), "\torder\t"), sent*1000, err)
	}
}
