package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// raw is a connection that violates the protocol.
type raw struct {
	net.Conn
	t   *testing.T
	buf []byte
}

func dialRaw(t *testing.T, addr string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	return &raw{Conn: c, t: t}
}

// next reads one frame; nil at the end of the stream.
func (r *raw) next() []byte {
	r.t.Helper()
	for {
		frame, rest, err := wire.Split(r.buf)
		if err != nil {
			r.t.Fatalf("the node sent what is no frame: %v", err)
		}
		if frame != nil {
			frame = bytes.Clone(frame)
			r.buf = rest
			return frame
		}
		b := make([]byte, 64<<10)
		n, err := r.Read(b)
		r.buf = append(r.buf, b[:n]...)
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				r.t.Fatal("the node neither answered nor closed")
			}
			return nil
		}
	}
}

// last reads to the end of the stream and returns the Goaway before it.
func (r *raw) last() *wire.Goaway {
	r.t.Helper()
	var last []byte
	for f := r.next(); f != nil; f = r.next() {
		last = f
	}
	var m wire.Goaway
	if last == nil || wire.DecodeGoaway(last, &m) != nil {
		return nil
	}
	return &m
}

func hello(role wire.Role, boot uint64, member, address string) []byte {
	return wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.MinVersion, Role: role, BootID: boot,
		Grid: []byte("g"), Member: []byte(member), Address: []byte(address)})
}

func header(length uint32, typ byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, length), typ, 0, 0, 0)
}

// Requests that nodes accept from a peer that is, or passes as, a node: no proof needed
// here.
func TestHostileFrames(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.InsecurePeers, g.base.PeerKeys = true, nil
	g.up()
	asClient := hello(wire.RoleClient, 0, "hostile", "")
	asPeer := hello(wire.RolePeer, 0xbad, "g-s0-9/0000000000000bad", "127.0.0.1:1")
	asLiveness := hello(wire.RoleLiveness, 0xbad, "g-s0-9/0000000000000bad", "127.0.0.1:1")
	asBulk := hello(wire.RoleBulk, 0xbad, "g-s0-9/0000000000000bad", "127.0.0.1:1")
	after := func(first []byte, frames ...[]byte) []byte {
		return bytes.Join(append([][]byte{first}, frames...), nil)
	}
	bad := func(frame []byte, at int, v byte) []byte { frame = bytes.Clone(frame); frame[at] = v; return frame }
	submit := wire.AppendSubmit(nil, 0, &wire.Submit{Epoch: 1, Payload: fix("x")})
	get := wire.AppendGet(nil, 0, &wire.Get{ReqID: 1, By: wire.ByID, Mode: wire.ModeConfirmed, Seq: 1})
	prepare := wire.AppendPrepare(nil, 0, &wire.Prepare{PeerHead: wire.PeerHead{Epoch: 2, From: 0xbad, To: 1}, Entries: make([]byte, 72)})
	for name, c := range map[string]struct {
		send []byte
		want string // part of the Goaway's text; empty: the node closes silently, or continues
	}{
		"HTTP request":                     {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "length is 542393671, allowed: 8..1048576"},
		"TLS client hello":                 {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("r", 500)), "this port does not speak TLS"},
		"zeros":                            {make([]byte, 4096), "length is 0"},
		"0xff":                             {bytes.Repeat([]byte{0xff}, 4096), "length is 4294967295"},
		"length below the header":          {header(7, 1), "length is 7"},
		"length over the limit":            {header(1<<20+1, 1), "length is 1048577"},
		"first frame claims a megabyte":    {header(1<<20, 1), "allowed: a Hello of at most 1024"},
		"Submit before Hello":              {submit, "first frame is Submit, allowed: Hello"},
		"wrong magic":                      {bad(asClient, 8, 'X'), "magic"},
		"future version only":              {wire.AppendHello(nil, &wire.Hello{MinVersion: 9, MaxVersion: 12, Role: wire.RoleClient, Grid: []byte("g")}), fmt.Sprintf("versions 9..12, this node speaks %d..%d", wire.MinVersion, wire.Version)},
		"unknown role":                     {bad(asClient, 16, 77), "role is 77"},
		"another grid":                     {wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.MinVersion, Role: wire.RoleClient, Grid: []byte("other")}), `grid is "other", this node serves "g"`},
		"Hello with a lying length":        {bad(asClient, 28, 200), "gridLen"},
		"peer without a member id":         {hello(wire.RolePeer, 5, "nameless", "127.0.0.1:1"), "allowed: a member id"},
		"peer with another boot id":        {hello(wire.RolePeer, 5, "g-s0-9/0000000000000bad", "127.0.0.1:1"), "allowed: a member id with that boot id"},
		"second Hello":                     {after(asClient, asClient), "frame type Hello, allowed from this role"},
		"client sends Prepare":             {after(asClient, prepare), "frame type Prepare, allowed from this role"},
		"unknown frame type":               {after(asClient, header(8, 0xee)), "frame type 0xee"},
		"Submit cut short":                 {after(asClient, header(12, byte(wire.TypeSubmit)), []byte("xxxx")), "Submit"},
		"Get of an unknown mode":           {after(asClient, bad(get, 25, 9)), "mode is 9"},
		"Get with a lying key":             {after(asClient, bad(get, 26, 50)), "keyLen is 50"},
		"Ping cut short":                   {after(asClient, header(10, byte(wire.TypePing)), []byte("xx")), "Ping"},
		"table request with a tail":        {after(asClient, header(20, byte(wire.TypeTableRequest)), make([]byte, 12)), "TableRequest"},
		"Submit that calls itself ReadLog": {after(asClient, bad(submit, 4, byte(wire.TypeReadLog))), "frame ReadLog: length"},
		"peer sends Submit":                {after(asPeer, submit), "frame type Submit, allowed between nodes"},
		"peer sends garbage entries":       {after(asPeer, prepare), ""},
		"liveness without a member id":     {hello(wire.RoleLiveness, 5, "nameless", "127.0.0.1:1"), "allowed: a member id"},
		"liveness sends Prepare":           {after(asLiveness, prepare), "frame type Prepare, allowed on a liveness connection: Goaway, Heartbeat, HeartbeatAck"},
		"liveness sends a large frame":     {after(asLiveness, header(1<<20, byte(wire.TypeHeartbeat)), make([]byte, 4000)), "frame of 1048576 bytes"},
		"liveness sends what is no frame":  {after(asLiveness, bytes.Repeat([]byte{0xff}, 64)), "length is 4294967295"},
		"liveness sends a short Heartbeat": {after(asLiveness, header(12, byte(wire.TypeHeartbeat)), []byte("xxxx")), "Heartbeat"},
		"bulk sends Submit":                {after(asBulk, submit), "frame type Submit, allowed between nodes"},
		"bulk sends garbage entries":       {after(asBulk, prepare), ""},
		"half a frame, then silence":       {after(asClient, submit[:40]), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, g.addrs[0])
			if _, err := r.Write(c.send); err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				return // closing is the test's own doing; the node has to survive it
			}
			m := r.last()
			if m == nil || !strings.Contains(string(m.Text), c.want) {
				t.Fatalf("got %+v, want a Goaway with %q", m, c.want)
			}
			t.Logf("goaway %d: %s", m.Code, m.Text)
		})
	}
	for _, rc := range submit2(t, g, 20) {
		if rc.Copies != 2 {
			t.Fatalf("receipt %v, want 2 copies", rc)
		}
	}
	g.verify("")
}

func TestRequestsForOtherPartitions(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Partitions = 4
	g.up()
	r := dialRaw(t, g.addrs[0])
	other, _ := wire.MakePartitionID(3)
	missing, _ := wire.MakePartitionID(5)
	var b []byte
	b = append(b, hello(wire.RoleClient, 0, "t", "")...)
	b = wire.AppendSubmit(b, other, &wire.Submit{ClientSeq: 7, Slot: 3, Payload: fix("x")})
	b = wire.AppendOpenSession(b, missing, &wire.OpenSession{ReqID: 8, IDLo: 1, Attempt: 1})
	b = wire.AppendReadLog(b, missing, &wire.ReadLog{ReqID: 9, FromSeq: 1})
	b = wire.AppendRequest(b, wire.TypeTableRequest, &wire.Request{ReqID: 10})
	b = wire.AppendRequest(b, wire.TypePing, &wire.Request{ReqID: 11})
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
		t.Fatalf("got %v", wire.FrameType(f))
	}
	var np wire.NotPrimary
	if err := wire.DecodeNotPrimary(r.next(), &np); err != nil || np.RequestID != 7 || np.Slot != 3 || np.ForType != wire.TypeSubmit {
		t.Fatalf("a partition that is not here: %+v, %v", np, err)
	}
	for _, id := range []uint64{8, 9} {
		var rj wire.Reject
		if err := wire.DecodeReject(r.next(), &rj); err != nil || rj.RequestID != id || rj.Code != wire.CodeUnsupported || !strings.Contains(string(rj.Text), "p5 does not exist, allowed: p0..p3") {
			t.Fatalf("missing partition: %+v %q, %v", rj, rj.Text, err)
		}
	}
	var tab wire.Table
	if err := wire.DecodeTable(r.next(), &tab); err != nil || tab.ReqID != 10 || tab.Partitions != 4 || len(tab.Parts) != 1 {
		t.Fatalf("table %+v, %v", tab, err)
	}
	var pong wire.Request
	if err := wire.DecodeRequest(r.next(), wire.TypePong, &pong); err != nil || pong.ReqID != 11 {
		t.Fatalf("pong %+v, %v", pong, err)
	}
}

// A silent connection is closed, and the others are served in the meantime.
func TestSilentStrangersAreClosed(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	var silent []*raw
	for range 50 {
		silent = append(silent, dialRaw(t, g.addrs[0]))
	}
	submit2(t, g, 10)
	for _, r := range silent {
		if m := r.last(); m == nil || !strings.Contains(string(m.Text), "no Hello") {
			t.Fatalf("got %+v, want a Goaway", m)
		}
	}
}

func TestConnectionLimitLeavesTheOthers(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.MaxConns = 8
	g.up()
	first := dialRaw(t, g.addrs[0])
	_, _ = first.Write(hello(wire.RoleClient, 0, "first", ""))
	if wire.FrameType(first.next()) != wire.TypeWelcome {
		t.Fatal("no Welcome")
	}
	for range 20 {
		_, _ = dialRaw(t, g.addrs[0]).Write(hello(wire.RoleClient, 0, "one more", ""))
	}
	_, _ = first.Write(wire.AppendRequest(nil, wire.TypePing, &wire.Request{ReqID: 1}))
	if wire.FrameType(first.next()) != wire.TypePong {
		t.Fatal("the first connection is not served any more")
	}
	g.until(func() bool {
		s, err := g.nodes[0].pages.snapshot()
		if err != nil {
			return false
		}
		gone := s.Transport.Refused + s.Node.HelloTimeouts // at accept, or before its Hello was read
		return gone >= 13 && s.Transport.Conns <= 8
	}, "connections over the limit are kept")
}

// A client that requests much and reads nothing is stopped, without an effect on others.
func TestSlowReaderDoesNotHurtOthers(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	submit2(t, g, 500)
	r := dialRaw(t, g.addrs[0])
	_, _ = r.Write(hello(wire.RoleClient, 0, "slow", ""))
	ask := bytes.Repeat(wire.AppendReadLog(nil, 0, &wire.ReadLog{ReqID: 1, FromSeq: 1}), 1000)
	go func() {
		for range 50 {
			if _, err := r.Write(ask); err != nil {
				return
			}
		}
	}()
	g.until(func() bool {
		s, err := g.nodes[0].pages.snapshot()
		return err == nil && s.Transport.Paused > 0
	}, "reading from the slow client continues")
	submit2(t, g, 50)
	s, err := g.nodes[0].pages.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Transport.SlowPeers != 0 {
		t.Fatalf("%d connections were closed before the write stall limit", s.Transport.SlowPeers)
	}
	var held int
	_ = g.nodes[0].onLoop(func() {
		for _, l := range g.nodes[0].data.clients.byID {
			held += l.conn.Buffered()
		}
	})
	if held > 4<<20 {
		t.Fatalf("%d bytes are buffered for clients", held)
	}
	// It finally reads, and gets whole frames in order.
	for range 100 {
		f := r.next()
		if typ := wire.FrameType(f); typ != wire.TypeWelcome && typ != wire.TypeLogChunk {
			t.Fatalf("got %v", typ)
		}
	}
}

// A node of another grid at a peer's address must be rejected.
func TestStrangePeer(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	r := dialRaw(t, g.addrs[0])
	_, _ = r.Write(wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.MinVersion, Role: wire.RolePeer, BootID: 0xbad,
		Grid: []byte("other"), Member: []byte("x-0/0000000000000bad"), Address: []byte("127.0.0.1:9")}))
	if m := r.last(); m == nil || m.Code != wire.GoawayGrid {
		t.Fatalf("got %+v", m)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	submit2(t, g, 5)
}

var submitRun int

// submit2 submits n orders with ids of their own through a fresh client.
func submit2(t *testing.T, g *grid, n int) []client.Receipt {
	t.Helper()
	submitRun++
	return submit(t, g.client(), fmt.Sprintf("run%d", submitRun), n)
}
