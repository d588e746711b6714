package node

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestWhatStartsAGoroutineCostsAsMuch: a stream of executions was counted as any request, so
// a client could begin 16 times as many in a wake-up as streams of entries.
func TestWhatStartsAGoroutineCostsAsMuch(t *testing.T) {
	for _, begins := range []wire.Type{wire.TypeFollow, wire.TypeStream, wire.TypeQuery} {
		if got := workOf(begins); got != followWork {
			t.Errorf("%s costs %d, want %d", begins, got, followWork)
		}
	}
}
