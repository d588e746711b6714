package node

import (
	"bytes"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixGateway is a gateway's connection to the primary, over a real socket.
type fixGateway struct {
	*raw
	g *grid
	m wire.FixOpened
}

var fixSession = client.FixSessionOf("FIX.4.2", "GW", "OG")

// gatewayAt connects to node i.
func (g *grid) gatewayAt(i int) *fixGateway {
	g.t.Helper()
	r := dialRaw(g.t, g.addrs[i])
	if _, err := r.Write(wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Grid: []byte("g"), Member: []byte("gw")})); err != nil {
		g.t.Fatal(err)
	}
	if f := r.next(); f == nil || wire.FrameType(f) != wire.TypeWelcome {
		g.t.Fatalf("the gateway is not let in: %q", f)
	}
	return &fixGateway{raw: r, g: g}
}

// answer sends a frame and returns the first answer of one of these types.
func (c *fixGateway) answer(frame []byte, types ...wire.Type) []byte {
	c.t.Helper()
	if _, err := c.Write(frame); err != nil {
		c.t.Fatal(err)
	}
	for {
		f := c.next()
		if f == nil {
			c.t.Fatalf("the node closes the connection, after %v", wire.FrameType(frame))
		}
		for _, t := range types {
			if wire.FrameType(f) == t {
				return f
			}
		}
	}
}

// open opens the session, as often as it takes: a node may not know all others yet, or
// that the last gateway is gone.
func (c *fixGateway) open(m wire.FixOpen) {
	c.t.Helper()
	m.IDHi, m.IDLo, m.Day = fixSession[0], fixSession[1], uint32(time.Now().Unix()/86400)
	c.g.until(func() bool {
		m.ReqID++
		f := c.answer(wire.AppendFixOpen(nil, 0, &m), wire.TypeFixOpened, wire.TypeReject, wire.TypeNotPrimary)
		return wire.DecodeFixOpened(f, &c.m) == nil
	}, "the session is not opened")
}

// submit submits an order and returns the number of its report.
func (c *fixGateway) submit(seq uint64, id string) uint64 {
	c.t.Helper()
	var m wire.FixAck
	f := c.answer(wire.AppendFixSubmit(nil, 0, &wire.FixSubmit{Seq: seq, Prev: seq - 1, Slot: c.m.Slot, Generation: c.m.Generation, Attempt: c.m.Attempt, Payload: fix(id)}), wire.TypeFixAck, wire.TypeReject)
	if err := wire.DecodeFixAck(f, &m); err != nil {
		c.t.Fatalf("order %d: %v, %q", seq, err, f)
	}
	return m.Number
}

// reports returns the entries of reports 1..to.
func (c *fixGateway) reports(to uint64) []byte {
	c.t.Helper()
	var m wire.FixResent
	f := c.answer(wire.AppendFixResend(nil, 0, &wire.FixResend{ReqID: 9, Slot: c.m.Slot, Generation: c.m.Generation, Attempt: c.m.Attempt, First: 1, Through: to}), wire.TypeFixResent, wire.TypeReject)
	if err := wire.DecodeFixResent(f, &m); err != nil {
		c.t.Fatalf("resend: %v, %q", err, f)
	}
	return m.Entries
}

// A session goes on at another gateway, and at another primary, with exact numbers and the
// reports that the first one sent.
func TestFixSessionMoves(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	a := g.gatewayAt(0)
	a.open(wire.FixOpen{Seq: 1})
	for seq := uint64(2); seq <= 4; seq++ {
		if n := a.submit(seq, "F-"+string(rune('0'+seq))); n != seq {
			t.Fatalf("order %d has report %d", seq, n)
		}
	}
	b := g.gatewayAt(0)
	open := wire.FixOpen{ReqID: 1, IDHi: fixSession[0], IDLo: fixSession[1], Day: a.m.Day, Seq: 5}
	var refused wire.Reject
	if f := b.answer(wire.AppendFixOpen(nil, 0, &open), wire.TypeFixOpened, wire.TypeReject); wire.DecodeReject(f, &refused) != nil || refused.Code != wire.CodeSessionMoved {
		t.Fatalf("a second gateway gets %q", f)
	}
	if f := a.next(); f == nil || wire.FrameType(f) != wire.TypeFixProbe {
		t.Fatalf("the first gateway gets %q, want a FixProbe", f)
	}
	_ = a.Close()
	b.open(wire.FixOpen{Seq: 5})
	if b.m.In != 6 || b.m.Number != 5 || b.m.Attempt != 2 {
		t.Fatalf("the second gateway has %+v, want in 6, Logon 5, attempt 2", b.m)
	}
	before := b.reports(5)
	if n := b.submit(6, "F-6"); n != 6 {
		t.Fatalf("order 6 has report %d", n)
	}
	if _, page := g.nodes[0].get("/metrics"); metric(t, page, acknowledged) != 4 {
		t.Errorf("%v orders are counted, want those of both gateways, 4", metric(t, page, acknowledged))
	}

	g.kill(0)
	c := g.gatewayAt(1)
	c.open(wire.FixOpen{Held: b.m.Attempt})
	if c.m.In != 7 || c.m.Out != 7 || c.m.Attempt != 2 {
		t.Fatalf("after the fail-over the session is %+v, want in 7, out 7, attempt 2", c.m)
	}
	if after := c.reports(5); len(before) == 0 || !bytes.Equal(before, after) {
		t.Errorf("reports of before the fail-over are others: %d bytes, then %d", len(before), len(after))
	}
	if n := c.submit(7, "F-7"); n != 7 {
		t.Errorf("order 7 has report %d", n)
	}
	if _, page := g.nodes[1].get("/metrics"); metric(t, page, acknowledged) != 1 {
		t.Errorf("%v orders are counted after the fail-over, want 1", metric(t, page, acknowledged))
	}
	o, err := g.client().GetFix(t.Context(), fixSession, client.FixToday, "F-3")
	if err != nil || o.ClOrdID != "F-3" {
		t.Errorf("F-3 is read as %q: %v", o.ClOrdID, err)
	}
}
