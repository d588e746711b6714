package client

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A node of a release before closes the connection upon a Stream by selection. That is said at once, as trying again
// cannot help; without a selection, and behind the first answer, the follower goes on elsewhere.
func TestSelectionAtANodeOfAReleaseBefore(t *testing.T) {
	g := newFakeGrid(t, 1)
	var streams atomic.Int32
	g.nodes[0].setHook(func(c *fakeConn, frame []byte) bool {
		var m wire.Stream
		if wire.FrameType(frame) != wire.TypeStream || wire.CheckStream(frame, &m) != nil {
			return wire.FrameType(frame) == wire.TypeStreamSelect
		}
		streams.Add(1)
		_, _ = c.Write(wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayProtocol, Text: []byte("frame Stream: what is 4, allowed: 1 orders, 2 executions, 3 both")}))
		return true
	})
	c := g.dial(t)
	next := func(o FollowOptions, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		f, err := c.Follow(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // it never fails
		_, err = f.Next(ctx)
		return err
	}
	err := next(FollowOptions{Selection: &Selection{}}, 10*time.Second)
	var goaway *GoawayError
	if !errors.As(err, &goaway) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "update the nodes first") || streams.Load() != 1 {
		t.Errorf("%d streams, then %v, want the node's reason at once", streams.Load(), err)
	}
	streams.Store(0)
	if err := next(FollowOptions{Executions: true}, time.Second); !errors.Is(err, context.DeadlineExceeded) || streams.Load() < 2 {
		t.Errorf("%d streams without a selection, then %v, want that it is tried again", streams.Load(), err)
	}
}
