package replica_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

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
	w := newWorld(t, worldOptions{replicas: replicas, minInSync: minInSync, leases: leases, limits: replica.Limits{Window: 16, InFlight: 64, PendingReads: 16, JoinBound: 32}})
	w.quiet = os.Getenv("TRACE") == "" // one seed replayed: what happened, line by line
	if !w.quiet {
		defer func() { t.Logf("trace of %d replicas, seed %d:\n%s", replicas, seed, w.trace.String()) }()
	}
	w.faults.cut = map[[2]string]bool{}
	c := &chaos{w: w, leases: leases, rng: rand.New(rand.NewPCG(seed, uint64(replicas)))}
	for i := range 3 {
		c.clients = append(c.clients, newGridClient(c, uint64(i+1)))
	}
	w.observer = func(conn uint64, frame []byte) { c.clients[conn/1000-1].got(frame) }
	w.deferFlush = func() bool { return !c.calm && c.rng.IntN(4) == 0 }
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
		pod.step(replica.Event{Kind: replica.EventTick})
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
	switch c.rng.IntN(9) {
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
		if n.up && !n.paused {
			n.paused = true
		} else if n.paused {
			w.resume(n)
		}
	case 7:
		w.arb.mode = []arbiterMode{arbiterOK, arbiterOK, arbiterDown, arbiterCommitsLost, arbiterLate}[c.rng.IntN(5)]
		w.arb.landLate()
	case 8:
		w.arb.touch()
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
		if o != n && c.w.arb.rec.Has(o.self.Boot) {
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
		if n.paused {
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
// reads back what was.
type gridClient struct {
	c       *chaos
	id      uint64
	conn    uint64 // a new one for every node it turns to
	node    *node
	key     sessionKey
	session bool
	next    uint64
	open    map[uint64]bool // clientSeqs without an answer
	acked   map[string]uint64
	order   []string          // acknowledged, as they came
	reads   map[uint64]string // reqID: an order acknowledged before the read was sent
	reqID   uint64
	stop    bool
}

func newGridClient(c *chaos, id uint64) *gridClient {
	return &gridClient{c: c, id: id, conn: id * 1000, node: c.w.nodes[0], next: 1, open: map[uint64]bool{}, acked: map[string]uint64{}, reads: map[uint64]string{}}
}

func (g *gridClient) name(seq uint64) string { return fmt.Sprintf("g%d-%d", g.id, seq) }

func (g *gridClient) send(frame []byte) {
	g.node.step(replica.Event{Kind: replica.EventClientFrame, Conn: g.conn, Frame: frame})
}

// act sends something: the session, all that is open, one more, or a read.
func (g *gridClient) act() {
	if !g.session {
		if g.c.rng.IntN(3) == 0 {
			g.turnTo(g.c.w.nodes[g.c.rng.IntN(len(g.c.w.nodes))])
		}
		g.reqID++
		g.send(wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: g.reqID, IDHi: g.id, IDLo: 1}))
		return
	}
	switch n := g.c.rng.IntN(10); {
	case n == 0 || g.stop:
		if len(g.open) > 0 && (g.stop || g.c.rng.IntN(4) == 0) {
			g.turnTo(g.c.w.nodes[g.c.rng.IntN(len(g.c.w.nodes))])
		}
		g.resend()
	case n < 4 && len(g.acked) > 0:
		g.read()
	case g.lowest()+12 > g.next:
		g.open[g.next] = true
		g.next++
		g.submit(g.next - 1)
	}
}

func (g *gridClient) turnTo(n *node) {
	g.node = n
	g.conn = g.id*1000 + (g.conn+1)%999
}

func (g *gridClient) lowest() uint64 {
	for seq := uint64(1); seq < g.next; seq++ {
		if g.open[seq] {
			return seq
		}
	}
	return g.next
}

func (g *gridClient) resend() {
	for seq := g.lowest(); seq < g.next; seq++ {
		if g.open[seq] {
			g.submit(seq)
		}
	}
}

func (g *gridClient) submit(seq uint64) {
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

func (g *gridClient) got(frame []byte) {
	t := g.c.w.tb
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
		delete(g.open, m.ClientSeq)
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		switch m.Code {
		case wire.CodeOverloaded, wire.CodeSequenceGap, wire.CodeInsufficientInSync:
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
