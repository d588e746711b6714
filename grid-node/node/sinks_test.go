package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
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

// Nothing is freed that a stalled sink lacks, also while another one progresses, until it
// is declared removed.
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
	g.until(func() bool {
		var page nodestatus.Memory
		_ = n.onLoop(func() { page = n.data.room.memory() })
		at := slices.IndexFunc(page.Sinks, func(s nodestatus.Sink) bool { return s.Name == "stuck" })
		return at >= 0 && page.Sinks[at].LagEntries > 0 && page.Sinks[at].LagSeconds > 0 && strings.Contains(page.Sinks[at].Error, "g-s0-0")
	}, "the node does not say that the sink fails, and lags")
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
	b, err := os.ReadFile(filepath.Join(stuck, "g-s0-0", "g-p0.log"))
	if err != nil || strings.Count(string(b), "\torder\t") != sent*1000 {
		t.Errorf("the sink that stood still has %d orders of %d, %v", strings.Count(string(b), "\torder\t"), sent*1000, err)
	}
}

// A grid of --sink=file, as before named sinks, continues as the sink called file: others
// are added to it one pod at a time and removed again, and it holds each order once.
func TestWriteBehindGoesOnAsFile(t *testing.T) {
	g := newGrid(t, 2, 1)
	dir, audit := t.TempDir(), t.TempDir()
	g.base.Sink, g.base.SinkDir = SinkFile, dir
	g.up()
	c := g.client()
	roll := func() {
		for i := range g.nodes {
			g.kill(i)
			g.start(i)
			g.ready()
		}
	}
	seen := func() string {
		m, readers := map[string]bool{}, []string(nil)
		for _, n := range g.nodes {
			var page nodestatus.Memory
			_ = n.onLoop(func() { page = n.data.room.memory() })
			for _, s := range page.Sinks {
				m[s.Name] = s.Error == "" && s.Seq > 0
			}
			readers = append(readers, page.Readers...)
		}
		slices.Sort(readers)
		return fmt.Sprint(m, slices.Compact(readers))
	}
	submit(t, c, "one", 200)
	g.sunk()
	g.until(func() bool { return seen() == "map[file:true] []" }, "the sink of before: %s", func() any { return seen() })

	g.base.FileSinks = map[string]string{"audit": audit}
	roll()
	submit(t, c, "two", 200)
	g.sunk()
	g.until(func() bool { return seen() == "map[audit:true file:true] [audit]" }, "with another: %s", func() any { return seen() })

	g.base.FileSinks, g.base.RemovedSinks = nil, []string{"audit"}
	roll()
	submit(t, c, "three", 200)
	g.sunk()
	g.until(func() bool { return seen() == "map[file:true] []" }, "without it again: %s", func() any { return seen() })
	if r := g.verify(dir); r.Partitions[0].Sink.Orders != 600 || r.Partitions[0].Sink.Duplicates != 0 || r.ExitCode() != verify.ExitEqual {
		t.Errorf("%+v", r.Partitions[0].Sink)
	}
}

// Files of a node whose sinks all have names are read, too: those of the first.
func TestNamedSinkIsReadThroughNodes(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.FileSinks = map[string]string{"audit": t.TempDir(), "desk": t.TempDir()}
	g.up()
	c := g.client()
	submit(t, c, "one", 200)
	g.sunk()
	r, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{NodeSinks: true})
	if err != nil || r.ExitCode() != verify.ExitEqual || r.Partitions[0].Sink.Orders != 200 {
		t.Errorf("%+v, %v", r, err)
	}
}
