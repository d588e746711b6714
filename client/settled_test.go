package client

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Every other order is refused for load while those before it have no answer yet; then
// the connection is lost, or the primary. The refused numbers stand between unanswered
// ones, go out again without payload, and what the node answers to that is no violation.
func TestRefusedNumbersBetweenUnansweredOnes(t *testing.T) {
	for _, c := range []struct {
		orders   int
		failover bool
	}{{4, false}, {4, true}, {16, true}, {60, true}} {
		t.Run(fmt.Sprintf("orders=%d,failover=%t", c.orders, c.failover), func(t *testing.T) {
			refusedBetween(t, c.orders, c.failover)
		})
	}
}

func refusedBetween(t *testing.T, n int, failover bool) {
	g := newFakeGrid(t, 2)
	s := openTest(t, g.dial(t))
	if _, err := s.Submit(t.Context(), testOrder(n)); err != nil {
		t.Fatal(err)
	}
	old := g.primary
	seen := everyOtherRefused(g)
	done := make(chan error, n)
	var refused atomic.Int64
	for i := range n {
		if err := s.SubmitAsync(testOrder(i), func(_ Receipt, err error) {
			if FateOf(err) == FateRefused {
				refused.Add(1)
			}
			done <- err
		}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return seen.Load() == int64(n) && refused.Load() == int64(n/2) })
	old.setHook(nil)
	if failover {
		g.promote(g.nodes[1])
		old.kill()
	} else {
		old.cut()
	}
	fates := map[Fate]int{}
	for range n {
		fates[FateOf(<-done)]++
	}
	// One order more: answers to what was sent again must not disturb what is new.
	if _, err := s.Submit(t.Context(), testOrder(n+1)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, n/2+2)
	if st := s.Stats(); fates[FateAccepted] != n/2 || fates[FateUnknown] != 0 || st.Violations != 0 || st.Connects != 2 {
		t.Errorf("fates %v, %d violations, %d connects; want %d accepted, none unknown, no violation, 2 connects", fates, st.Violations, st.Connects, n/2)
	}
}

// everyOtherRefused makes the primary apply orders of even numbers without an answer,
// and refuse the others. It returns how many it has seen.
func everyOtherRefused(g *fakeGrid) *atomic.Int64 {
	seen := new(atomic.Int64)
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		if m.ClientSeq%2 == 0 {
			c.apply(frame)
		} else {
			g.mu.Lock()
			c.expected = max(c.expected, m.ClientSeq+1)
			c.session.expected = c.expected
			g.mu.Unlock()
			c.refuse(&m, wire.CodeOverloaded)
		}
		seen.Add(1)
		return true
	})
	return seen
}

// A node that answers an empty frame twice breaks the protocol.
func TestASecondAnswerToAnEmptyFrameIsAViolation(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
		t.Fatal(err)
	}
	seen := everyOtherRefused(g)
	done := make(chan error, 4)
	for i := range 4 { // 2 and 4 are applied, 3 and 5 refused
		if err := s.SubmitAsync(testOrder(i+1), func(_ Receipt, err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return seen.Load() == 4 })
	var again atomic.Int64
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		if m.ClientSeq == 3 && again.Add(1) == 1 {
			c.refuse(&m, wire.CodeBadFIX)
			c.refuse(&m, wire.CodeBadFIX)
			return true
		}
		return false
	})
	g.primary.cut()
	for range 4 {
		<-done
	}
	if st := s.Stats(); st.Violations != 1 {
		t.Errorf("%d violations, want 1", st.Violations)
	}
	checkOnce(t, g, 3)
}
