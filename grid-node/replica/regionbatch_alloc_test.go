//go:build !invariants

package replica_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestRegionBatchDoesNotAllocate in the steady state, on primary and backup. The costly invariants look at what a session was
// answered, which they allocate for.
func TestRegionBatchDoesNotAllocate(t *testing.T) {
	b := newBatches(t, wire.Features)
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("key-%02d", i))
	}
	b.done(b.ask(b.frame(wire.RegionPut, "1", 0, keys...)), 0, 0)
	f := b.frame(wire.RegionPatch, "2", 0, append(keys, "none")...)
	send := func() {
		le64(f[24:], b.clientSeq)
		le64(f[32:], b.clientSeq-1)
		b.clientSeq++
		b.a.Step(b.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: f}, &b.ao)
		b.exchange()
	}
	for range 300 {
		send()
	}
	b.acks = 0
	if n := testing.AllocsPerRun(200, send); n > 2 { // the list of the session's replies, on each copy
		t.Errorf("%v allocations for a batch of 100 keys, want at most 2", n)
	}
	if b.acks != 201 {
		t.Errorf("%d batches were answered, want 201", b.acks)
	}
}
