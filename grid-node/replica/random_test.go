package replica_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestRandom drives partitions through lost, doubled, reordered and delayed
// messages, cuts, pauses, crashes and a faulty arbiter, then heals everything
// and looks: logs byte for byte the same, every acknowledged order there once
// and where the acknowledgement said, every confirmed read true.
func TestRandom(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	if n, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for _, replicas := range []int{2, 3} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("replicas=%d/seed=%d", replicas, seed), func(t *testing.T) {
				runRandom(t, replicas, seed, 4000)
			})
		}
	}
}

type chaos struct {
	w       *world
	rng     *rand.Rand
	clients []*gridClient
	calm    bool
	leases  bool
}

func runRandom(t *testing.T, replicas int, seed uint64, steps int) {
	minInSync := 1
	if seed%5 == 4 {
		minInSync = 2
	}
	leases := seed%2 == 1
	w := newWorld(t, worldOptions{replicas: replicas, minInSync: minInSync, leases: leases, timing: replica.Timing{HandOverDelay: 30 * time.Millisecond}, limits: replica.Limits{Window: 16, InFlight: 64, PendingReads: 16, JoinBound: 32}, oneThread: seed%7 == 6})
	w.quiet = os.Getenv("TRACE") == "" // one seed replayed: what happened, line by line
	if !w.quiet {
		defer func() { t.Logf("trace of %d replicas, seed %d:\n%s", replicas, seed, w.trace.String()) }()
	}
	w.faults.cut = map[[2]string]bool{}
	c := &chaos{w: w, leases: leases, rng: rand.New(rand.NewPCG(seed, uint64(replicas)))}
	for i := range 3 {
		c.clients = append(c.clients, newGridClient(c, uint64(i+1)))
	}
	w.observer = func(conn uint64, frame []byte) { c.clients[conn/1000-1].got(conn, frame) }
	w.deferFlush = func() bool { return !c.calm && c.rng.IntN(4) == 0 }
	w.vitalsFirst = func() bool { return c.rng.IntN(2) == 0 }
	w.arb.watchLost = func() bool { return !c.calm && c.rng.IntN(2) == 0 }
	for range steps {
		c.step()
		if t.Failed() {
			t.Fatalf("seed %d failed; the run is reproducible", seed)
		}
	}
	c.heal()
	c.check(t)
}

// step does one thing of many.
func (c *chaos) step() {
	w := c.w
	switch n := c.rng.IntN(100); {
	case n < 55:
		c.deliverOne()
	case n < 75:
		c.clients[c.rng.IntN(len(c.clients))].act()
	case n < 93:
		w.clock += int64(c.rng.IntN(8)) * ms
		pod := w.nodes[c.rng.IntN(len(w.nodes))]
		switch c.rng.IntN(4) {
		case 0:
			pod.beat()
		case 1:
			pod.step(replica.Event{Kind: replica.EventTick})
		default: // both threads are awake, in either order
			pod.beat()
			pod.step(replica.Event{Kind: replica.EventTick})
		}
	case n < 97:
		if w.arb.busy() {
			w.arb.answerNext()
		}
	default:
		c.fault()
	}
}

func (c *chaos) deliverOne() {
	w := c.w
	if len(w.net) == 0 {
		return
	}
	i := 0
	if c.rng.IntN(5) == 0 {
		i = c.rng.IntN(len(w.net)) // out of order
	}
	m := w.net[i]
	switch c.rng.IntN(40) {
	case 0: // lost
		w.net = append(w.net[:i], w.net[i+1:]...)
		return
	case 1: // arrives twice
	default:
		w.net = append(w.net[:i], w.net[i+1:]...)
	}
	w.arrive(&m)
}

func (c *chaos) fault() {
	w := c.w
	n, o := w.nodes[c.rng.IntN(len(w.nodes))], w.nodes[c.rng.IntN(len(w.nodes))]
	switch c.rng.IntN(12) {
	case 0:
		w.faults.cut[[2]string{n.pod, o.pod}] = true
	case 1, 2:
		clear(w.faults.cut)
		for _, other := range w.nodes {
			if other != n {
				n.step(replica.Event{Kind: replica.EventPeerUp, Address: other.address})
			}
		}
	case 3:
		if n != o {
			n.step(replica.Event{Kind: replica.EventPeerDown, Address: o.address})
		}
	case 4:
		if c.mayCrash(n) {
			w.crash(n, c.rng.IntN(2) == 0)
		}
	case 5:
		if !n.up {
			n.start()
		}
	case 6:
		switch {
		case n.paused || n.stalled:
			w.resume(n)
		case n.up && c.rng.IntN(2) == 0:
			n.stalled = true
		case n.up:
			n.paused = true
		}
	case 7:
		w.arb.mode = []arbiterMode{arbiterOK, arbiterOK, arbiterDown, arbiterCommitsLost, arbiterLate}[c.rng.IntN(5)]
		w.arb.landLate()
	case 8:
		w.arb.touch()
	case 9:
		w.arb.spec = replica.Config{Replicas: len(w.nodes), PreferredPod: o.pod}
		w.arb.touch()
		w.arb.tellAll()
	case 10:
		n.step(replica.Event{Kind: replica.EventDrain})
	case 11: // one that may end does
		if n.up && n.drained {
			w.crash(n, c.rng.IntN(2) == 0)
		}
	}
}

// mayCrash says whether the data survives: another in-sync process is alive and
// no change is under way that could make this one the last.
func (c *chaos) mayCrash(n *node) bool {
	if !n.up || len(c.w.arb.held) > 0 || c.w.arb.busy() {
		return false
	}
	alive := 0
	for _, o := range c.w.nodes {
		if !o.up {
			continue
		}
		s := o.r.Status()
		if s.Role == replica.RoleFenced || s.Suspended || s.Config == nil || s.Role == replica.RoleClaiming {
			return false
		}
		if o != n && !o.drained && c.w.arb.rec.Has(o.self.Boot) {
			alive++
		}
	}
	return alive > 0
}

// heal ends all faults and lets the clients finish.
func (c *chaos) heal() {
	w := c.w
	c.calm = true
	clear(w.faults.cut)
	w.arb.mode = arbiterOK
	w.arb.landLate()
	for _, n := range w.nodes {
		if n.paused || n.stalled {
			w.resume(n)
		}
		if !n.up {
			n.start()
		}
	}
	for i := range 120 {
		for _, cl := range c.clients {
			cl.stop = i > 30
			cl.act()
		}
		w.tick(50 * ms)
		for _, n := range w.nodes {
			if n.up && n.drained {
				w.crash(n, true)
				n.start()
			}
		}
	}
}

func (c *chaos) check(t *testing.T) {
	w := c.w
	t.Helper()
	first := w.nodes[0]
	last, hash := first.st.Last()
	for _, n := range w.nodes {
		s := n.r.Status()
		if s.Config == nil || len(s.Config.InSync) != len(w.nodes) || s.CommitSeq != s.LastSeq {
			t.Fatalf("%s is not back in sync: %s last %d commit %d", n.name(), n.statusText(), s.LastSeq, s.CommitSeq)
		}
		if l, h := n.st.Last(); l != last || h != hash {
			t.Fatalf("%s ends at %d %016x, %s at %d %016x", n.name(), l, h, first.name(), last, hash)
		}
		for seq := uint64(1); seq <= last; seq++ {
			if !bytes.Equal(n.st.Get(seq), first.st.Get(seq)) {
				t.Fatalf("entry %d of %s differs", seq, n.name())
			}
		}
	}
	present := map[string]uint64{}
	for seq := uint64(1); seq <= last; seq++ {
		var e order.Entry
		if _, err := order.DecodeEntry(first.st.Get(seq), &e); err != nil || e.Seq != seq {
			t.Fatalf("entry %d: seq %d, %v", seq, e.Seq, err)
		}
		if e.Kind == order.KindOrder {
			id := string(order.ClOrdID(first.st.Get(seq)))
			if present[id] != 0 {
				t.Fatalf("order %s is there twice, at %d and %d", id, present[id], seq)
			}
			present[id] = seq
		}
	}
	acked := 0
	for _, cl := range c.clients {
		if len(cl.open) > 0 {
			t.Errorf("client %d: %d orders were never answered", cl.id, len(cl.open))
		}
		for id := range cl.refused {
			if present[id] != 0 {
				t.Errorf("client %d was told that order %s was refused, and it is at %d", cl.id, id, present[id])
			}
		}
		for id, seq := range cl.acked {
			if present[id] != seq {
				t.Errorf("order %s was acknowledged at %d and is at %d", id, seq, present[id])
			}
			acked++
		}
	}
	if acked == 0 {
		t.Error("no order was ever acknowledged: this run shows nothing")
	}
}

// gridClient submits orders on one session, repeats what was not answered, and
// reads back what was. Its connections may stall: what was sent on one arrives
// when the client has long gone on over another.
type gridClient struct {
	c       *chaos
	id      uint64
	conn    uint64 // a new one for every node it turns to
	attempt uint64 // of opening the session
	node    *node
	key     sessionKey
	session bool // open on conn
	late    []lateFrame
	next    uint64
	open    map[uint64]uint64 // clientSeqs without an answer, and the connection they wait for one on
	refused map[string]bool   // given up after a refusal: never in the log
	acked   map[string]uint64
	highest uint64            // clientSeq acknowledged
	fill    uint64            // a refused clientSeq that a new primary does not know of, 0 for none
	order   []string          // acknowledged, as they came
	reads   map[uint64]string // reqID: an order acknowledged before the read was sent
	reqID   uint64
	stop    bool
}

// lateFrame is stuck in the connection to one process.
type lateFrame struct {
	conn   uint64
	node   *node
	starts uint64
	frame  []byte
}

func newGridClient(c *chaos, id uint64) *gridClient {
	return &gridClient{c: c, id: id, conn: id * 1000, attempt: 1, node: c.w.nodes[0], next: 1,
		open: map[uint64]uint64{}, refused: map[string]bool{}, acked: map[string]uint64{}, reads: map[uint64]string{}}
}

func (g *gridClient) name(seq uint64) string { return fmt.Sprintf("g%d-%d", g.id, seq) }

// send writes to the present connection; behind what is stuck there, if
// anything is.
func (g *gridClient) send(frame []byte) {
	if g.stuck() || !g.c.calm && g.c.rng.IntN(30) == 0 {
		g.late = append(g.late, lateFrame{g.conn, g.node, g.node.starts, frame})
		return
	}
	g.node.step(replica.Event{Kind: replica.EventClientFrame, Conn: g.conn, Frame: frame})
}

func (g *gridClient) stuck() bool {
	return len(g.late) > 0 && g.late[len(g.late)-1].conn == g.conn
}

// arrive lets the oldest frame that is stuck get to its process, if that still runs.
func (g *gridClient) arrive() {
	if len(g.late) == 0 {
		return
	}
	f := g.late[0]
	g.late = g.late[1:]
	if f.node.up && f.node.starts == f.starts {
		f.node.step(replica.Event{Kind: replica.EventClientFrame, Conn: f.conn, Frame: f.frame})
	}
}

// act sends something: the session, all that is open, one more, or a read.
func (g *gridClient) act() {
	for g.c.calm && len(g.late) > 0 {
		g.arrive()
	}
	if g.c.rng.IntN(4) == 0 {
		g.arrive()
	}
	if g.stuck() && g.c.rng.IntN(2) == 0 {
		g.turnTo(g.node)
	}
	if !g.session {
		if g.c.rng.IntN(3) == 0 {
			g.turnTo(g.c.w.nodes[g.c.rng.IntN(len(g.c.w.nodes))])
		}
		g.reqID++
		g.send(wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: g.reqID, IDHi: g.id, IDLo: 1, Attempt: g.attempt}))
		return
	}
	switch n := g.c.rng.IntN(10); {
	case g.fill != 0: // an empty frame uses the number up
		g.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: g.key.slot, Generation: g.key.generation, ClientSeq: g.fill}))
		g.fill = 0
	case n == 0 || g.stop:
		if !g.resend() && (g.stop || g.c.rng.IntN(4) == 0) {
			g.turnTo(g.c.w.nodes[g.c.rng.IntN(len(g.c.w.nodes))])
		}
	case n < 4 && len(g.acked) > 0:
		g.read()
	case g.lowest()+12 > g.next:
		g.open[g.next] = 0
		g.next++
		g.submit(g.next - 1)
	}
}

// turnTo goes on over a new connection, on which the session is not open yet.
func (g *gridClient) turnTo(n *node) {
	g.node, g.session = n, false
	g.attempt++
	g.conn = g.id*1000 + g.attempt%999
}

func (g *gridClient) lowest() uint64 {
	for seq := uint64(1); seq < g.next; seq++ {
		if _, open := g.open[seq]; open {
			return seq
		}
	}
	return g.next
}

// resend repeats what has no answer and was not sent on this connection: two
// copies on one would have an answer each. It reports whether there was anything.
func (g *gridClient) resend() bool {
	conn, waits := g.conn, len(g.open) != 0
	for seq := g.lowest(); seq < g.next && g.conn == conn; seq++ {
		if at, open := g.open[seq]; open && at != conn {
			g.submit(seq)
			waits = false
		}
	}
	return !waits
}

func (g *gridClient) submit(seq uint64) {
	g.open[seq] = g.conn
	g.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: g.key.slot, Generation: g.key.generation, ClientSeq: seq, Payload: fixOrder(g.name(seq), 0)}))
}

func (g *gridClient) read() {
	recent := max(0, len(g.order)-3) // a replica that was left behind does not know these
	id := g.order[recent+g.c.rng.IntN(len(g.order)-recent)]
	g.reqID++
	g.reads[g.reqID] = id
	m := wire.Get{ReqID: g.reqID, By: wire.ByClOrdID, Mode: wire.ModeConfirmed, Key: []byte(id)}
	if g.c.leases {
		m.Mode = wire.ModeLeased
	}
	frame := wire.AppendGet(nil, partition, &m)
	// Any node may believe that it is the primary; none may answer wrongly.
	anyNode := g.c.w.nodes[g.c.rng.IntN(len(g.c.w.nodes))]
	anyNode.step(replica.Event{Kind: replica.EventClientFrame, Conn: g.id*1000 + 999, Frame: frame})
}

// got handles an answer. On a connection that was left nobody reads; reads have
// one of their own.
func (g *gridClient) got(conn uint64, frame []byte) {
	t := g.c.w.tb
	if conn != g.conn && conn != g.id*1000+999 {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeSessionOpened:
		var m wire.SessionOpened
		_ = wire.DecodeSessionOpened(frame, &m)
		g.key, g.session = sessionKey{m.Slot, m.Generation}, true
	case wire.TypeAck:
		var m wire.Ack
		_ = wire.DecodeAck(frame, &m)
		id := g.name(m.ClientSeq)
		if before, ok := g.acked[id]; ok && before != m.Seq {
			t.Errorf("order %s was acknowledged at %d and at %d", id, before, m.Seq)
		}
		if g.acked[id] == 0 {
			g.order = append(g.order, id)
		}
		g.acked[id] = m.Seq
		g.highest = max(g.highest, m.ClientSeq)
		delete(g.open, m.ClientSeq)
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		switch m.Code {
		case wire.CodeOverloaded, wire.CodeInsufficientInSync:
			// Sometimes the client takes no for an answer. Not too often in a row:
			// the window of a new primary begins at what was applied.
			if _, open := g.open[m.RequestID]; !open || m.ForType != wire.TypeSubmit {
				break
			}
			if g.open[m.RequestID] = 0; m.RequestID < g.highest+8 && g.c.rng.IntN(2) == 0 {
				g.refused[g.name(m.RequestID)] = true
				delete(g.open, m.RequestID)
			}
		case wire.CodeSequenceGap:
			if _, open := g.open[m.RequestID]; open {
				g.open[m.RequestID] = 0
			}
			if g.refused[g.name(m.Detail)] {
				g.fill = m.Detail
			}
		case wire.CodeBadFIX:
			if !g.refused[g.name(m.RequestID)] {
				t.Errorf("client %d: %s", g.id, replyText(frame))
			}
		case wire.CodeSessionMoved:
			g.turnTo(g.node)
		default:
			t.Errorf("client %d: %s", g.id, replyText(frame))
		}
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		if n := g.c.w.byAddress(string(m.Address)); n != nil && m.ForType != wire.TypeGet {
			g.turnTo(n)
		}
	case wire.TypeGetReply:
		var m wire.GetReply
		_ = wire.DecodeGetReply(frame, &m)
		id := g.reads[m.ReqID]
		if m.Status != wire.GetFound || order.Seq(m.Entry) != g.acked[id] {
			t.Errorf("confirmed read of %s, acknowledged at %d: %s", id, g.acked[id], replyText(frame))
		}
	}
}
