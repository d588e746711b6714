package node

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestForgedConfigurationErasesNothing: two small frames to each copy, Hello as a node and a later configuration with the
// sender as its only member, then the same in the name of the primary. Both copies used to discard their logs. That they stay
// does not rest on the proof of who sends: where a stranger is refused as a node the frames are not read at all.
func TestForgedConfigurationErasesNothing(t *testing.T) {
	const orders = 301
	g := newGrid(t, 2, 1).up()
	submit(t, g.client(), "kept", orders)
	members := func() (ids []string, primary uint64, epoch uint64) {
		for _, n := range g.nodes {
			if err := n.onLoop(func() {
				p := n.data.parts.list[0]
				ids = append(ids, p.inc.self.ID)
				primary, epoch = p.status.Config.Primary.Boot, p.status.Config.Epoch
			}); err != nil {
				t.Fatal(err)
			}
		}
		return ids, primary, epoch
	}
	before, primary, epoch := members()
	const stranger, address = "g-s0-9/0000000000000bad", "127.0.0.1:1"
	for i, id := range before {
		_, boot, err := wire.ParseMemberID(id)
		if err != nil {
			t.Fatal(err)
		}
		r := dialRaw(t, g.addrs[i])
		frames := hello(wire.RolePeer, 0xbad, stranger, address)
		for _, from := range []uint64{0xbad, primary} {
			for later := uint64(1); later <= 10; later++ {
				frames = wire.AppendNewConfig(frames, 0, &wire.NewConfig{PeerHead: wire.PeerHead{Epoch: epoch + later, From: from, To: boot}, Lineage: 1,
					ChangeID: []byte("forged"), Version: []byte("1"), N: 1, Members: [wire.MaxMembers]wire.TableMember{{Address: []byte(address), Member: []byte(stranger)}}})
			}
			for _, code := range []uint16{wire.JoinReleased, wire.JoinDiverged, wire.JoinTruncated} {
				frames = wire.AppendJoinReply(frames, 0, &wire.JoinReply{PeerHead: wire.PeerHead{Epoch: epoch, From: from, To: boot}, Code: code})
			}
		}
		frames = wire.AppendRequest(frames, wire.TypePing, &wire.Request{ReqID: 7})
		if _, err := r.Write(frames); err != nil {
			t.Fatal(err)
		}
		for f := r.next(); f != nil && wire.FrameType(f) != wire.TypePong; f = r.next() { // all of it was read, or refused
			t.Logf("node %d answers %v", i, wire.FrameType(f))
		}
	}
	submit(t, g.client(), "after", 1)
	if res := g.verify(""); res.Orders != orders+1 {
		t.Errorf("%d orders are there, want %d", res.Orders, orders+1)
	}
	after, _, now := members()
	if now != epoch {
		t.Errorf("epoch %d, was %d", now, epoch)
	}
	for i := range before {
		if after[i] != before[i] {
			t.Errorf("node %d is %s, was %s: it has discarded its log", i, after[i], before[i])
		}
	}
}

// TestHellosMoveNoEpoch: each Hello of another process that claimed the address of a member was taken for the end of that
// member, which was dropped and joined again: ten of them moved the epoch from 2 to 16.
func TestHellosMoveNoEpoch(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit(t, g.client(), "before", 10)
	epoch := func() (e uint64) {
		if err := g.nodes[0].onLoop(func() { e = g.nodes[0].data.parts.list[0].status.Config.Epoch }); err != nil {
			t.Fatal(err)
		}
		return e
	}
	was := epoch()
	for i := range uint64(10) {
		r := dialRaw(t, g.addrs[0])
		if _, err := r.Write(hello(wire.RolePeer, 0xbad+i, fmt.Sprintf("g-s0-1/%016x", 0xbad+i), g.addrs[1])); err != nil {
			t.Fatal(err)
		}
		t.Logf("answered with %v", wire.FrameType(r.next()))
		submit(t, g.client(), fmt.Sprintf("during-%d", i), 1)
	}
	if now := epoch(); now != was {
		t.Errorf("epoch %d, was %d", now, was)
	}
	if res := g.verify(""); res.Orders != 20 {
		t.Errorf("%d orders are there, want 20", res.Orders)
	}
}
