package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// anew is the shard g made again after it was removed: other records, the same directory of the sinks.
func (g *grid) anew(firstSeq uint64) *grid {
	g.t.Helper()
	next := newGrid(g.t, len(g.nodes), g.partitions)
	specs := map[string]arbiter.Spec{}
	for _, r := range next.store.List() {
		r.Spec.FirstSeq = firstSeq
		specs[r.Name] = r.Spec
	}
	next.store = memory.NewStore(specs)
	next.arb = next.store
	next.base.Sink, next.base.SinkDir = g.base.Sink, g.base.SinkDir
	return next
}

// inFiles reads the ids of all orders in the sinks' files: how often each is there, by file.
func inFiles(t *testing.T, dir string) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{} // by id: the files, and the ClOrdID in them
	paths, err := filepath.Glob(filepath.Join(dir, "*", "g-*.log*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		partition, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "g-"), ".")
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			columns := strings.Split(lines.Text(), "\t")
			if len(columns) != 10 || columns[3] != "order" {
				continue
			}
			id := partition + "/" + columns[0]
			if found[id] == nil {
				found[id] = map[string]bool{}
			}
			found[id][columns[8]] = true
		}
	}
	return found
}

// TestShardMadeAnewGivesNewIDs: two shards, one after the other, under one number and with one directory for their
// sinks. No id is given twice, the files hold both, and an id of the first is answered by an error, whatever the second
// has in its log by then; also by the backup that has taken over, and by a pod that came later.
func TestShardMadeAnewGivesNewIDs(t *testing.T) {
	const firstSeq = 1882193920000001
	g := newGrid(t, 2, 2)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	old := submit(t, g.client(), "old", 60)
	downstream := func(g *grid) {
		for i, r := range g.nodes {
			if p := r.data.parts.list[i]; len(p.inc.outlets) > 0 {
				g.until(func() bool { return p.inc.outlets[0].queue.Durable() >= p.store.Committed() }, "the sink of partition %d lags", i)
			}
		}
	}
	downstream(g)
	for i := range g.nodes {
		g.kill(i)
	}

	g = g.anew(firstSeq).up()
	c := g.client()
	made := submit(t, c, "new", 60)
	ids := map[wire.OrderID]bool{}
	for _, r := range old {
		ids[r.ID()] = true
	}
	for _, r := range made {
		if ids[r.ID()] || r.Seq <= firstSeq {
			t.Fatalf("%s is the id of a new order; those begin above %d", r.ID(), firstSeq)
		}
	}
	downstream(g)
	if res := g.verify(g.base.SinkDir); res.Orders != 60 {
		t.Errorf("%d orders verified, want 60", res.Orders)
	}
	read := func(when string) {
		t.Helper()
		for i, r := range old {
			for _, mode := range []client.ReadMode{client.Confirmed, client.Backup} {
				var freed *client.FreedError
				if o, err := c.Get(t.Context(), r.ID(), client.WithMode(mode)); !errors.As(err, &freed) || freed.Freed != firstSeq-1 {
					t.Fatalf("%s: an old id, %s, is answered with order %q, %v", when, r.ID(), o.ClOrdID, err)
				}
			}
			if o, err := c.GetByClOrdID(t.Context(), fmt.Sprintf("old-%d", i)); !errors.Is(err, client.ErrNotFound) {
				t.Fatalf("%s: an old ClOrdID is answered with %s, %v", when, o.ID, err)
			}
		}
		for i, r := range made {
			if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != fmt.Sprintf("new-%d", i) {
				t.Fatalf("%s: %s is answered with %q, %v", when, r.ID(), o.ClOrdID, err)
			}
		}
	}
	read("made anew")

	g.kill(0)
	g.until(func() bool { return g.records()[0].Epoch > 2 && g.records()[1].Epoch > 2 }, "nobody takes over")
	g.start(0)
	g.ready()
	submit(t, c, "new-too", 20)
	read("its primary killed")
	if res := g.verify(""); res.Orders != 80 {
		t.Errorf("%d orders verified, want 80", res.Orders)
	}

	files := inFiles(t, g.base.SinkDir)
	for id, orders := range files {
		_, seq, _ := strings.Cut(id, "/")
		n, err := strconv.ParseUint(seq, 10, 64)
		if len(orders) != 1 || err != nil {
			t.Errorf("%s is the id of %d orders: %v, %v", id, len(orders), orders, err)
		}
		for clOrdID := range orders {
			if (n > firstSeq) != strings.HasPrefix(clOrdID, "new") {
				t.Errorf("%s is order %s", id, clOrdID)
			}
		}
	}
	for _, r := range append(old, made...) {
		if files[r.ID().String()] == nil {
			t.Errorf("%s is in no file", r.ID())
		}
	}
}

// TestHostileFirstSeq: a number that no API server lets pass is no beginning.
func TestHostileFirstSeq(t *testing.T) {
	for first, refused := range map[uint64]bool{0: false, 1: false, arbiter.MaxFirstSeq: false, arbiter.MaxFirstSeq + 1: true, 1<<64 - 1: true} {
		c, err := configOf(arbiter.Record{Spec: arbiter.Spec{FirstSeq: first}})
		if (err != nil) != refused || err == nil && c.FirstSeq != first {
			t.Errorf("firstSeq %d: %+v, %v; want refused: %v", first, c, err, refused)
		}
	}
}
