package node

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// viewAt is what the view of a node's first partition has.
type viewAt struct {
	base, applied, committed uint64
	hash, fresh              uint64 // of rows base+1 to applied, and of a view that is made of the log now
}

// viewPlace is viewAt without the hashes, for polling.
func (g *grid) viewPlace(i int) (at viewAt) {
	g.t.Helper()
	g.onLoop(i, func() {
		p := g.nodes[i].data.parts.list[0]
		at.committed = p.store.Committed()
		if v := p.inc.view.v; v != nil {
			at.base, at.applied = v.Base(), v.Applied()
		}
	})
	return at
}

func (g *grid) viewAt(i int) (at viewAt) {
	g.t.Helper()
	g.onLoop(i, func() {
		p := g.nodes[i].data.parts.list[0]
		at.committed = p.store.Committed()
		v := p.inc.view.v
		if v == nil {
			return
		}
		at.base, at.applied = v.Base(), v.Applied()
		at.hash = hashOf(g.t, v, at.base+1, at.applied)
		o := p.all.views.options
		o.Log, o.Base = p.store, at.base
		fresh, err := view.New(o)
		if err != nil {
			g.t.Error(err)
			return
		}
		defer fresh.Close()
		for seq := at.base + 1; seq <= at.applied; seq++ {
			if err := fresh.Apply(p.store.Get(seq)); err != nil {
				g.t.Error(err)
			}
		}
		fresh.Publish()
		at.fresh = hashOf(g.t, fresh, at.base+1, at.applied)
	})
	return at
}

func hashOf(t *testing.T, v *view.View, from, to uint64) uint64 {
	s, err := v.Snapshot(to)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer s.Release()
	sum, err := s.Hash(from, to, nil)
	if err != nil {
		t.Error(err)
	}
	return sum
}

// followed waits until the view of node i has what is committed.
func (g *grid) followed(i int) (at viewAt) {
	g.t.Helper()
	g.until(func() bool { at = g.viewPlace(i); return at.committed > 0 && at.applied == at.committed }, "the view of node %d is at %+v", i, func() any { return at })
	return g.viewAt(i)
}

// Views of all copies have the same rows, also those of a node that joined late, through
// kills of primaries under load.
func TestViewsFollowTheLog(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Views = &Views{Memory: 64 << 20, Rows: 1 << 16}
	g.up()
	acked, stop := g.load(g.client())
	for round := range 2 {
		before := acked.Load()
		g.until(func() bool { return acked.Load() > before+300 }, "no orders flow")
		g.kill(round % 2)
		g.until(func() bool { return acked.Load() > before+600 }, "no orders flow")
		g.start(round % 2)
		g.ready()
	}
	stop()
	g.settled()
	a, b := g.followed(0), g.followed(1)
	if a.hash != b.hash || a.hash != a.fresh || a.applied != b.applied || a.base != 0 {
		t.Fatalf("views %+v and %+v", a, b)
	}
}

// A view drops its rows before their entries are freed, and holds back what a question reads.
func TestViewsLetGoOfWhatIsFreed(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Views = &Views{Memory: 24 << 20, Rows: 1 << 14, Values: 1 << 10}
	g.base.MemoryLimit, g.base.Retention, g.base.HighWatermark = 64<<20, RetentionFreeDownstream, 20
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	_, stop := g.load(g.client())
	g.until(func() bool { return g.viewPlace(0).base > 0 && g.viewPlace(1).base > 0 }, "nothing is freed: %+v", func() any { return g.viewPlace(0) })
	var s *view.Snapshot
	g.onLoop(0, func() {
		var err error
		if s, err = g.nodes[0].data.parts.list[0].inc.view.v.Snapshot(0); err != nil {
			t.Error(err)
		}
	})
	g.until(func() bool { return g.viewPlace(0).base > s.Base() }, "nothing more is dropped")
	g.onLoop(0, func() {
		if p := g.nodes[0].data.parts.list[0]; p.store.Read(s.Base()+1) == nil {
			t.Error("an entry that a question may read is freed")
		}
	})
	s.Release()
	stop()
	g.settled()
	for i := range g.nodes {
		at := g.followed(i)
		if at.hash != at.fresh {
			t.Errorf("node %d: %+v", i, at)
		}
		g.onLoop(i, func() {
			p := g.nodes[i].data.parts.list[0]
			if base, _ := p.store.Base(); base > at.base {
				t.Errorf("node %d: entries up to %d are freed, rows up to %d dropped", i, base, at.base)
			}
		})
	}
}

// With views on backups a primary gives its view up a while after another copy is in sync, and questions are answered by
// that one; a take-over needs no rebuild, and while a copy is alone it has the view.
func TestViewsOnBackups(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Views = &Views{Memory: 64 << 20, Rows: 1 << 16, OnBackups: true, handOver: 300 * time.Millisecond}
	g.up()
	c := g.client()
	acked, stop := g.load(c)
	primary := func() (i int) {
		for i = range g.nodes {
			at := false
			if g.nodes[i] == nil {
				continue
			}
			if g.onLoop(i, func() { at = g.nodes[i].data.parts.list[0].status.Role == replica.RolePrimary }); at {
				return i
			}
		}
		return 0
	}
	has := func(i int) (has bool) {
		g.onLoop(i, func() {
			p := g.nodes[i].data.parts.list[0]
			has = p.inc.view.v != nil
			if page := g.nodes[i].data.parts.viewsKept(); len(page) == 1 && page[0].Kept != has {
				t.Errorf("the page has %+v, there is a view: %t", page, has)
			}
		})
		return has
	}
	count := client.Query{Query: query.Query{Aggregates: []query.Aggregate{{Func: query.Count}}}}
	for range 2 {
		p := primary()
		g.until(func() bool { return has(1-p) && !has(p) }, "views of the primary %t, the backup %t", func() any { return has(p) }, func() any { return has(1 - p) })
		a, err := c.Query(t.Context(), count)
		if err != nil || a.Rows[0][0].Int == 0 {
			t.Fatalf("%v, %v", a, err)
		}
		before := acked.Load()
		g.kill(p)
		g.until(func() bool { return acked.Load() > before+200 }, "no orders flow")
		if !has(1 - p) {
			t.Error("the new primary, which is alone, has no view")
		}
		if b, err := c.Query(t.Context(), count); err != nil || b.Rows[0][0].Int < a.Rows[0][0].Int {
			t.Fatalf("%v after %v, %v", b, a, err)
		}
		g.start(p)
		g.ready()
	}
	stop()
}

func TestViewsAreChecked(t *testing.T) {
	for _, v := range []Views{{Memory: 1 << 20}, {Memory: 1 << 40}, {Memory: 256 << 20, Rows: -1}, {Memory: 256 << 20, Extra: []view.Extra{{Tag: 55}}}} {
		cfg := Config{MemoryLimit: 1 << 30, Views: &v}
		if cfg.checkViews() == nil {
			t.Errorf("%+v is allowed", v)
		}
	}
	good := Config{MemoryLimit: 1 << 30, Views: &Views{Memory: 256 << 20}}
	if err := good.checkViews(); err != nil {
		t.Error(err)
	}
}
