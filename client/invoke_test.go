package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// awaitsFunction refuses the first calls since another copy has the function, and answers the one after them.
func awaitsFunction(n *fakeNode, refusals int) *callNumbers {
	numbers := &callNumbers{of: map[uint64]bool{}}
	n.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeInvoke {
			return false
		}
		var m wire.Invoke
		wire.DecodeInvoke(frame, &m) //nolint:errcheck // the client encoded it
		if numbers.add(m.ClientSeq) <= refusals {
			c.Write(wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: wire.CodeFunctionAwaited, ForType: wire.TypeInvoke, Text: []byte("another copy has it")}))
			return true
		}
		c.Write(wire.AppendInvoked(nil, testPartition, &wire.Invoked{Ack: wire.Ack{ClientSeq: m.ClientSeq, Seq: 7, Epoch: m.Epoch, Slot: m.Slot, Copies: 2}, Reply: []byte("done")}))
		return true
	})
	return numbers
}

// callNumbers are those under which calls came.
type callNumbers struct {
	mu sync.Mutex
	of map[uint64]bool
}

func (n *callNumbers) add(clientSeq uint64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[clientSeq] = true
	return len(n.of)
}

func (n *callNumbers) len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.of)
}

// TestInvokeIsRepeatedWhileAwaited: a call of a function that another copy has is sent again, under another number, until it
// is answered or its deadline has passed; then the caller knows why, and that nothing was changed.
func TestInvokeIsRepeatedWhileAwaited(t *testing.T) {
	g := newFakeGrid(t, 1)
	numbers := awaitsFunction(g.primary, 3)
	c := g.dial(t)
	reply, receipt, err := c.Invoke(t.Context(), "positions", "add", []byte("k"), nil)
	if err != nil || string(reply) != "done" || receipt.Seq != 7 || numbers.len() != 4 {
		t.Fatalf("reply %q of entry %d after %d attempts (%v), want done of entry 7 after 4", reply, receipt.Seq, numbers.len(), err)
	}
	numbers = awaitsFunction(g.primary, 1<<30)
	for err = ErrUnknownOutcome; errors.Is(err, ErrUnknownOutcome); { // a time-out between question and answer is that
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, _, err = c.Invoke(ctx, "positions", "add", []byte("k"), nil)
		cancel()
	}
	if !errors.Is(err, ErrFunctionAwaited) || !strings.Contains(err.Error(), "another copy has it") || numbers.len() < 2 {
		t.Fatalf("%d attempts end with %v, want more, and %v", numbers.len(), err, ErrFunctionAwaited)
	}
}
