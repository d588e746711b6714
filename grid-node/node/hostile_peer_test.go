package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The attacks of a stranger who reaches the data port, has read docs/protocol.md and holds
// no key: a pair without TLS, as created by default.

// helloAs is hello of a node by its member id.
func helloAs(role wire.Role, member, address string) []byte {
	_, boot, err := wire.ParseMemberID(member)
	if err != nil {
		panic(err)
	}
	return hello(role, boot, member, address)
}

// refused attacks a node: nothing it sends may have an effect but a Goaway.
func refused(t *testing.T, addr string, frames ...[]byte) {
	t.Helper()
	r := dialRaw(t, addr)
	if _, err := r.Write(bytes.Join(frames, nil)); err != nil {
		t.Fatal(err)
	}
	if m := r.last(); m == nil || m.Code != wire.GoawayRole || !strings.Contains(string(m.Text), "not accepted as a node") {
		t.Fatalf("got %+v, want Goaway %d", m, wire.GoawayRole)
	}
}

// stands checks that the grid is unchanged: the epoch, every order once, both copies
// equal.
func (g *grid) stands(epoch uint64, orders int) {
	g.t.Helper()
	if res := g.verify(""); int(res.Orders) != orders {
		g.t.Fatalf("%d orders, want %d", res.Orders, orders)
	}
	if now := g.record().Epoch; now != epoch {
		g.t.Fatalf("epoch %d, was %d", now, epoch)
	}
}

func (g *grid) record() arbiter.Record {
	g.t.Helper()
	rec, err := g.store.Get(g.t.Context(), PartitionName("g", 0))
	if err != nil {
		g.t.Fatal(err)
	}
	return rec
}

const strangerID = "g-s0-9/0000000000000bad"

// Two small frames to each copy: Hello as a node, and a configuration with the sender as
// its only member. Both copies used to discard their logs.
func TestStrangerCannotErase(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit2(t, g, 101)
	epoch := g.record().Epoch
	for i, addr := range g.addrs {
		refused(t, addr, helloAs(wire.RolePeer, strangerID, "127.0.0.1:1"),
			wire.AppendNewConfig(nil, 0, &wire.NewConfig{PeerHead: wire.PeerHead{Epoch: epoch + 10, From: 0xbad, To: g.nodes[i].boot}, Lineage: 1,
				ChangeID: []byte("forged"), Version: []byte("4711"), N: 1, Members: [wire.MaxMembers]wire.TableMember{{Address: []byte("127.0.0.1:1"), Member: []byte(strangerID)}}}))
	}
	g.stands(epoch, 101)
}

// The backup is dead and the API server unavailable: the primary acknowledges nothing. A
// stranger that acknowledges in the name of the backup changes nothing about it.
func TestForgedAckIsNone(t *testing.T) {
	g := newGrid(t, 2, 1)
	away := &flaky{Arbiter: g.store, away: make(chan struct{})}
	g.arb = away
	g.up()
	submit2(t, g, 10)
	backup, primary := g.nodes[1].self, g.nodes[0]
	close(away.away)
	g.kill(1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	c := g.client()
	result := make(chan error, 1)
	go func() {
		rc, err := c.Submit(ctx, fix("forged"))
		if err == nil {
			err = fmt.Errorf("acknowledged: %v", rc)
		}
		result <- err
	}()
	_, boot, err := wire.ParseMemberID(backup)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var epoch, last, hash uint64
		g.onLoop(0, func() {
			p := primary.data.parts.list[0]
			epoch = p.replica.Status().Config.Epoch
			last, hash = p.store.Last()
		})
		refused(t, g.addrs[0], helloAs(wire.RolePeer, backup, g.addrs[1]),
			wire.AppendPrepareAck(nil, 0, &wire.PrepareAck{PeerHead: wire.PeerHead{Epoch: epoch, From: boot, To: primary.boot}, StoredSeq: last, Hash: hash}))
		select {
		case err := <-result:
			if strings.HasPrefix(err.Error(), "acknowledged") {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// A forged order in the name of the primary.
func TestForgedPrepareIsNone(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit2(t, g, 10)
	rec := g.record()
	var prepare []byte
	g.onLoop(1, func() {
		s := g.nodes[1].data.parts.list[0].store
		last, hash := s.Last()
		e := order.Entry{Size: order.HeaderSize + 16, Kind: order.KindNoop, Seq: last + 1, PrevHash: hash, Epoch: uint32(rec.Epoch)}
		entry := make([]byte, e.Size)
		e.Put(entry)
		prepare = wire.AppendPrepare(nil, 0, &wire.Prepare{PeerHead: wire.PeerHead{Epoch: rec.Epoch, From: g.nodes[0].boot, To: g.nodes[1].boot}, CommitSeq: last + 1, Entries: entry})
	})
	for _, role := range []wire.Role{wire.RolePeer, wire.RoleBulk} {
		refused(t, g.addrs[1], helloAs(role, g.nodes[0].self, g.addrs[0]), prepare)
	}
	submit2(t, g, 10)
	g.stands(rec.Epoch, 20)
}

// Ten Hellos from the address of the backup, each another process: none of them makes the
// primary believe that the backup has died.
func TestHellosDoNotMoveTheEpoch(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit2(t, g, 10)
	epoch := g.record().Epoch
	for i := range 10 {
		member := wire.FormatMemberID("g-s0-1", uint64(0xbad0+i))
		refused(t, g.addrs[0], helloAs(wire.RolePeer, member, g.addrs[1]), header(8, byte(wire.TypePing)))
		refused(t, g.addrs[1], helloAs(wire.RolePeer, wire.FormatMemberID("g-s0-0", uint64(0xbad0+i)), g.addrs[0]), header(8, byte(wire.TypePing)))
	}
	for _, rc := range submit2(t, g, 10) {
		if rc.Copies != 2 {
			t.Fatalf("%v", rc)
		}
	}
	g.stands(epoch, 20)
	s, err := g.nodes[0].pages.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Node.NodesRefused < 10 {
		t.Errorf("%d refusals were counted, want 10 or more", s.Node.NodesRefused)
	}
}

// For every role a stranger claims, and every frame in place of a proof.
func TestClaimedRoles(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	random := make([]byte, 48)
	_, _ = rand.Read(random)
	var made wire.Proof
	hello := helloAs(wire.RolePeer, strangerID, "127.0.0.1:1")
	_, proof, err := peerkey.Prove(peerkey.New(), hello, hello) // of another key, for another challenge
	if err != nil {
		t.Fatal(err)
	}
	copy(made.Bytes[:], proof)
	for _, role := range []wire.Role{wire.RolePeer, wire.RoleLiveness, wire.RoleBulk} {
		for name, next := range map[string][]byte{
			"random proof":    wire.AppendProof(nil, wire.TypeProof, &wire.Proof{Bytes: [wire.ProofSize]byte(random)}),
			"another key":     wire.AppendProof(nil, wire.TypeProof, &made),
			"zeros":           wire.AppendProof(nil, wire.TypeProof, &wire.Proof{}),
			"its own answer":  wire.AppendProof(nil, wire.TypeProofAnswer, &made),
			"a challenge":     wire.AppendChallenge(nil, &wire.Challenge{Version: wire.Version, Member: []byte(strangerID), Address: []byte("127.0.0.1:1")}),
			"Hello again":     hello,
			"Beacon in plain": wire.AppendBeacon(nil, 0, &wire.Beacon{PeerHead: wire.PeerHead{Epoch: 99, From: 0xbad, To: g.nodes[0].boot}}),
		} {
			t.Run(name, func(t *testing.T) {
				refused(t, g.addrs[0], helloAs(role, strangerID, "127.0.0.1:1"), next)
			})
		}
	}
	submit2(t, g, 5)
}

// A node does not accept just any peer at an address as the node it dialled.
func TestDialledStrangerIsRefused(t *testing.T) {
	for name, answer := range map[string][]byte{
		"Welcome without a challenge": wire.AppendWelcome(nil, &wire.Welcome{Version: wire.Version, MaxFrame: wire.MaxFrame, Window: 8, Grid: []byte("g"), Member: []byte(strangerID)}),
		"an unrequested answer":       wire.AppendProof(nil, wire.TypeProofAnswer, &wire.Proof{}),
		"a proof of no key": append(wire.AppendChallenge(nil, &wire.Challenge{Version: wire.Version, Member: []byte(strangerID), Address: []byte("127.0.0.1:1")}),
			wire.AppendProof(nil, wire.TypeProofAnswer, &wire.Proof{})...),
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			g := newGrid(t, 1, 1)
			g.base.Peers = []string{ln.Addr().String()}
			g.up()
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			r := &raw{Conn: c, t: t}
			if f := r.next(); wire.FrameType(f) != wire.TypeHello {
				t.Fatalf("got %v", wire.FrameType(f))
			}
			_, _ = c.Write(answer)
			if m := r.last(); m == nil || m.Code != wire.GoawayRole {
				t.Fatalf("got %+v, want Goaway %d", m, wire.GoawayRole)
			}
			g.onLoop(0, func() {
				if n := len(g.nodes[0].data.peers.byAddr); n != 0 {
					t.Errorf("it has %d peers", n)
				}
			})
		})
	}
}

// middle is a proxy between the nodes: each is reached through one.
type middle struct {
	to     string
	mu     sync.Mutex
	tamper func(record []byte) [][]byte // what a record of the next peer connection becomes; nil: itself
	taped  []byte                       // frames of a dialler of a peer connection
	hits   atomic.Int64
}

// through puts a middle in front of each node.
func through(t *testing.T, g *grid) []*middle {
	t.Helper()
	var list []*middle
	g.advertise = nil
	for i := range g.addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		m := &middle{to: g.addrs[i]}
		g.advertise = append(g.advertise, ln.Addr().String())
		list = append(list, m)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go m.carry(c)
			}
		}()
	}
	return list
}

func (m *middle) carry(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", m.to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	done := make(chan struct{}, 2)
	go func() { m.relay(in, out, true); done <- struct{}{} }()
	go func() { m.relay(out, in, false); done <- struct{}{} }()
	<-done
}

// relay forwards frames, and records after the two of a handshake.
func (m *middle) relay(from, to net.Conn, dialler bool) {
	var buf []byte
	peer := false
	for n := 0; ; {
		for len(buf) >= 4 {
			size := int(uint32(buf[0]) | uint32(buf[1])<<8 | uint32(buf[2])<<16 | uint32(buf[3])<<24)
			if size < 4 || len(buf) < size {
				break
			}
			unit := bytes.Clone(buf[:size])
			buf = buf[size:]
			if n == 0 && dialler {
				peer = wire.FrameType(unit) == wire.TypeHello && wire.Role(unit[16]) == wire.RolePeer
			}
			units := [][]byte{unit}
			m.mu.Lock()
			if dialler && peer {
				m.taped = append(m.taped, unit...)
				if n >= 2 && m.tamper != nil {
					if units = m.tamper(unit); units == nil {
						units = [][]byte{unit}
					} else if len(units) > 0 {
						m.hits.Add(1)
					}
				}
			}
			m.mu.Unlock()
			n++
			for _, u := range units {
				if _, err := to.Write(u); err != nil {
					return
				}
			}
		}
		b := make([]byte, 64<<10)
		k, err := from.Read(b)
		buf = append(buf, b[:k]...)
		if err != nil {
			return
		}
	}
}

// A proxy between the nodes changes, repeats and reorders their records. The connection
// ends, the next one works, and every order is there once.
func TestManInTheMiddle(t *testing.T) {
	for name, tamper := range map[string]func(record, before []byte) [][]byte{
		"a bit":    func(r, _ []byte) [][]byte { r[len(r)/2] ^= 1; return [][]byte{r} },
		"repeats":  func(r, _ []byte) [][]byte { return [][]byte{r, r} },
		"reorders": func(r, before []byte) [][]byte { return [][]byte{r, before} },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrid(t, 2, 1)
			ms := through(t, g)
			g.up()
			submit2(t, g, 20)
			for _, m := range ms {
				var held []byte
				m.mu.Lock()
				m.tamper = func(r []byte) [][]byte {
					if name == "reorders" && held == nil {
						held = r
						return [][]byte{}
					}
					m.tamper = nil // once
					return tamper(r, held)
				}
				m.mu.Unlock()
			}
			var wg sync.WaitGroup
			for k := range 4 { // several in flight: what is held back is overtaken
				c := g.client()
				wg.Go(func() { submit(t, c, fmt.Sprintf("%s-%d", name, k), 50) })
			}
			wg.Wait()
			if ms[0].hits.Load()+ms[1].hits.Load() == 0 {
				t.Fatal("nothing was changed")
			}
			g.until(func() bool {
				n := uint64(0)
				for _, r := range g.nodes {
					s, err := r.pages.snapshot()
					if err != nil {
						return false
					}
					n += s.Node.BadFrames
				}
				return n > 0
			}, "it was not detected")
			g.until(func() bool { return len(g.record().InSync) == 2 }, "the pair does not come together again")
			for _, rc := range submit2(t, g, 10) {
				if rc.Copies == 0 {
					t.Fatalf("%v", rc)
				}
			}
			g.verify("")
		})
	}
}

// A dialler's frames recorded on one connection are worthless on another.
func TestReplayedHandshake(t *testing.T) {
	g := newGrid(t, 2, 1)
	ms := through(t, g)
	g.up()
	submit2(t, g, 20)
	epoch := g.record().Epoch
	replayed := 0
	for i, m := range ms {
		m.mu.Lock()
		tape := bytes.Clone(m.taped)
		m.mu.Unlock()
		if len(tape) == 0 {
			continue // the other one dialled
		}
		replayed++
		refused(t, g.addrs[i], tape)
		refused(t, g.addrs[1-i], tape) // nor at another member
	}
	if replayed == 0 {
		t.Fatal("no node dialled")
	}
	g.stands(epoch, 20)
}

// A node with another key stays outside and takes no place.
func TestAnotherKeyStaysOutside(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit2(t, g, 10)
	g.kill(1)
	g.until(func() bool { return len(g.record().InSync) == 1 }, "the member that ended is not dropped")
	keys := g.base.PeerKeys
	g.base.PeerKeys = peerkey.Of(peerkey.New())
	g.start(1)
	g.until(func() bool {
		s, err := g.nodes[0].pages.snapshot()
		return err == nil && s.Node.NodesRefused > 0
	}, "the primary rejects none")
	if n := len(g.record().InSync); n != 1 {
		t.Fatalf("%d members in sync", n)
	}
	submit2(t, g, 10)
	g.kill(1)
	g.base.PeerKeys = keys
	g.start(1)
	g.ready()
	g.verify("")
}

// A key is replaced while orders flow: distributed to all, then used, then the old one is
// removed.
func TestPeerKeyRotation(t *testing.T) {
	g := newGrid(t, 2, 1)
	before, now := peerkey.New(), peerkey.New()
	path := t.TempDir() + "/peer.key"
	if err := peerkey.WriteFile(path, before); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.base.PeerKeys, err = peerkey.Load(path); err != nil {
		t.Fatal(err)
	}
	g.up()
	for _, keys := range [][]peerkey.Key{{before, now}, {now, before}, {now}} {
		var text string
		for _, k := range keys {
			text += k.Text()
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g.until(func() bool {
			got := g.base.PeerKeys.Accepted()
			return len(got) == len(keys) && got[0] == keys[0]
		}, "the file is not read again")
		submit2(t, g, 5)
		g.kill(1)
		g.start(1)
		g.ready()
	}
	g.verify("")
}
