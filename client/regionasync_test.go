package client

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A change without a function to be told by is refused, not sent, nor is a patch of no place in a value.
func TestPutAsyncWithoutDone(t *testing.T) {
	g := newFakeGrid(t, 1)
	sent := make(chan struct{}, 1)
	g.primary.setHook(func(_ *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) == wire.TypeRegionApply {
			sent <- struct{}{}
		}
		return false
	})
	r := g.dial(t).Region("positions")
	if err := r.PutAsync([]byte("k"), []byte("v"), nil); err == nil || !strings.Contains(err.Error(), "PutAsync: done is nil, allowed: a function") {
		t.Errorf("without done: %v", err)
	}
	if err := r.PatchAsync([]byte("k"), 0, []byte("v"), nil); err == nil || !strings.Contains(err.Error(), "PatchAsync: done is nil, allowed: a function; use Patch") {
		t.Errorf("a patch without done: %v", err)
	}
	if err := r.PatchAsync([]byte("k"), -1, []byte("v"), func(Receipt, error) {}); err == nil || !strings.Contains(err.Error(), "offset is -1, allowed: 0..") {
		t.Errorf("a patch before the value: %v", err)
	}
	if err := r.PutAsync([]byte("k"), []byte("v"), func(Receipt, error) {}); err != nil {
		t.Fatal(err)
	}
	<-sent
	if len(sent) > 0 {
		t.Error("the put without done was sent")
	}
}
