package node

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// foreign makes the record of partition n, on another shard, claimed by its first pod with
// the second in sync.
func (g *grid) foreign(n, shard int) string {
	g.t.Helper()
	name := PartitionName("g", n)
	if err := g.store.Create(name, arbiter.Spec{Grid: "g", Partition: n, Shard: shard, Replicas: 2, MinInSync: 1, PreferredPod: fmt.Sprintf("g-s%d-0", shard)}); err != nil {
		g.t.Fatal(err)
	}
	r, err := g.store.Get(g.t.Context(), name)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := range 2 {
		m := arbiter.Member{PodName: fmt.Sprintf("g-s%d-%d", shard, i), BootID: fmt.Sprintf("%016x", 16+i), Address: fmt.Sprintf("10.0.%d.%d:7400", shard, i)}
		m.ID = m.PodName + "/" + m.BootID
		r.InSync = append(r.InSync, m)
	}
	r.Primary = r.InSync[0]
	for e := range uint64(2) { // the second joins later
		next := r
		next.Epoch, next.Lineage, next.ChangeID, next.InSync = e+1, 1, fmt.Sprintf("c%d", e), r.InSync[:e+1]
		now, err := g.store.CompareAndSwap(g.t.Context(), next)
		if err != nil {
			g.t.Fatal(err)
		}
		r.Version = now.Version
	}
	return name
}

func idsOf(m *wire.Table) (ids []string) {
	for _, p := range m.Parts {
		ids = append(ids, p.Partition.String())
	}
	return ids
}

// A node lists all partitions of the grid for clients, by their records: those that are
// created, changed and deleted while it runs.
func TestTableOfTheWholeGrid(t *testing.T) {
	g := newGrid(t, 1, 2)
	g.base.Partitions = 5
	g.foreign(4, 2)
	g.up()
	addr := g.addrs[0]
	wantIDs := func(want ...string) {
		t.Helper()
		g.until(func() bool { return slices.Equal(idsOf(g.table(addr)), want) }, "the table has %v, want %v", func() any { return idsOf(g.table(addr)) }, want)
	}
	wantIDs("p0", "p1", "p4")
	if n := g.table(addr).Partitions; n != 5 {
		t.Errorf("the grid has %d partitions, it is said, want 5", n)
	}
	last := g.foreign(2, 1)
	wantIDs("p0", "p1", "p2", "p4")
	g.until(func() bool { return g.table(addr).Parts[2].Epoch == 2 }, "the last change is not told")
	p := g.table(addr).Parts[2]
	if p.Lineage != 1 || p.Primary != 0 || p.NInSync != 2 || len(p.Members) != 2 || string(p.Members[1].Address) != "10.0.1.1:7400" || string(p.Members[1].Member) != "g-s1-1/0000000000000011" {
		t.Errorf("p2 is told as %+v", p)
	}
	if own := g.table(addr).Parts[1]; own.Epoch == 0 || len(own.Members) != 1 || string(own.Members[0].Address) != addr {
		t.Errorf("p1 is told as %+v", own)
	}
	if err := g.store.Delete(last); err != nil {
		t.Fatal(err)
	}
	wantIDs("p0", "p1", "p4")
}

// A request for a partition of another shard is sent to its primary.
func TestRedirectToAnotherShard(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Partitions = 2
	g.foreign(1, 1)
	g.up()
	id, _ := wire.MakePartitionID(1)
	g.until(func() bool { return len(g.table(g.addrs[0]).Parts) == 2 }, "the record is not seen")
	r := dialRaw(t, g.addrs[0])
	if _, err := r.Write(wire.AppendSubmit(hello(wire.RoleClient, 0, "t", ""), id, &wire.Submit{ClientSeq: 7, Slot: 3, Payload: fix("x")})); err != nil {
		t.Fatal(err)
	}
	r.next()
	var np wire.NotPrimary
	if err := wire.DecodeNotPrimary(r.next(), &np); err != nil || np.RequestID != 7 || np.Epoch != 2 || string(np.Address) != "10.0.1.0:7400" || string(np.Member) != "g-s1-0/0000000000000010" {
		t.Fatalf("%+v, %v", np, err)
	}
}

// An invalid record is not listed, and does not affect the others.
func TestOddRecords(t *testing.T) {
	good := arbiter.Record{Name: "g-p1", Epoch: 3, Lineage: 1, Spec: arbiter.Spec{Grid: "g", Partition: 1, Replicas: 2, MinInSync: 1},
		Primary: arbiter.Member{ID: "g-s1-0/0000000000000010", Address: "10.0.1.0:7400"}, InSync: []arbiter.Member{{ID: "g-s1-0/0000000000000010", Address: "10.0.1.0:7400"}}}
	for what, change := range map[string]func(*arbiter.Record){
		"another grid's":           func(r *arbiter.Record) { r.Spec.Grid = "h" },
		"another partition's name": func(r *arbiter.Record) { r.Name = "g-p3" },
		"no such partition":        func(r *arbiter.Record) { r.Name, r.Spec.Partition = "g-p1024", 1024 },
		"a negative partition":     func(r *arbiter.Record) { r.Name, r.Spec.Partition = "g-p-1", -1 },
		"of the layout before":     func(r *arbiter.Record) { r.Name = "g-s1-p0" },
		"no member id":             func(r *arbiter.Record) { r.InSync = []arbiter.Member{{ID: "g-s1-0", Address: "10.0.1.0:7400"}} },
		"a lineage too high":       func(r *arbiter.Record) { r.Lineage = 1 << 32 },
	} {
		var m gridMap
		odd := good
		change(&odd)
		other := good
		other.Name, other.Spec.Partition = "g-p2", 2
		m.hear("g", &arbiter.News{All: true, Records: []arbiter.Record{odd, other}})
		if list := m.all(); len(list) != 1 || list[0].Partition != 2 {
			t.Errorf("%s: told are %+v", what, list)
		}
		// The record was right before.
		m.hear("g", &arbiter.News{All: true, Records: []arbiter.Record{good}})
		odd.Name = good.Name
		if m.hear("g", &arbiter.News{Records: []arbiter.Record{odd}}); what != "another partition's name" && what != "of the layout before" && len(m.all()) != 0 {
			t.Errorf("%s: still told is %+v", what, m.all())
		}
	}
}

// A Table never outgrows a frame, whatever the records say.
func TestTableFitsAFrame(t *testing.T) {
	for what, c := range map[string]struct {
		records, addr int
		all           bool
	}{
		"1,024 partitions of 3 copies":               {1024, 21, true},
		"1,024 partitions, addresses of 1,000 bytes": {1024, 1000, false},
	} {
		var m gridMap
		news := &arbiter.News{All: true}
		for i := range c.records {
			r := arbiter.Record{Name: PartitionName("g", i), Epoch: 1, Lineage: 1, Spec: arbiter.Spec{Grid: "g", Partition: i, Replicas: 3, MinInSync: 1}}
			for j := range 3 {
				r.InSync = append(r.InSync, arbiter.Member{ID: fmt.Sprintf("%s-%d/%016x", strings.Repeat("p", 60), j, j+1), Address: strings.Repeat("a", c.addr)})
			}
			r.Primary = r.InSync[0]
			news.Records = append(news.Records, r)
		}
		m.hear("g", news)
		table := wire.Table{Partitions: 1024, Parts: m.all()}
		frame := wire.AppendTable(nil, &table)
		if len(frame) > wire.MaxFrame || (len(table.Parts) == c.records) != c.all {
			t.Errorf("%s: %d of them in %d bytes", what, len(table.Parts), len(frame))
		}
		var back wire.Table
		if err := wire.DecodeTable(bytes.Clone(frame), &back); err != nil || len(back.Parts) != len(table.Parts) {
			t.Errorf("%s: read back %d, %v", what, len(back.Parts), err)
		}
	}
}
