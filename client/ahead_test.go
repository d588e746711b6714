package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A shard that is added takes no order of a client before the client has a session
// there: until then orders go where they went, and none waits.
func TestSessionsOfAddedShardsAreOpenedAhead(t *testing.T) {
	g, added := newFakeGrid(t, 1), newFakeGrid(t, 1)
	added.part = 1 << 4
	g.beside = added
	change := func(layout wire.Layout) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.layout = layout
	}
	change(wire.Layout{Revision: 1, Shards: 1, Open: 1})
	asked, answer := make(chan struct{}, 16), make(chan struct{})
	added.nodes[0].setHook(func(_ *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) == wire.TypeOpenSession {
			asked <- struct{}{}
			<-answer
		}
		return false
	})
	c := g.dial(t)
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	submit := func(n int) wire.PartitionID {
		t.Helper()
		r, err := c.Submit(t.Context(), testOrder(n))
		if err != nil {
			t.Fatal(err)
		}
		return r.Partition
	}
	submit(0)

	change(wire.Layout{Revision: 2, Shards: 2, Open: 2})
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked: // though no order is for it yet
	case <-time.After(5 * time.Minute):
		t.Fatal("no session is opened ahead")
	}
	for n := 1; n < 50; n++ {
		if p := submit(n); p != testPartition {
			t.Fatalf("order %d went to %s, which no session is open at", n, p)
		}
		if n == 25 {
			if err := c.Refresh(t.Context()); err != nil { // what else is heard meanwhile changes nothing
				t.Fatal(err)
			}
		}
	}
	release()
	for n := 50; ; n++ { // the test's own limit ends it
		if submit(n) == added.part {
			break
		}
	}
	if s := (*c.shared.Load())[sharedKey{partition: added.part}]; s.Stats().Connects != 1 || len(asked) != 0 {
		t.Errorf("%d connections, %d sessions more asked for: the session that was opened ahead is the one to use", s.Stats().Connects, len(asked))
	}
}

// Refresh tells what the grid says after the call, not the answer that another caller
// has just been given.
func TestRefreshAsksAfterTheCall(t *testing.T) {
	g := newFakeGrid(t, 1)
	c := g.dial(t)
	for revision := uint64(1); revision <= 100; revision++ {
		if err := c.refresh(t.Context(), 0, ""); err != nil {
			t.Fatal(err)
		}
		g.mu.Lock()
		g.layout = wire.Layout{Revision: revision, Shards: 1, Open: 1}
		g.mu.Unlock()
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.table.Load().layout.Revision; got != revision {
			t.Fatalf("revision %d of the layout after Refresh, want %d", got, revision)
		}
	}
}

// A shard that cannot be reached holds the change of routing up for a while only: its
// orders are accepted and wait, as those of any partition without a primary.
func TestAddedShardThatDoesNotAnswer(t *testing.T) {
	g, added := newFakeGrid(t, 1), newFakeGrid(t, 1)
	added.part = 1 << 4
	added.nodes[0].kill()
	g.beside = added
	g.layout = wire.Layout{Revision: 1, Shards: 1, Open: 1}
	c := g.dial(t)
	if _, err := c.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.layout = wire.Layout{Revision: 2, Shards: 2, Open: 2}
	g.mu.Unlock()
	c.refresh(context.Background(), 0, "") //nolint:errcheck // what counts is what it learned
	for {
		if p, err := c.Route(testOrder(1)); err != nil {
			t.Fatal(err)
		} else if t := c.table.Load(); len(t.placing) == 2 && t.ahead == 0 && (p == testPartition || p == added.part) {
			return
		}
		sleep(aheadLimit/100, t.Context().Done(), nil, nil)
	}
}
