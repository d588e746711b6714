package node

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestWhatStartsAGoroutineCostsAsMuch: a stream of executions was counted as any request, so
// a client could begin 16 times as many in a wake-up as streams of entries.
func TestWhatStartsAGoroutineCostsAsMuch(t *testing.T) {
	for _, begins := range []wire.Type{wire.TypeFollow, wire.TypeStream, wire.TypeQuery} {
		if got := workOf(begins, nil); got != followWork {
			t.Errorf("%s costs %d, want %d", begins, got, followWork)
		}
	}
}

// TestLongRequestsCostTheirBytes: the loop checks and copies a selection of hundreds of values; how many it takes in a
// wake-up goes by that.
func TestLongRequestsCostTheirBytes(t *testing.T) {
	frame := make([]byte, 33<<10)
	for _, long := range []wire.Type{wire.TypeStream, wire.TypeStreamSelect} {
		if more := workOf(long, frame) - workOf(long, nil); more != len(frame) {
			t.Errorf("%s of %d bytes costs %d more than without, want as many", long, len(frame), more)
		}
	}
}
