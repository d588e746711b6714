package node

import (
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestSinkAge: entries that a sink lacks have an age where they are written, and nowhere
// else: not on a copy, and not with the sink hold. When all orders are downstream the age
// is 0, although the log grows by the sink's own position.
func TestSinkAge(t *testing.T) {
	for _, sink := range []string{SinkFile, SinkHold} {
		t.Run(sink, func(t *testing.T) {
			g := newGrid(t, 2, 1)
			if g.base.Sink = sink; sink == SinkFile {
				g.base.SinkDir = t.TempDir()
			}
			g.up()
			submit(t, g.client(), "AGE", 20)
			if sink == SinkFile {
				g.until(func() bool {
					p := g.nodes[0].data.parts.list[0]
					done := false
					_ = g.nodes[0].onLoop(func() { s := p.replica.Status(); done = s.CursorSeq >= s.DataSeq })
					return done
				}, "the orders do not come downstream")
			}
			g.settled()
			_, primary := g.nodes[0].get("/metrics")
			_, backup := g.nodes[1].get("/metrics")
			const metric = "ordergrid_node_sink_age_seconds{"
			if strings.Contains(backup, metric) {
				t.Error("a copy, which writes nothing, has an age of what it has not written")
			}
			switch has := strings.Contains(primary, metric); {
			case has != (sink == SinkFile):
				t.Errorf("the primary shows the age: %v", has)
			case has && !strings.Contains(primary, metric+`partition="p0",sink="file"} 0`+"\n"):
				t.Error("all orders are downstream, and the age is not 0")
			}
		})
	}
}

// TestPositionsAreFew: the sink's position is an entry of the log and a line of the file.
// Reported after each batch there was one for every order at a moderate rate.
func TestPositionsAreFew(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	n, c := g.nodes[0], g.client()
	began := time.Now()
	const orders = 300
	for i := range orders {
		submit(t, c, "POS"+string(rune('A'+i%26))+time.Duration(i).String(), 1)
		if i%3 == 0 {
			time.Sleep(3 * time.Millisecond) // the sink is idle in between
		}
	}
	g.until(func() (ok bool) {
		_ = n.onLoop(func() { s := n.data.parts.list[0].replica.Status(); ok = s.CursorSeq >= s.DataSeq })
		return ok
	}, "the orders do not come downstream")
	took := time.Since(began)
	positions := 0
	_ = n.onLoop(func() {
		st := n.data.parts.list[0].store
		last, _ := st.Last()
		for seq := uint64(1); seq <= last; seq++ {
			if order.Kind(st.Get(seq)[4]) == order.KindCursor {
				positions++
			}
		}
	})
	t.Logf("%d orders and %d positions in %v", orders, positions, took)
	if positions == 0 || positions > int(took/time.Second)+2 {
		t.Errorf("%d positions in %v, want at most one a second", positions, took)
	}
}
