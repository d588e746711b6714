package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/internal/devgrid"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A grid of three shards, of which the records tell as many as a test wants.
type layoutGrid struct {
	*devgrid.Grid
	t        *testing.T
	revision int
}

func runLayout(t *testing.T, open int) *layoutGrid {
	g := &layoutGrid{Grid: devgrid.Run(t, "--shards", "3"), t: t}
	g.layout(open, open, 0)
	return g
}

// layout is what the operator writes: into the records of one shard after the other.
func (g *layoutGrid) layout(shards, open, removed int) {
	g.t.Helper()
	g.revision++
	for shard := range 3 {
		admission := "Open"
		if shard >= open {
			admission = "Draining"
		}
		for index := range 2 {
			spec := fmt.Sprintf(`{"admission":%q,"layout":{"revision":%d,"shards":%d,"open":%d,"removed":%d}}`, admission, g.revision, shards, open, removed)
			if err := g.SetSpec(fmt.Sprintf("dev-s%d-p%d", shard, index), spec); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

// spreading submits orders until it is told to end, in every way a program can, and
// remembers each receipt.
type spreading struct {
	c    *client.Client
	stop atomic.Bool
	wg   sync.WaitGroup

	mu       sync.Mutex
	receipts map[string]client.Receipt
	failed   []error
	perShard [3]atomic.Int64
}

func startSpreading(t *testing.T, c *client.Client, sessions ...*client.Session) *spreading {
	l := &spreading{c: c, receipts: map[string]client.Receipt{}}
	for w := range 2 {
		l.wg.Go(func() {
			l.run(fmt.Sprintf("C%d", w), func(fix []byte) (client.Receipt, error) { return c.Submit(context.Background(), fix) })
		})
	}
	for w, s := range sessions {
		l.wg.Go(func() {
			l.run(fmt.Sprintf("S%d", w), func(fix []byte) (client.Receipt, error) { return s.Submit(context.Background(), fix) })
		})
	}
	l.wg.Go(func() { l.pipelined("A", c.SubmitAsync) })
	if len(sessions) > 0 {
		l.wg.Go(func() { l.pipelined("B", sessions[0].SubmitAsync) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *spreading) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

func (l *spreading) took(id string, r client.Receipt, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, fmt.Errorf("%s: %w", id, err))
		return
	}
	l.receipts[id] = r
	l.perShard[r.Partition.Shard()].Add(1)
}

func (l *spreading) run(name string, submit func([]byte) (client.Receipt, error)) {
	for n := 0; !l.stop.Load(); n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		r, err := submit(devgrid.Order(id, 305))
		l.took(id, r, err)
		time.Sleep(time.Millisecond)
	}
}

func (l *spreading) pipelined(name string, submit func([]byte, func(client.Receipt, error)) error) {
	var open sync.WaitGroup
	for n := 0; !l.stop.Load(); n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		open.Add(1)
		err := submit(devgrid.Order(id, 305), func(r client.Receipt, err error) {
			l.took(id, r, err)
			open.Done()
		})
		if err != nil {
			open.Done()
			if !errors.Is(err, client.ErrWindowFull) {
				l.took(id, client.Receipt{}, err)
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
	open.Wait()
}

// more waits for n further orders of a shard.
func (l *spreading) more(t *testing.T, shard int, n int64) {
	t.Helper()
	from := l.perShard[shard].Load()
	waitFor(t, func() bool { return l.perShard[shard].Load() >= from+n })
}

// check holds what the client was told against the logs: every order once, where
// its receipt says, and found by its id and by its ClOrdID.
func (l *spreading) check(t *testing.T) {
	t.Helper()
	l.end()
	for i, err := range l.failed {
		if i < 5 {
			t.Errorf("an order failed: %v", err)
		}
	}
	found := map[string][]wire.OrderID{}
	for _, p := range l.c.Table() {
		_, err := l.c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindOrder {
				o, _ := e.Order(p.ID)
				found[o.ClOrdID] = append(found[o.ClOrdID], o.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for id, r := range l.receipts {
		if at := found[id]; len(at) != 1 || at[0] != r.ID() {
			t.Errorf("order %s is at %v, want once at %s", id, at, r.ID())
		}
		if n++; n > 300 {
			continue // every one is in the logs; asking for some is enough
		}
		if o, err := l.c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != id {
			t.Errorf("by id %s: %v, %v", r.ID(), o.ClOrdID, err)
		}
		if o, err := l.c.GetByClOrdID(t.Context(), id); err != nil || o.ID != r.ID() {
			t.Errorf("by ClOrdID %s: %v, %v, want %s", id, o.ID, err, r.ID())
		}
		got := make(chan error, 1)
		if err := l.c.GetByClOrdIDAsync([]byte(id), func(v *client.OrderView, err error) {
			if err == nil && v.ID() != r.ID() {
				err = fmt.Errorf("found at %s", v.ID())
			}
			got <- err
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("asynchronously by ClOrdID %s: %v, want %s", id, err, r.ID())
		}
	}
	if len(found) != len(l.receipts) {
		t.Errorf("%d orders in the logs, %d receipts", len(found), len(l.receipts))
	}
}

func often(c *client.Config) { c.TableEvery = 50 * time.Millisecond }

// TestGridOneNodeKnowsAll: a client that knows one node of a grid asks that one only, and
// routes to every shard.
func TestGridOneNodeKnowsAll(t *testing.T) {
	g := runLayout(t, 3)
	c := dial(t, g.Grid, often, func(cfg *client.Config) { cfg.Endpoints = cfg.Endpoints[:1] })
	if n := len(c.Table()); n != 6 {
		t.Fatalf("%d partitions, want the 6 of all shards", n)
	}
	load := startSpreading(t, c)
	for shard := range 3 {
		load.more(t, shard, 20)
	}
	load.check(t)
}

// TestGridShardsAdded: a client that runs hears of new shards and spreads its
// orders over them, and finds those from before.
func TestGridShardsAdded(t *testing.T) {
	g := runLayout(t, 1)
	c := dial(t, g.Grid, often)
	if n := len(c.Table()); n != 2 {
		t.Fatalf("%d partitions of one shard, want 2", n)
	}
	l := startSpreading(t, c)
	l.more(t, 0, 200)
	g.layout(3, 3, 0)
	l.more(t, 1, 200)
	l.more(t, 2, 200)
	l.more(t, 0, 100)
	l.check(t)
	if n := len(c.Table()); n != 6 {
		t.Errorf("%d partitions of three shards, want 6", n)
	}
	// Somebody who has not heard yet finds what was placed in the new shards.
	late := dial(t, g.Grid, func(c *client.Config) { c.TableEvery = time.Hour })
	g.layout(3, 3, 0)
	id := "LATE"
	for ; c.RouteClOrdID([]byte(id)).Shard() == 0; id += "+" {
	}
	if _, err := c.Submit(t.Context(), devgrid.Order(id, 305)); err != nil {
		t.Fatal(err)
	}
	if _, err := late.GetByClOrdID(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// TestGridShardDrained: a shard that is to be removed loses its sessions and
// orders to the others; none fails, and none is applied twice, also when its
// primary dies meanwhile and when it is changed back.
func TestGridShardDrained(t *testing.T) {
	g := runLayout(t, 3)
	c := dial(t, g.Grid, often)
	own := make([]*client.Session, 2)
	for i := range own {
		var err error
		if own[i], err = c.Session(partitionOf(t, 2, i)); err != nil {
			t.Fatal(err)
		}
	}
	l := startSpreading(t, c, own...)
	for shard := range 3 {
		l.more(t, shard, 200)
	}
	g.layout(3, 2, 0)
	waitFor(t, func() bool { return own[0].Partition().Shard() < 2 && own[1].Partition().Shard() < 2 })
	quiet(t, l, 2)
	l.more(t, 0, 200)
	l.more(t, 1, 200)

	// A session that is asked for there is given elsewhere.
	s, err := c.Session(partitionOf(t, 2, 0))
	if err != nil {
		t.Fatal(err)
	}
	if s.Partition().Shard() == 2 {
		t.Errorf("a new session is of %s, which takes none", s.Partition())
	}
	var reject *client.RejectError
	if _, err := c.SubmitTo(t.Context(), partitionOf(t, 2, 0), devgrid.Order("TO-CLOSED", 305)); !errors.Is(err, client.ErrPartitionClosed) || !errors.As(err, &reject) || client.FateOf(err) != client.FateRefused {
		t.Errorf("SubmitTo: %v, want ErrPartitionClosed", err)
	}

	g.layout(3, 3, 0) // changed back
	l.more(t, 2, 100)

	g.layout(3, 2, 0) // and again, and the primary dies in it
	killPrimaryOf(t, g.Grid, c, partitionOf(t, 2, 0))
	quiet(t, l, 2)
	l.more(t, 1, 200)
	l.check(t)
	if st := c.Stats(); st.Moves < 2 || st.Moved == 0 || st.Gaps != 0 || st.Violations != 0 || st.Unknown != 0 {
		t.Errorf("stats %+v", st)
	}

	// The shard is gone: what it held is asked for elsewhere.
	g.layout(2, 2, 1)
	waitFor(t, func() bool { return len(c.Table()) == 4 })
	there, gone := 0, 0
	for id, r := range l.receipts {
		o, err := c.GetByClOrdID(t.Context(), id)
		_, byID := c.Get(t.Context(), r.ID())
		switch r.Partition.Shard() {
		case 2:
			if gone++; !errors.Is(err, client.ErrFreed) || !errors.Is(byID, client.ErrFreed) {
				t.Fatalf("%s of a removed shard: %v; %v", r.ID(), err, byID)
			}
		default:
			if there++; err != nil || byID != nil || o.ID != r.ID() {
				t.Fatalf("%s: %v, %v; %v", r.ID(), o.ID, err, byID)
			}
		}
		if there > 50 && gone > 50 {
			break
		}
	}
}

// quiet waits until no order has gone to a shard for a while.
func quiet(t *testing.T, l *spreading, shard int) {
	t.Helper()
	for before := int64(-1); before != l.perShard[shard].Load(); time.Sleep(300 * time.Millisecond) {
		before = l.perShard[shard].Load()
	}
}

func partitionOf(t *testing.T, shard, index int) wire.PartitionID {
	t.Helper()
	id, err := wire.MakePartitionID(shard, index)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func killPrimaryOf(t *testing.T, g *devgrid.Grid, c *client.Client, p wire.PartitionID) {
	t.Helper()
	table := c.Table()
	i := slices.IndexFunc(table, func(info client.PartitionInfo) bool { return info.ID == p })
	pid, err := g.PIDOf(table[i].Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestGridClosedPartition: a partition that takes no new orders still answers for those it took, through a hand-over and
// the death of its primary; every process of it says so, and says when all of it is downstream.
func TestGridClosedPartition(t *testing.T) {
	g := &layoutGrid{Grid: devgrid.Run(t, "--shards", "3", "--sink", "file", "--dir", t.TempDir()), t: t}
	g.layout(3, 3, 0)
	c := dial(t, g.Grid, often)
	p := partitionOf(t, 2, 0)
	r, err := c.SubmitTo(t.Context(), p, devgrid.Order("BEFORE", 305))
	if err != nil {
		t.Fatal(err)
	}
	g.layout(3, 2, 0)
	drained := func() bool {
		closed := 0
		for _, url := range g.HTTP {
			n, err := nodestatus.Get(t.Context(), nodestatus.NewClient(time.Second, nil), strings.TrimPrefix(url, "http://"))
			if err != nil {
				return false // a process that was killed
			}
			q := n.Find("dev-s2-p0")
			if q == nil {
				continue
			}
			if q.Closed && q.AdmissionRevision == uint64(g.revision) && (q.Role != "primary" || q.Drained()) {
				closed++
			}
		}
		return closed == 2
	}
	check := func(when string) {
		t.Helper()
		waitFor(t, drained)
		if _, err := c.SubmitTo(t.Context(), p, devgrid.Order("AFTER-"+when, 305)); !errors.Is(err, client.ErrPartitionClosed) {
			t.Errorf("%s: %v, want ErrPartitionClosed", when, err)
		}
		if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != "BEFORE" {
			t.Errorf("%s: reads %v, %v", when, o.ClOrdID, err)
		}
	}
	check("closed")
	primary := func() client.PartitionInfo {
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		table := c.Table()
		return table[slices.IndexFunc(table, func(i client.PartitionInfo) bool { return i.ID == p })]
	}
	before := primary()
	if err := g.SetSpec("dev-s2-p0", `{"preferredPod":"dev-s2-1"}`); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return primary().Primary.ID != before.Primary.ID })
	check("handed over")
	killPrimaryOf(t, g.Grid, c, p)
	waitFor(t, func() bool { return primary().Epoch > before.Epoch+1 && primary().Primary.ID != "" })
	check("its primary killed")
	g.layout(3, 3, 0)
	waitFor(t, func() bool {
		_, err := c.SubmitTo(t.Context(), p, devgrid.Order("AGAIN", 305))
		return err == nil || errors.Is(err, client.ErrDuplicateClOrdID)
	})
}
