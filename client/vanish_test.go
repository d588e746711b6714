package client

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// TestVanishedNode: at default settings a client whose primary's node is cut off without a reset
// reaches the new primary once there is one. The time it took is printed; docs/client.md explains
// the figure.
func TestVanishedNode(t *testing.T) {
	g := newFakeGrid(t, 3)
	k := newCable()
	c := g.dial(t, func(c *Config) { c.Dial, c.RequestTimeout = k.dial, 30*time.Second })
	var sessions []*Session
	for range 20 {
		sessions = append(sessions, openTest(t, c))
	}
	for i, s := range sessions {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
	}
	old := g.primary.ln.Addr().String()
	k.vanish(old, false)
	// The grace time of the replicas and a write to the API server.
	time.AfterFunc(320*time.Millisecond, func() { g.promote(g.nodes[1]) })
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			if _, err := s.Submit(t.Context(), testOrder(100+i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	checkOnce(t, g, 40)
	var took []time.Duration
	for _, o := range c.Outages() {
		took = append(took, o.Duration().Round(time.Millisecond))
		if o.Cause != OutageSilent || o.Attempts > 3 {
			t.Errorf("outage %s", o)
		}
	}
	slices.Sort(took)
	if len(took) != len(sessions) {
		t.Fatalf("%d outages of %d sessions", len(took), len(sessions))
	}
	t.Logf("another primary serves 320 ms after the cut; %d sessions were without answers for %s to %s", len(took), took[0], took[len(took)-1])
}

// TestDeadAddressDelaysNoClient: the primary's connections are reset and its address is gone with
// it, so that a new dial hangs. Attempts may last longer than orders here: they are ended by news
// of the next primary.
func TestDeadAddressDelaysNoClient(t *testing.T) {
	g := newFakeGrid(t, 2)
	k := newCable()
	c := g.dial(t, func(c *Config) { c.Dial, c.SuspectAfter, c.DialTimeout = k.dial, 30*time.Second, 30*time.Second })
	s := openTest(t, c)
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	old := g.primary
	k.mu.Lock()
	k.cut[old.ln.Addr().String()] = true
	k.mu.Unlock()
	old.cut()
	time.AfterFunc(50*time.Millisecond, func() { g.promote(g.nodes[1]) })
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
	o := s.Stats().LastOutage
	t.Logf("another primary serves after 50 ms: %s", o)
	k.mu.Lock() // a question to a node may still be under way
	defer k.mu.Unlock()
	if k.dialled[old.ln.Addr().String()] < 2 {
		t.Error("the dead address was never dialled again: the test proves nothing")
	}
}

// TestDeafConnection: a connection that a firewall dropped is replaced although the primary is the
// same.
func TestDeafConnection(t *testing.T) {
	g := newFakeGrid(t, 1)
	k := newCable()
	c := g.dial(t, func(c *Config) {
		c.Dial, c.SuspectAfter, c.RequestTimeout = k.dial, 10*time.Millisecond, 30*time.Second
	})
	s := openTest(t, c)
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	k.vanish(g.primary.ln.Addr().String(), true)
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
	if o := s.Stats().LastOutage; o.Cause != OutageSilent || o.NewEpoch != 1 {
		t.Errorf("outage %s", o)
	}
}

// TestDeafTableConnection: the connection to the node that knows the next primary was dropped
// silently; that is detected when it is needed.
func TestDeafTableConnection(t *testing.T) {
	g := newFakeGrid(t, 2)
	k := newCable()
	c := g.dial(t, func(c *Config) { c.Dial, c.RequestTimeout = k.dial, 20*time.Second })
	s := openTest(t, c)
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	next := g.nodes[1].ln.Addr().String()
	if _, err := c.fetchTable(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	k.vanish(next, true)
	g.promote(g.nodes[1])
	g.nodes[0].kill()
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	t.Log(s.Stats().LastOutage)
}

// TestSlowPrimaryIsNoSuspect: a live primary that takes five times SuspectAfter for each answer is
// not left.
func TestSlowPrimaryIsNoSuspect(t *testing.T) {
	g := newFakeGrid(t, 2)
	c := g.dial(t, func(c *Config) { c.SuspectAfter = 10 * time.Millisecond })
	s := openTest(t, c)
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		frame = slices.Clone(frame)
		time.AfterFunc(100*time.Millisecond, func() { c.handle(frame) })
		return true
	})
	for i := range 3 {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.Connects != 1 || st.Outages != 0 {
		t.Errorf("a slow primary was left: %+v", st)
	}
}

// TestEndpointsThatAreDead: one endpoint that answers is enough, wherever it
// stands in the list, whether the others refuse or are silent.
func TestEndpointsThatAreDead(t *testing.T) {
	refusing := proc.PortForTest(t)
	const silent = "192.0.2.1:7400" // no address of a real host; the cable swallows it
	for name, order := range map[string][3]int{"first": {0, 1, 2}, "second": {1, 0, 2}, "last": {1, 2, 0}} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 2)
			k := newCable()
			k.cut[silent] = true
			list := []string{g.nodes[1].ln.Addr().String(), refusing, silent}
			c := g.dial(t, func(c *Config) {
				c.Dial, c.Endpoints = k.dial, []string{list[order[0]], list[order[1]], list[order[2]]}
			})
			if _, err := c.Submit(t.Context(), testOrder(1)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestEveryKnownMemberIsGone: all nodes were replaced by others at new
// addresses; an endpoint (a service) leads to them.
func TestEveryKnownMemberIsGone(t *testing.T) {
	g := newFakeGrid(t, 3)
	g.mu.Lock()
	fresh := g.nodes[2]
	g.nodes = g.nodes[:2]
	g.mu.Unlock()
	c := g.dial(t, func(c *Config) {
		c.Endpoints = []string{g.nodes[0].ln.Addr().String(), fresh.ln.Addr().String()}
	})
	s := openTest(t, c)
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	old := g.nodes
	g.mu.Lock()
	g.nodes = []*fakeNode{fresh}
	g.mu.Unlock()
	g.promote(fresh)
	for _, n := range old {
		n.kill()
	}
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
}

// TestBackupThatMoved: the backup is replaced by one at a new address while the primary is healthy.
// The client, which was given the first two addresses only, has to know it before the primary fails
// too.
func TestBackupThatMoved(t *testing.T) {
	for name, idle := range map[string]bool{"idle": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 3)
			nodes := g.nodes
			g.mu.Lock()
			g.nodes = nodes[:2]
			g.mu.Unlock()
			c := g.dial(t, func(c *Config) {
				if c.Endpoints = c.Endpoints[:2]; idle {
					c.TableEvery = 20 * time.Millisecond
				}
			})
			s := openTest(t, c)
			if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
				t.Fatal(err)
			}
			g.mu.Lock()
			g.nodes = []*fakeNode{nodes[0], nodes[2]}
			g.mu.Unlock()
			g.promote(nodes[0])
			nodes[1].kill()
			if !idle {
				if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, func() bool { return c.Table()[0].Members[1].ID == nodes[2].name })
			g.mu.Lock()
			g.nodes = nodes[2:]
			g.mu.Unlock()
			g.promote(nodes[2])
			nodes[0].kill()
			if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestStaleMemberIsNotBelieved: of three members one is partitioned from the others and goes on
// naming the old primary. The third one is asked as well.
func TestStaleMemberIsNotBelieved(t *testing.T) {
	g := newFakeGrid(t, 3)
	s := openTest(t, g.dial(t))
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	old := g.table(0)
	g.mu.Unlock()
	g.nodes[1].setHook(func(c *fakeConn, frame []byte) bool {
		var m wire.Request
		if wire.FrameType(frame) != wire.TypeTableRequest || wire.DecodeRequest(frame, wire.TypeTableRequest, &m) != nil {
			return false
		}
		stale := *old
		stale.ReqID = m.ReqID
		c.Write(wire.AppendTable(nil, &stale))
		return true
	})
	g.promote(g.nodes[2])
	g.nodes[0].kill()
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	if o := s.Stats().LastOutage; o.Attempts > 5 { // 2, and one more for each late answer of a starved machine
		t.Errorf("outage %s", o)
	}
}

// TestNodesThatNameEachOther: two nodes that each name the other as the primary do not make a
// client alternate between them.
func TestNodesThatNameEachOther(t *testing.T) {
	g := newFakeGrid(t, 2)
	s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 200 * time.Millisecond }))
	opened := 0
	for i, n := range g.nodes {
		other := g.nodes[1-i].ln.Addr().String()
		n.setHook(func(c *fakeConn, frame []byte) bool {
			switch wire.FrameType(frame) {
			case wire.TypeOpenSession, wire.TypeSubmit:
				g.mu.Lock()
				opened++
				g.mu.Unlock()
				c.Write(wire.AppendNotPrimary(nil, testPartition, &wire.NotPrimary{RequestID: 1, Epoch: 7, ForType: wire.FrameType(frame), Address: []byte(other)}))
				return true
			}
			return false
		})
	}
	if _, err := s.Submit(t.Context(), testOrder(1)); FateOf(err) == FateAccepted {
		t.Fatalf("error %v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if opened > 40 {
		t.Errorf("%d attempts within 200 ms", opened)
	}
}

// TestRefusalAfterAReconnectIsFinal: the first copy of an order was lost with its connection, the
// second is refused. No copy can be applied any more, so the caller gets the refusal.
func TestRefusalAfterAReconnectIsFinal(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	var once sync.Once
	held := make(chan func(), 1)
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		handled := false
		once.Do(func() { // the frame stays under way, the connection is lost
			frame := slices.Clone(frame)
			held <- func() { c.handle(frame) }
			c.node.setHook(rejectWith(wire.CodeOverloaded, 1))
			c.CloseWrite()
			handled = true
		})
		return handled
	})
	_, err := s.Submit(t.Context(), testOrder(1))
	if !errors.Is(err, ErrOverloaded) || FateOf(err) != FateRefused {
		t.Fatalf("error %v, want a refusal", err)
	}
	(<-held)() // the first copy arrives now
	checkOnce(t, g, 0)
	if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 1)
}

// TestPrimaryThatWasReplacedMeanwhile: a node was replaced and is the primary again; an older
// connection has to open the session anew, and no order fails.
func TestPrimaryThatWasReplacedMeanwhile(t *testing.T) {
	g := newFakeGrid(t, 2)
	s := openTest(t, g.dial(t))
	for i := range 10 {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
		// The fake refuses Submits of another epoch as not the primary first, so
		// the epoch stays: only the binding is lost.
		g.mu.Lock()
		for _, fs := range g.sessions {
			fs.conn = nil
		}
		g.mu.Unlock()
	}
	checkOnce(t, g, 10)
	if st := s.Stats(); st.Connects != 10 || st.Violations != 0 || st.LastOutage.Cause != OutageMoved || st.LastOutage.Attempts != 1 {
		t.Errorf("stats %+v", st)
	}
}
