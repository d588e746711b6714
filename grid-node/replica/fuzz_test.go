package replica_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FuzzStep gives a running primary and backup any frames, as a client's and as a
// replica's. Neither may panic. Frames between replicas get a valid head, so that the
// fuzzer reaches the code after it.
func FuzzStep(f *testing.F) {
	head := wire.PeerHead{Epoch: 2, From: 0xb01, To: 0xa01}
	entry := make([]byte, 80)
	e := order.Entry{Size: 80, Kind: order.KindNoop, Seq: 4, Epoch: 2}
	e.Put(entry)
	of := func(t wire.Type, m any) []byte { return wire.Row(t).Encode(m) }
	seeds := [][]byte{
		of(wire.TypePrepare, &wire.Prepare{PeerHead: head, CommitSeq: 9, Entries: entry}),
		of(wire.TypePrepareAck, &wire.PrepareAck{PeerHead: head, StoredSeq: 3}),
		of(wire.TypeNack, &wire.Nack{PeerHead: head, Expected: 2}),
		of(wire.TypeNewConfig, &wire.NewConfig{PeerHead: head, N: 1, Members: [wire.MaxMembers]wire.TableMember{{Member: []byte("b/0000000000000b01")}}}),
		of(wire.TypeSubmit, &wire.Submit{Generation: 1, ClientSeq: 2, Payload: fixOrder("z", 0)}),
		of(wire.TypeGet, &wire.Get{By: wire.ByID, Mode: 1, Seq: 3}),
		of(wire.TypeOpenSession, &wire.OpenSession{IDHi: 3, Attempt: 2}),
	}
	for _, row := range wire.Frames {
		seeds = append(seeds, row.Encode(row.Example))
	}
	for _, frame := range seeds {
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
			if wire.Row(wire.FrameType(frame)).From&wire.FromPeer != 0 && len(frame) >= 32 && frame[8]%2 == 0 {
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

// What the table of frames leaves to the replica is handled by it.
func TestFramesAreHandled(t *testing.T) {
	for _, row := range wire.Frames {
		for by, kind := range map[wire.Speakers]replica.EventKind{wire.FromClient: replica.EventClientFrame, wire.FromPeer: replica.EventPeerFrame} {
			w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
			w.deliver()
			w.node("a").step(replica.Event{Kind: kind, Conn: 2, Frame: row.Encode(row.Example)})
			trace := w.trace.String()
			refused := strings.Contains(trace, "is not for a partition") || strings.Contains(trace, "a frame between replicas")
			if handled := row.ToReplica && row.From&by != 0; handled == refused {
				t.Errorf("%s as sent by %s: refused %v, the table has %v\n%s", row.Name, by, refused, !handled, trace)
			}
		}
	}
}
