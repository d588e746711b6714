package node

import (
	"cmp"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Two nodes dial each other, and the one whose connection is not preferred closes it.
// Frames that the other still writes to it, because the Welcome of the better one is in
// flight, are discarded: they must be resent, as nothing else detects it. The timer that
// would is made longer than the test.
func TestOrderOnTheConnectionThatIsGivenUp(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuto, transport.KindNet} {
		t.Run(cmp.Or(string(kind), "default"), func(t *testing.T) { surplus(t, kind) })
	}
}

func surplus(t *testing.T, kind transport.Kind) {
	g := newGrid(t, 2, 1)
	g.base.Transport = kind
	// The primary's loop is blocked between Hello and Welcome: it could not prove its key
	// there. Closing a connection, and its timing, is the same with a key.
	g.base.PeerKeys, g.base.InsecurePeers = nil, true
	g.base.Lease, g.base.Grace = 5*time.Minute, 10*time.Minute
	if g.addrs[1] < g.addrs[0] { // node 0 is the primary, and its connection the preferred one
		g.addrs[0], g.addrs[1] = g.addrs[1], g.addrs[0]
	}
	g.up()
	c := newFastClient(t, g)
	c.batch(1)
	primary, backup := g.nodes[0], g.nodes[1]
	g.until(func() bool { return g.dialledBy(1) }, "the backup does not dial")

	// The primary sends Hello on a connection of its own; the backup does not read it yet.
	answer := g.stall(1)
	g.onLoop(0, func() {
		p := primary.data.peers.byAddr[g.addrs[1]]
		p.dialAt = 0
		primary.data.peers.dialPeer(p)
	})
	g.until(func() (said bool) {
		g.onLoop(0, func() {
			for _, l := range primary.data.listeners.undecided {
				said = said || (l.role == wire.RolePeer && l.conn.Open() && l.conn.Buffered() == 0)
			}
		})
		return said
	}, "the primary does not say Hello")

	// An order is with the primary when the backup closes its connection. The Welcome that
	// shows it is read after the order was replicated.
	goOn := make(chan struct{})
	arrived := make(chan error, 1)
	primary.loop.Post(func() {
		<-goOn
		for _, l := range primary.data.clients.byID {
			_, err := primary.data.OnFrames(l.conn, c.frames(1))
			arrived <- err
		}
	})
	answer()
	g.until(func() (given bool) {
		g.onLoop(1, func() { given = !backup.data.peers.byAddr[g.addrs[0]].out.conn.Dialled() })
		return given
	}, "the backup keeps its own connection")
	close(goOn)
	if err := <-arrived; err != nil {
		t.Fatal(err)
	}
	if typ := wire.FrameType(c.next()); typ != wire.TypeAck {
		t.Fatalf("got %v", typ)
	}
	g.verify("")
}

// dialledBy makes node i the one that dialled the only connection of the pair: the other
// closes its own, and the remaining end dials at once.
func (g *grid) dialledBy(i int) (yes bool) {
	g.onLoop(i, func() {
		p := g.nodes[i].data.peers.byAddr[g.addrs[1-i]]
		yes = p.out != nil && p.out.conn.Dialled() && len(p.links) == 1
	})
	if yes {
		return true
	}
	g.onLoop(1-i, func() {
		for _, l := range g.nodes[1-i].data.peers.byAddr[g.addrs[i]].links {
			l.conn.Close(nil)
		}
	})
	time.Sleep(5 * time.Millisecond)
	return false
}

func (g *grid) onLoop(i int, f func()) {
	g.t.Helper()
	if err := g.nodes[i].onLoop(f); err != nil {
		g.t.Fatal(err)
	}
}
