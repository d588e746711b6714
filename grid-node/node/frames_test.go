package node

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Exactly the frames that the table accepts and leaves to the node have a handler.
func TestFramesHaveHandlers(t *testing.T) {
	for i := range 256 {
		row := wire.Row(wire.Type(i))
		for _, c := range []struct {
			by  wire.Speakers
			has bool
		}{{wire.FromClient, clientFrames[i] != nil}, {wire.FromPeer, peerFrames[i] != nil}} {
			if want := row.From&c.by != 0 && !row.ToReplica; c.has != want {
				t.Errorf("%v sent by %s: the node has a handler: %v, want %v", wire.Type(i), c.by, c.has, want)
			}
		}
	}
}
