package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestBatchAtAnOldNode: a node of a release before is sent no batch. The call waits for one that knows them, and is told why
// it had to end.
func TestBatchAtAnOldNode(t *testing.T) {
	g := newFakeGrid(t, 1)
	var empties, batches atomic.Int32
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		switch wire.FrameType(frame) {
		case wire.TypeSubmit:
			var m wire.Submit
			if err := wire.DecodeSubmit(frame, &m); err != nil || len(m.Payload) > 0 {
				t.Errorf("%+v, %v, want no payload", m, err)
			}
			empties.Add(1)
			_, _ = c.Write(wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: wire.CodeBadFIX, ForType: wire.TypeSubmit, Text: []byte("empty")}))
			return true
		case wire.TypeRegionBatch:
			var m wire.RegionBatch
			if err := wire.DecodeRegionBatch(frame, &m); err != nil {
				t.Error(err)
			}
			_, _ = c.Write(wire.AppendRegionBatched(nil, testPartition, &wire.RegionBatched{
				Ack: wire.Ack{ClientSeq: m.ClientSeq, Seq: uint64(6 + batches.Add(1)), Epoch: m.Epoch, Slot: m.Slot, Copies: 2}, Skipped: 1}))
			return true
		}
		return false
	})
	r := g.dial(t).Region("positions")
	keys := [][]byte{[]byte("b"), []byte("a"), []byte("b")}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got, err := r.RemoveAll(ctx, keys)
	var failed *BatchError
	if !errors.As(err, &failed) || len(failed.Unapplied)+len(failed.Unknown) != 2 || got != (Batched{}) || !strings.Contains(err.Error(), "release without batches") || empties.Load() < 2 || batches.Load() != 0 {
		t.Fatalf("at an old node: %+v, %v; %d empty orders, %d batches", got, err, empties.Load(), batches.Load())
	}
	updated := make(chan struct{})
	go func() {
		defer close(updated)
		time.Sleep(100 * time.Millisecond)
		g.mu.Lock()
		g.features = uint16(wire.FeatureRegionBatch)
		g.mu.Unlock()
		g.primary.cut()
	}()
	got, err = r.RemoveAll(t.Context(), keys)
	<-updated
	if err != nil || got != (Batched{Changed: 1, Missing: 1, Batches: 1}) || batches.Load() != 1 {
		t.Errorf("when the node is updated: %+v, %v; %d batches", got, err, batches.Load())
	}
}

// TestBatchesAreCut by keys and bytes, each key once.
func TestBatchesAreCut(t *testing.T) {
	for _, c := range []struct {
		keys, size int
		want       string
	}{
		{1, 0, "[1]"}, {512, 0, "[512]"}, {513, 0, "[512 1]"}, {3, 30_000, "[2 1]"}, {4, wire.MaxRegionBatch - 4 - 3, "[1 1 1 1]"}, {2, wire.MaxRegionPair - 3, "[1 1]"},
	} {
		b := (&Region{name: "r"}).newBulk(wire.RegionApply{Op: wire.RegionPut})
		var pairs []pair
		for i := range c.keys {
			pairs = append(pairs, pair{fmt.Appendf(nil, "%03d", i), make([]byte, c.size)})
		}
		var got []int
		for _, x := range b.cut(pairs) {
			got = append(got, len(x))
			size := 0
			for i := range x {
				size += b.size(&x[i])
			}
			if size > wire.MaxRegionBatch && len(x) > 1 {
				t.Errorf("a batch of %d bytes", size)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d pairs of %d bytes are %v, want %s", c.keys, c.size, got, c.want)
		}
	}
}
