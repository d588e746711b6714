package node

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestSessionIsBoundToOneConnection: on real sockets, an order that was written
// to a connection after its client had opened the session on another one is
// refused, although the first connection is alive.
func TestSessionIsBoundToOneConnection(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	open := func(attempt uint64) (*raw, []byte) {
		r := dialRaw(t, g.addrs[0])
		b := wire.AppendOpenSession(hello(wire.RoleClient, 0, "fence", ""), 0, &wire.OpenSession{ReqID: attempt, IDLo: 77, Attempt: attempt})
		if _, err := r.Write(b); err != nil {
			t.Fatal(err)
		}
		if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
			t.Fatalf("got %v, want Welcome", wire.FrameType(f))
		}
		return r, r.next()
	}
	opened := func(attempt uint64) (*raw, wire.SessionOpened) {
		r, f := open(attempt)
		var m wire.SessionOpened
		if err := wire.DecodeSessionOpened(f, &m); err != nil {
			t.Fatal(err)
		}
		return r, m
	}
	submit := func(r *raw, s *wire.SessionOpened, id string) []byte {
		if _, err := r.Write(wire.AppendSubmit(nil, 0, &wire.Submit{Slot: s.Slot, Generation: s.Generation, ClientSeq: 1, Payload: fix(id)})); err != nil {
			t.Fatal(err)
		}
		return r.next()
	}
	moved := func(f []byte, detail uint64) {
		t.Helper()
		var m wire.Reject
		if err := wire.DecodeReject(f, &m); err != nil || m.Code != wire.CodeSessionMoved || m.Detail != detail {
			t.Fatalf("got %v %+v %v, want SessionMoved with detail %d", wire.FrameType(f), m, err, detail)
		}
		t.Logf("%s", m.Text)
	}
	first, s := opened(1)
	second, again := opened(2)
	if s.Slot != again.Slot || s.Generation != again.Generation {
		t.Fatalf("the same id gave %+v and %+v", s, again)
	}
	moved(submit(first, &s, "fence-1"), 2)
	_, late := open(1) // an OpenSession that was delayed as well
	moved(late, 2)
	var ack wire.Ack
	if err := wire.DecodeAck(submit(second, &s, "fence-1"), &ack); err != nil || ack.ClientSeq != 1 || ack.Flags&wire.AckDup != 0 {
		t.Fatalf("ack %+v, %v", ack, err)
	}
}
