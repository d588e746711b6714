package client

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestLostConnectionIsRetriedOnce(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g := newFakeGrid(t, 2)
		c := g.dial(t, io)
		s := openTest(t, c)
		// The node applies the orders, and dies before it answers.
		var seen atomic.Int64
		g.primary.setHook(func(fc *fakeConn, frame []byte) bool {
			if !dropAnswers(fc, frame) {
				return false
			}
			if seen.Add(1) == 10 {
				fc.node.setHook(nil)
				fc.node.cut()
			}
			return true
		})
		var wg sync.WaitGroup
		var dups atomic.Int64
		for i := range 10 {
			wg.Go(func() {
				r, err := s.Submit(t.Context(), testOrder(i))
				if err != nil {
					t.Error(err)
				}
				if r.Duplicate {
					dups.Add(1)
				}
			})
		}
		wg.Wait()
		checkOnce(t, g, 10)
		if dups.Load() != 10 {
			t.Errorf("%d receipts say duplicate, want 10", dups.Load())
		}
		if st := s.Stats(); st.Outages != 1 || st.Resent < 10 || st.Connects != 2 || st.LastOutage.Duration() <= 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestFailoverFindsTheNewPrimary(t *testing.T) {
	for name, change := range map[string]func(g *fakeGrid){
		"killed":    func(g *fakeGrid) { old := g.primary; g.promote(g.nodes[1]); old.kill() },
		"hand-over": func(g *fakeGrid) { g.promote(g.nodes[1]) },
		"late": func(g *fakeGrid) {
			old := g.primary
			old.kill()
			go func() { time.Sleep(50 * time.Millisecond); g.promote(g.nodes[1]) }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 2)
			c := g.dial(t)
			s := openTest(t, c)
			for i := range 200 {
				if i == 100 {
					change(g)
				}
				if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
					t.Fatal(err)
				}
			}
			checkOnce(t, g, 200)
			if st := s.Stats(); st.Outages != 1 || st.LongestOutage != st.LastOutage {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func TestSilentPrimaryIsLeftOnceAnotherServes(t *testing.T) {
	g := newFakeGrid(t, 2)
	c := g.dial(t, func(c *Config) { c.SuspectAfter = 20 * time.Millisecond })
	s := openTest(t, c)
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	// Every frame to the old primary is swallowed; its sockets stay open.
	g.primary.setHook(func(*fakeConn, []byte) bool { return true })
	time.AfterFunc(60*time.Millisecond, func() { g.promote(g.nodes[1]) })
	if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
}

func TestPassingRefusalsAreRetried(t *testing.T) {
	for _, code := range []wire.Code{wire.CodeDraining, wire.CodeSequenceGap} {
		t.Run(code.String(), func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t))
			g.primary.setHook(rejectWith(code, 3))
			if _, err := s.Submit(t.Context(), testOrder(1)); err != nil {
				t.Fatal(err)
			}
			checkOnce(t, g, 1)
			st := s.Stats()
			if st.Connects != 4 || (st.Gaps == 3) != (code == wire.CodeSequenceGap) {
				t.Fatalf("stats %+v", st)
			}
		})
	}
}

func TestEvictedIdleSessionIsReopened(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	for round := range 3 {
		for i := range 5 {
			if _, err := s.Submit(t.Context(), testOrder(round*10+i)); err != nil {
				t.Fatal(err)
			}
		}
		g.evictAll()
	}
	checkOnce(t, g, 15)
	if st := s.Stats(); st.Evictions != 2 || st.Unknown != 0 {
		t.Fatalf("stats %+v", st)
	}
}

func TestEvictionWithOrdersInFlightIsUnknown(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	g.primary.setHook(dropAnswers)
	done := make(chan error, 2)
	go func() { _, err := s.Submit(t.Context(), testOrder(1)); done <- err }()
	waitFor(t, func() bool { return len(g.accepted()) == 1 })
	g.evictAll()
	g.primary.setHook(nil)
	g.primary.cut()
	if err := <-done; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrSessionEvicted) {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
}

// TestManyRefusedOrdersBeforeAFailover: refused orders use up client numbers that a new primary has
// never seen.
func TestManyRefusedOrdersBeforeAFailover(t *testing.T) {
	g := newFakeGrid(t, 2)
	s := openTest(t, g.dial(t))
	for i := range int(3 * g.window) {
		if _, err := s.Submit(t.Context(), []byte("8=FIX.4.2\x0135=D\x01")); !errors.Is(err, ErrBadFIX) {
			t.Fatalf("order %d: %v", i, err)
		}
	}
	old := g.primary
	g.promote(g.nodes[1])
	old.kill()
	for i := range 10 {
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
	}
	checkOnce(t, g, 10)
	if st := s.Stats(); st.Gaps != 0 || st.Violations != 0 {
		t.Fatalf("stats %+v", st)
	}
}

// TestNodeThatForgetsRefusals: a node answered numbers that it does not count as seen after a
// reconnect. The client sends those again, empty.
func TestNodeThatForgetsRefusals(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	for i := range 5 {
		if i == 2 {
			g.primary.setHook(rejectWith(wire.CodeOverloaded, 1))
		}
		s.Submit(t.Context(), testOrder(i)) //nolint:errcheck // one of them is refused
	}
	g.mu.Lock()
	for _, fs := range g.sessions {
		fs.expected = 3
		fs.last = 0 // so the client learns of it only when it tries
	}
	g.mu.Unlock()
	g.primary.cut()
	s.lastAck = 0
	if _, err := s.Submit(t.Context(), testOrder(9)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 5)
	if st := s.Stats(); st.Gaps != 1 || st.Connects != 3 {
		t.Fatalf("stats %+v", st)
	}
}

// TestRefusalLostThenAccepted: the first copy was refused for load, the answer
// was lost, a later order was applied meanwhile. The retry is then answered
// after the later one, which is no violation.
func TestRefusalLostThenAccepted(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	var n atomic.Int64
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		switch n.Add(1) {
		case 1: // refused, and the answer is lost
			c.expected = 2
			return true
		case 2:
			dropAnswers(c, frame)
			c.Close()
			return true
		}
		return false
	})
	done := make(chan error, 2)
	for i := range 2 {
		if err := s.SubmitAsync(testOrder(i), func(_ Receipt, err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	checkOnce(t, g, 2)
	if st := s.Stats(); st.Violations != 0 || st.Connects != 2 {
		t.Fatalf("stats %+v", st)
	}
}

// TestAnswersBeforeTheEndAreDelivered: acks and the end of the connection come
// in one read, and nothing else is in flight.
func TestAnswersBeforeTheEndAreDelivered(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		g.mu.Lock()
		out := c.answer(g, frame)
		g.mu.Unlock()
		c.Write(wire.AppendGoaway(out, &wire.Goaway{Code: wire.GoawayDraining, Text: []byte("bye")}))
		return true
	})
	done := make(chan error, 1)
	if err := s.SubmitAsync(testOrder(1), func(_ Receipt, err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the callback never ran")
	}
}

func TestReadsSurviveAStaleConnection(t *testing.T) {
	g := newFakeGrid(t, 1)
	c := g.dial(t)
	for range 5 {
		g.primary.cut()
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManySessionsDoNotStampede(t *testing.T) {
	g := newFakeGrid(t, 2)
	c := g.dial(t)
	var sessions []*Session
	for range 50 {
		sessions = append(sessions, openTest(t, c))
	}
	before := func() int { g.mu.Lock(); defer g.mu.Unlock(); return g.tables }()
	g.promote(g.nodes[1])
	g.nodes[0].kill()
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if asked := g.tables - before; asked >= 50 {
		t.Errorf("50 sessions asked for the table %d times: refreshes are not shared", asked)
	}
}

// TestAcceptedLoss: the loss of data was accepted; the new primary knows the session, but less of
// it than was acknowledged. The client treats it as evicted: it waits for no gap to be filled and
// sends nothing that could be applied twice.
func TestAcceptedLoss(t *testing.T) {
	g := newFakeGrid(t, 2)
	s := openTest(t, g.dial(t))
	for i := range 100 { // more than the window
		if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
			t.Fatal(err)
		}
	}
	g.mu.Lock()
	for _, fs := range g.sessions {
		fs.last, fs.applied = 3, map[uint64]uint64{1: 1, 2: 2, 3: 3}
	}
	g.orders = g.orders[:3]
	old := g.primary
	g.mu.Unlock()
	g.promote(g.nodes[1])
	old.kill()
	// The first goes out before the client has noticed.
	if _, err := s.Submit(t.Context(), testOrder(1000)); err != nil && !errors.Is(err, ErrSessionEvicted) {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := s.Submit(t.Context(), testOrder(1001+i)); err != nil {
			t.Fatal(err)
		}
	}
	checkOnce(t, g, 13)
	if st := s.Stats(); st.Evictions != 1 || st.Gaps != 0 || st.LateAccepted != 0 {
		t.Errorf("stats %+v", st)
	}
}
