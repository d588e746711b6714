package node

import (
	"strings"
	"testing"
)

// Every copy inspects its committed log, including entries of an earlier primary, and
// holds nothing when it is done.
func TestEveryCopyInspectsItsLog(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	inspected := func() {
		t.Helper()
		g.settled()
		for i, n := range g.nodes {
			p := n.data.parts.list[0]
			g.until(func() bool { return p.inc.inspector.Seq() == p.store.Committed() }, "node %d has not read its log", i)
			if broken := p.inc.inspector.Broken(); broken != 0 {
				t.Errorf("node %d: %d entries of a sound log are broken", i, broken)
			}
			if _, page := n.get("/metrics"); !strings.Contains(page, `ordergrid_node_log_broken_total{partition="p0"} 0`) ||
				strings.Contains(page, `ordergrid_node_log_inspected_sequence{partition="p0"} 0`) {
				t.Errorf("node %d does not show it", i)
			}
		}
	}
	submit(t, c, "before", 300)
	inspected()
	g.kill(0)
	submit(t, c, "after", 300)
	g.start(0)
	g.ready()
	inspected()
}
