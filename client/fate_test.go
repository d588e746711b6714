package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// undecided are refusals that a node gives before it looks at the session, and one of a later
// release, whose meaning is unknown here.
var undecided = []wire.Code{wire.CodeNotPermitted, wire.CodeUnsupported, wire.Code(99)}

func (c *fakeConn) refuse(m *wire.Submit, code wire.Code) {
	c.Write(wire.AppendReject(nil, c.node.grid.part, &wire.Reject{ //nolint:errcheck // the client may be gone
		RequestID: m.ClientSeq, Slot: m.Slot, Code: code, ForType: wire.TypeSubmit, Text: []byte("as told")}))
}

// apply is a node that applies orders but loses the answers.
func (c *fakeConn) apply(frame []byte) {
	c.node.grid.mu.Lock()
	defer c.node.grid.mu.Unlock()
	c.answer(c.node.grid, frame)
}

// An order is applied and its answer lost. Sent again, it is refused by a node that has not checked
// whether it was applied: the client must not report it as refused.
func TestAnUndecidedRefusalOfAnOrderSentBefore(t *testing.T) {
	for _, code := range undecided {
		t.Run(code.String(), func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t))
			var n atomic.Int64
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				if wire.FrameType(frame) != wire.TypeSubmit {
					return false
				}
				var m wire.Submit
				wire.DecodeSubmit(frame, &m)
				if n.Add(1) == 1 {
					c.apply(frame)
					c.Close()
				} else {
					c.refuse(&m, code)
				}
				return true
			})
			_, err := s.Submit(t.Context(), testOrder(1))
			var unknown *UnknownOutcomeError
			var reject *RejectError
			if FateOf(err) != FateUnknown || !errors.As(err, &unknown) || !errors.As(err, &reject) || reject.Code != code {
				t.Fatalf("the grid holds %d orders; fate %v, error %v; want unknown, because of the refusal", len(g.accepted()), FateOf(err), err)
			}
			if st := s.Stats(); st.Unknown != 1 || st.Refused != 0 {
				t.Fatalf("stats %+v, want one unknown outcome", st)
			}
		})
	}
}

// The same refusals of the only copy that was ever sent are final.
func TestAnUndecidedRefusalOfTheOnlyCopy(t *testing.T) {
	for _, code := range undecided {
		t.Run(code.String(), func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t))
			g.primary.setHook(rejectWith(code, 1))
			if _, err := s.Submit(t.Context(), testOrder(1)); FateOf(err) != FateRefused {
				t.Fatalf("fate %v, error %v, want refused", FateOf(err), err)
			}
			checkOnce(t, g, 0)
		})
	}
}

// An order that was given up was applied. Such a refusal of it counts neither as accepted nor as
// refused.
func TestAnUndecidedRefusalOfAnOrderGivenUp(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t))
	var n atomic.Int64
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		switch {
		case n.Add(1) == 1:
			c.apply(frame)
		case m.ClientSeq == 1:
			c.refuse(&m, wire.CodeNotPermitted)
		default:
			return false
		}
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		waitFor(t, func() bool { return n.Load() == 1 })
		cancel()
	}()
	if _, err := s.Submit(ctx, testOrder(1)); FateOf(err) != FateUnknown {
		t.Fatalf("fate %v, error %v, want unknown", FateOf(err), err)
	}
	g.primary.cut()
	if _, err := s.Submit(t.Context(), testOrder(2)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, g, 2)
	if st := s.Stats(); st.LateRefused != 0 || st.LateAccepted != 0 || st.Violations != 0 {
		t.Fatalf("stats %+v, want nothing late and no violation", st)
	}
}
