package node

import (
	"encoding/json"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// The page tells one process from the next under the same pod name, and what each goes by.
func TestStatusPage(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit(t, g.client(), "order", 3)
	page := func(i int) (nodestatus.Node, nodestatus.Partition) {
		t.Helper()
		var s nodestatus.Node
		code, body := g.nodes[i].get(nodestatus.Path)
		if err := json.Unmarshal([]byte(body), &s); code != 200 || err != nil || s.Find("g-p0") == nil {
			t.Fatalf("status %d, %v: %s", code, err, body)
		}
		return s, *s.Find("g-p0")
	}
	rec, err := g.store.Get(t.Context(), "g-p0")
	if err != nil {
		t.Fatal(err)
	}
	s, p := page(0)
	if s.Grid != "g" || s.Pod != rec.Primary.PodName || s.BootID != rec.Primary.BootID || s.Stopping {
		t.Errorf("node %+v, record %+v", s, rec.Primary)
	}
	if p.Partition != "p0" || p.Member != rec.Primary.ID || p.BootID != rec.Primary.BootID || p.Role != "primary" || p.Epoch != rec.Epoch ||
		p.Lineage != 1 || p.ChangeID != rec.ChangeID || p.Primary != rec.Primary.ID || len(p.InSync) != 2 || p.LastSeq < 3 || p.CommitSeq > p.LastSeq {
		t.Errorf("partition %+v, record %+v", p, rec)
	}
	before, _ := page(1)
	g.kill(1)
	g.start(1)
	g.ready()
	after, p := page(1)
	if after.Pod != before.Pod || after.BootID == before.BootID || p.Member != after.Pod+"/"+after.BootID || p.Role != "backup" {
		t.Errorf("after a restart %+v, before %+v", after, before)
	}
}
