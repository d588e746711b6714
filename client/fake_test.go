package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fakeGrid is one partition's state, shared by the nodes of a test: what a real grid replicates. Its nodes speak the real
// protocol over real sockets and can be made to misbehave, which a real node cannot. Tests against
// a real grid are in grid_test.go.
type fakeGrid struct {
	t        testing.TB
	mu       sync.Mutex
	epoch    uint64
	primary  *fakeNode
	nodes    []*fakeNode
	seq      uint64
	sessions map[[2]uint64]*fakeSession
	nextSlot uint32
	orders   []fakeOrder
	window   uint32
	features uint16           // of Welcome
	tables   int              // TableRequests answered
	part     wire.PartitionID // the one it has
	parts    uint16           // partitions that it reports for the grid; 0: this one
	beside   *fakeGrid        // another partition of the grid, on nodes of its own that know of itself only
}

type fakeSession struct {
	slot, gen uint32
	last      uint64
	node      *fakeNode         // primary that last opened it
	epoch     uint64            // and when,
	conn      *fakeConn         // on this connection,
	attempt   uint64            // by this attempt
	expected  uint64            // what that one expects next
	applied   map[uint64]uint64 // clientSeq -> seq
}

type fakeOrder struct {
	clientSeq uint64
	payload   string
	seq       uint64
	epoch     uint32 // 0: 1
}

// fakeEntry is the log entry of an order made by testOrder.
func fakeEntry(seq uint64, fix string) []byte { return fakeEntryOf(1, seq, fix) }

func fakeEntryOf(epoch uint32, seq uint64, fix string) []byte {
	off := strings.Index(fix, "\x0111=") + 4
	e := order.Entry{Size: uint32(order.HeaderSize + len(fix)), Kind: order.KindOrder, Seq: seq, Epoch: epoch, TimeNs: 7}
	e.Fields.ClOrdIDOff, e.Fields.ClOrdIDLen, e.Fields.Side = uint16(off), uint8(strings.IndexByte(fix[off:], 1)), '1'
	b := make([]byte, e.Size)
	e.Put(b)
	copy(b[order.HeaderSize:], fix)
	return b
}

type fakeNode struct {
	grid *fakeGrid
	ln   net.Listener
	name string
	// hook sees every frame first; true means: handled.
	hook  func(c *fakeConn, frame []byte) bool
	mu    sync.Mutex
	conns map[*fakeConn]struct{}
}

type fakeConn struct {
	net.Conn
	node     *fakeNode
	expected uint64 // next clientSeq on this connection, 0 = anything
	session  *fakeSession
	mute     bool // it swallowed an answer: a later one would be a gap
}

// CloseWrite ends the connection for the client; what was read can be handled later.
func (c *fakeConn) CloseWrite() { c.Conn.(*net.TCPConn).CloseWrite() } //nolint:errcheck // a test's connection

const testPartition wire.PartitionID = 0

func newFakeGrid(t testing.TB, nodes int) *fakeGrid {
	g := &fakeGrid{t: t, epoch: 1, sessions: map[[2]uint64]*fakeSession{}, window: 64}
	for i := range nodes {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n := &fakeNode{grid: g, ln: ln, name: fmt.Sprintf("fake-%d/%016x", i, i+1), conns: map[*fakeConn]struct{}{}}
		g.nodes = append(g.nodes, n)
		go n.serve()
		t.Cleanup(n.kill)
	}
	g.primary = g.nodes[0]
	return g
}

func (g *fakeGrid) endpoints() []string {
	var out []string
	for _, n := range g.nodes {
		out = append(out, n.ln.Addr().String())
	}
	return out
}

func (g *fakeGrid) dial(t testing.TB, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Endpoints: g.endpoints(), Grid: "fake", DialTimeout: time.Minute, RequestTimeout: time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// promote makes n the primary of the next epoch.
func (g *fakeGrid) promote(n *fakeNode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.epoch++
	g.primary = n
}

// evictAll forgets every session, as a full session table does.
func (g *fakeGrid) evictAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions = map[[2]uint64]*fakeSession{}
}

func (g *fakeGrid) accepted() []fakeOrder {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]fakeOrder(nil), g.orders...)
}

func (n *fakeNode) setHook(f func(c *fakeConn, frame []byte) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hook = f
}

func (n *fakeNode) serve() {
	for {
		conn, err := n.ln.Accept()
		if err != nil {
			return
		}
		c := &fakeConn{Conn: conn, node: n}
		n.mu.Lock()
		n.conns[c] = struct{}{}
		n.mu.Unlock()
		go c.run()
	}
}

// cut closes every connection but keeps listening.
func (n *fakeNode) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.Close()
	}
	n.conns = map[*fakeConn]struct{}{}
}

func (n *fakeNode) kill() {
	n.ln.Close()
	n.cut()
}

func (c *fakeConn) run() {
	defer c.Close()
	buf := make([]byte, 0, 1<<20) // kept, so that allocation tests see the client's only
	chunk := make([]byte, 64<<10)
	all := buf
	for {
		frame, rest, err := wire.Split(buf)
		if err != nil {
			return
		}
		if frame == nil {
			k, err := c.Read(chunk)
			if err != nil {
				return
			}
			if len(buf) == 0 {
				buf = all[:0]
			}
			buf = append(buf, chunk[:k]...)
			continue
		}
		c.node.mu.Lock()
		hook := c.node.hook
		c.node.mu.Unlock()
		if hook == nil || !hook(c, frame) {
			if !c.mute || !dropAnswers(c, frame) {
				c.handle(frame)
			}
		}
		buf = rest
	}
}

// handle is the behaviour of a correct node.
func (c *fakeConn) handle(frame []byte) {
	g := c.node.grid
	g.mu.Lock()
	out := c.answer(g, frame)
	g.mu.Unlock()
	c.Write(out) //nolint:errcheck // the client may be gone
}

func (c *fakeConn) answer(g *fakeGrid, frame []byte) []byte {
	switch wire.FrameType(frame) {
	case wire.TypeHello:
		return wire.AppendWelcome(nil, &wire.Welcome{Version: wire.Version, Features: g.features, MaxFrame: wire.MaxFrame, Window: g.window, Grid: []byte("fake"), Member: []byte(c.node.name)})
	case wire.TypeTableRequest:
		var m wire.Request
		wire.DecodeRequest(frame, wire.TypeTableRequest, &m)
		g.tables++
		return wire.AppendTable(nil, g.table(m.ReqID))
	case wire.TypeOpenSession:
		var m wire.OpenSession
		wire.DecodeOpenSession(frame, &m)
		if g.primary != c.node {
			return g.notPrimary(m.ReqID, wire.TypeOpenSession)
		}
		return c.open(g, &m)
	case wire.TypeSubmit:
		var m wire.Submit
		wire.DecodeSubmit(frame, &m)
		if g.primary != c.node || m.Epoch != g.epoch {
			return g.notPrimary(m.ClientSeq, wire.TypeSubmit)
		}
		return c.submit(g, &m)
	case wire.TypePing:
		var m wire.Request
		wire.DecodeRequest(frame, wire.TypePing, &m)
		return wire.AppendRequest(nil, wire.TypePong, &m)
	case wire.TypeGet:
		var m wire.Get
		wire.DecodeGet(frame, &m)
		if g.primary != c.node && m.Mode != wire.ModeBackup {
			return g.notPrimary(m.ReqID, wire.TypeGet)
		}
		reply := wire.GetReply{ReqID: m.ReqID, Epoch: g.epoch, CommitSeq: g.seq, Status: wire.GetNotFound}
		for _, o := range g.orders {
			if entry := fakeEntryOf(max(o.epoch, 1), o.seq, o.payload); m.By == wire.ByID && m.Seq == o.seq || m.By == wire.ByClOrdID && bytes.Equal(m.Key, order.ClOrdID(entry)) {
				reply.Status, reply.Entry = wire.GetFound, entry
			}
		}
		return wire.AppendGetReply(nil, g.part, &reply)
	}
	return nil
}

func (g *fakeGrid) table(reqID uint64) *wire.Table {
	p := wire.TablePart{Partition: g.part, Epoch: g.epoch, Lineage: 1, Primary: wire.NoPrimary, NInSync: uint8(len(g.nodes))}
	for i, n := range g.nodes {
		p.Members = append(p.Members, wire.TableMember{Address: []byte(n.ln.Addr().String()), Member: []byte(n.name)})
		if n == g.primary {
			p.Primary = uint8(i)
		}
	}
	t := &wire.Table{ReqID: reqID, Partitions: max(g.parts, 1), Parts: []wire.TablePart{p}}
	if g.beside != nil {
		g.beside.mu.Lock()
		defer g.beside.mu.Unlock()
		t.Parts = append(t.Parts, g.beside.table(0).Parts...)
	}
	return t
}

func (g *fakeGrid) notPrimary(id uint64, t wire.Type) []byte {
	m := wire.NotPrimary{RequestID: id, Epoch: g.epoch, ForType: t}
	if g.primary != nil {
		m.Address, m.Member = []byte(g.primary.ln.Addr().String()), []byte(g.primary.name)
	}
	return wire.AppendNotPrimary(nil, g.part, &m)
}

func (c *fakeConn) open(g *fakeGrid, m *wire.OpenSession) []byte {
	id := [2]uint64{m.IDHi, m.IDLo}
	s := g.sessions[id]
	if s == nil {
		g.nextSlot++
		s = &fakeSession{slot: g.nextSlot, gen: g.nextSlot, applied: map[uint64]uint64{}}
		g.sessions[id] = s
		g.seq++
	}
	c.expected, c.session = 0, s
	if s.node == c.node && s.epoch == g.epoch {
		c.expected = s.expected // the primary it had remembers
		if m.Attempt < s.attempt || m.Attempt == s.attempt && s.conn != c {
			return wire.AppendReject(nil, g.part, &wire.Reject{RequestID: m.ReqID, Slot: s.slot, Code: wire.CodeSessionMoved, ForType: wire.TypeOpenSession, Detail: s.attempt, Text: []byte("attempt")})
		}
	}
	s.node, s.epoch, s.conn, s.attempt = c.node, g.epoch, c, m.Attempt
	return wire.AppendSessionOpened(nil, g.part, &wire.SessionOpened{ReqID: m.ReqID, Slot: s.slot, Generation: s.gen, Window: g.window, LastClientSeq: s.last, Epoch: g.epoch})
}

func (c *fakeConn) submit(g *fakeGrid, m *wire.Submit) []byte {
	var s *fakeSession
	for _, x := range g.sessions {
		if x.slot == m.Slot && x.gen == m.Generation {
			s = x
		}
	}
	reject := func(code wire.Code, detail uint64, text string) []byte {
		return wire.AppendReject(nil, g.part, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: code, ForType: wire.TypeSubmit, Detail: detail, Text: []byte(text)})
	}
	if s == nil {
		return reject(wire.CodeSessionUnknown, 0, "no such session")
	}
	if s.conn != c || s.epoch != g.epoch {
		return reject(wire.CodeSessionMoved, s.attempt, "the session is not open on this connection")
	}
	ack := func(seq uint64, flags uint8) []byte {
		return wire.AppendAck(nil, g.part, &wire.Ack{ClientSeq: m.ClientSeq, Seq: seq, Epoch: g.epoch, Slot: m.Slot, Copies: uint8(len(g.nodes)), Flags: flags})
	}
	if c.expected != 0 && m.ClientSeq > c.expected {
		return reject(wire.CodeSequenceGap, c.expected, "gap")
	}
	if c.expected == 0 && m.ClientSeq > s.last+uint64(g.window) {
		return reject(wire.CodeSequenceGap, s.last+1, "beyond the window")
	}
	c.expected = max(c.expected, m.ClientSeq+1)
	s.expected = c.expected
	if seq, ok := s.applied[m.ClientSeq]; ok {
		return ack(seq, wire.AckDup)
	}
	if !bytes.Contains(m.Payload, []byte("\x0111=")) {
		return reject(wire.CodeBadFIX, 0, "no ClOrdID")
	}
	g.seq++
	s.applied[m.ClientSeq] = g.seq
	s.last = max(s.last, m.ClientSeq)
	g.orders = append(g.orders, fakeOrder{clientSeq: m.ClientSeq, payload: string(m.Payload), seq: g.seq})
	return ack(g.seq, 0)
}

// dropAnswers makes a node handle Submit frames but swallow the answers, from now
// on until the connection ends.
func dropAnswers(c *fakeConn, frame []byte) bool {
	if wire.FrameType(frame) != wire.TypeSubmit {
		return false
	}
	c.node.grid.mu.Lock()
	c.answer(c.node.grid, frame)
	c.node.grid.mu.Unlock()
	c.mute = true
	return true
}

// testOrder is a FIX message with the fields that routing and the fake look at.
func testOrder(i int) []byte {
	return fmt.Appendf(nil, "8=FIX.4.2\x019=0\x0135=D\x0111=T%06d\x0155=IBM\x0154=1\x0138=100\x0140=2\x0144=1.25\x0110=000\x01", i)
}

var _ io.Writer = (*fakeConn)(nil)

// expiring is a context whose deadline has come when a node has read a Submit, however
// long that takes.
type expiring struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func newExpiring(t *testing.T) *expiring {
	return &expiring{Context: t.Context(), done: make(chan struct{})}
}

// at gets the bytes a node has read, and reports whether it is a Submit.
func (e *expiring) at(frame []byte) bool {
	if wire.FrameType(frame) != wire.TypeSubmit {
		return false
	}
	e.once.Do(func() { close(e.done) })
	return true
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
