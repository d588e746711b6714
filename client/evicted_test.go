package client

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// sentTwice makes a grid that applies the first copy of an order without an answer and
// breaks the connection; second is what the node does with the next copy.
func sentTwice(t *testing.T, second func(g *fakeGrid, c *fakeConn, m *wire.Submit) (handled bool)) (*fakeGrid, error) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	var n atomic.Int64
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		switch n.Add(1) {
		case 1:
			c.apply(frame)
			c.Close()
			return true
		case 2:
			return second(g, c, &m)
		}
		return false
	})
	_, err := s.Submit(t.Context(), testOrder(1))
	return g, err
}

func checkUnknownOnce(t *testing.T, g *fakeGrid, err error) {
	t.Helper()
	checkOnce(t, g, 1)
	if FateOf(err) != FateUnknown || !errors.Is(err, ErrSessionEvicted) {
		t.Fatalf("fate %v, error %v, want unknown because the session was evicted", FateOf(err), err)
	}
}

// The session is evicted between the OpenSession that found it and the second copy. That copy was
// not applied, but the fate of the first is unknown: it must not be sent anew.
func TestSessionUnknownToAnOrderSentBefore(t *testing.T) {
	g, err := sentTwice(t, func(g *fakeGrid, c *fakeConn, m *wire.Submit) bool {
		g.evictAll()
		return false
	})
	checkUnknownOnce(t, g, err)
}

// The second copy is refused because the session is open elsewhere, which does not decide the
// first; then the session is evicted.
func TestSessionMovedThenEvictedWithAnOrderSentBefore(t *testing.T) {
	g, err := sentTwice(t, func(g *fakeGrid, c *fakeConn, m *wire.Submit) bool {
		c.refuse(m, wire.CodeSessionMoved)
		g.evictAll()
		return true
	})
	checkUnknownOnce(t, g, err)
}
