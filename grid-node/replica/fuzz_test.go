package replica_test

import (
	"encoding/binary"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FuzzStep gives a primary and a backup that are at work any frames, as a
// client's and as a replica's. Neither may panic, whatever the bytes. Frames
// between replicas get a head that is believed, so that the fuzzer reaches what
// is behind it.
func FuzzStep(f *testing.F) {
	head := wire.PeerHead{Epoch: 2, From: 0xb01, To: 0xa01}
	entry := make([]byte, 80)
	e := order.Entry{Size: 80, Kind: order.KindNoop, Seq: 4, Epoch: 2}
	e.Put(entry)
	for _, frame := range [][]byte{
		wire.AppendPrepare(nil, partition, &wire.Prepare{PeerHead: head, CommitSeq: 9, Entries: entry}),
		wire.AppendPeerAck(nil, partition, wire.TypePrepareAck, &wire.PeerAck{PeerHead: head, StoredSeq: 3}),
		wire.AppendNack(nil, partition, &wire.Nack{PeerHead: head, Expected: 2}),
		wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: head, CommitSeq: 3}),
		wire.AppendJoin(nil, partition, &wire.Join{PeerHead: head, LastSeq: 1, Member: []byte("b/0000000000000b01"), Address: []byte("x")}),
		wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: head, Code: 3}),
		wire.AppendNewConfig(nil, partition, &wire.NewConfig{PeerHead: head, N: 1, Members: [3]wire.TableMember{{Member: []byte("b/0000000000000b01")}}}),
		wire.AppendSubmit(nil, partition, &wire.Submit{Generation: 1, ClientSeq: 2, Payload: fixOrder("z", 0)}),
		wire.AppendGet(nil, partition, &wire.Get{By: wire.ByID, Mode: 1, Seq: 3}),
		wire.AppendOpenSession(nil, partition, &wire.OpenSession{IDHi: 3, Attempt: 2}),
		wire.AppendReadLog(nil, partition, &wire.ReadLog{FromSeq: 2, MaxBytes: 1}),
	} {
		f.Add(frame, true)
		f.Add(frame, false)
	}
	f.Fuzz(func(t *testing.T, frame []byte, toPrimary bool) {
		w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 8, InFlight: 16, PendingReads: 4}})
		w.quiet = true
		w.deliver()
		w.tick(50 * ms)
		n, other := w.node("a"), w.node("b")
		if !toPrimary {
			n, other = other, n
		}
		n.step(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: wire.AppendOpenSession(nil, partition, &wire.OpenSession{IDHi: 3, Attempt: 1})})
		w.deliver()
		if len(frame) >= wire.HeaderSize {
			binary.LittleEndian.PutUint32(frame, uint32(len(frame)))
			if wire.FrameType(frame).IsPeer() && len(frame) >= 32 && frame[8]%2 == 0 {
				binary.LittleEndian.PutUint64(frame[8:], n.r.Status().Config.Epoch)
				binary.LittleEndian.PutUint64(frame[16:], other.self.Boot)
				binary.LittleEndian.PutUint64(frame[24:], n.self.Boot)
			}
		}
		w.observer = func(uint64, []byte) {}
		n.step(replica.Event{Kind: replica.EventClientFrame, Conn: 2, Frame: frame})
		n.step(replica.Event{Kind: replica.EventPeerFrame, Frame: frame})
		w.deliver()
		w.tick(20 * ms)
	})
}
