package client

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ofSessions are the frames to a client that name a session's slot in place of a request,
// and the one that ends a connection. A caller gets none of them.
var ofSessions = []wire.Type{wire.TypeGoaway, wire.TypeAck, wire.TypeFixAck, wire.TypeFixReports, wire.TypeFixProbe, wire.TypeExecutions, wire.TypeRegionApplied, wire.TypeRegionBatched, wire.TypeInvoked}

// TestCallerTakesEveryAnswer: a frame that a node sends to clients ends the call that it
// answers. One that a caller does not know would end the connection, and the call with it,
// which is then repeated until its deadline.
func TestCallerTakesEveryAnswer(t *testing.T) {
	for i := range wire.Frames {
		row := &wire.Frames[i]
		if row.From&wire.FromNode == 0 {
			continue
		}
		frame := row.Encode(row.Example)
		id := binary.LittleEndian.Uint64(frame[wire.HeaderSize:])
		q := &call{w: newWaiter()}
		k := &caller{calls: map[uint64]*call{id: q}, next: math.MaxUint64}
		err := k.onFrame(&conn{addr: "node"}, frame)
		var protocol *ProtocolError
		switch {
		case slices.Contains(ofSessions, row.Type):
			if err == nil || q.done || row.Type != wire.TypeGoaway && !errors.As(err, &protocol) {
				t.Errorf("%s is not for a caller: error %v, ended a call: %v", row.Name, err, q.done)
			}
		case err != nil:
			t.Errorf("%s: %v", row.Name, err)
		case row.Type == wire.TypeQueryRows:
			if q.done || len(q.parts) != 1 {
				t.Errorf("QueryRows: ended the call: %v, parts: %d", q.done, len(q.parts))
			}
		case !q.done || string(q.frame) != string(frame):
			t.Errorf("%s did not end the call that it answers", row.Name)
		}
	}
}
