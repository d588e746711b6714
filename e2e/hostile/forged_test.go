package hostile

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

const (
	forger     = "dev-s0-9/0000000000000bad"
	forgerAt   = "127.0.0.1:1"
	forgerBoot = 0xbad
)

// forged are the frames that erased a partition: a configuration of a later epoch with
// the forger as only member, and answers to a copy that joins; and the one that had orders
// acknowledged with no copy of them.
func forged(t *testing.T, b []byte, addr string) []byte {
	t.Helper()
	to := bootOf(t, addr)
	for part := range wire.PartitionID(2) {
		for epoch := uint64(2); epoch < 12; epoch++ {
			head := wire.PeerHead{Epoch: epoch, From: forgerBoot, To: to}
			b = wire.AppendNewConfig(b, part, &wire.NewConfig{PeerHead: head, Lineage: 1, ChangeID: []byte("forged"), Version: []byte("4711"), N: 1,
				Members: [wire.MaxMembers]wire.TableMember{{Address: []byte(forgerAt), Member: []byte(forger)}}})
			b = wire.AppendPrepareAck(b, part, &wire.PrepareAck{PeerHead: head, StoredSeq: 1 << 30})
			b = wire.AppendJoinReply(b, part, &wire.JoinReply{PeerHead: head, Code: wire.JoinDiverged})
		}
	}
	return b
}

// forgeConfig is from a stranger that claims to be a node.
func forgeConfig(t *testing.T, addr string) []byte {
	return forged(t, wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RolePeer, BootID: forgerBoot,
		Grid: []byte("dev"), Member: []byte(forger), Address: []byte(forgerAt)}), addr)
}

// forgeAsClient is from a stranger that does not even claim that.
func forgeAsClient(t *testing.T, addr string) []byte { return forged(t, hello(), addr) }

// bootOf is the boot id that a node sends to any client.
func bootOf(t *testing.T, addr string) uint64 {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var m wire.Welcome
	if _, err := c.Write(hello()); err != nil {
		t.Fatal(err)
	}
	if err := wire.DecodeWelcome(answer(t, c), &m); err != nil {
		t.Fatal(err)
	}
	_, boot, err := wire.ParseMemberID(string(m.Member))
	if err != nil {
		t.Fatal(err)
	}
	return boot
}

// answer is one frame.
func answer(t *testing.T, c net.Conn) []byte {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // turns a hang into a failure
	f := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, f); err != nil {
		t.Fatal(err)
	}
	f = append(f, make([]byte, wire.Need(f)-len(f))...)
	if _, err := io.ReadFull(c, f[wire.HeaderSize:]); err != nil {
		t.Fatal(err)
	}
	return f
}

// Certificates of an authority that the grid trusts for clients carry the name of the
// operator's tools, which may do everything, as a URI. Each of them is refused: none gets a
// part of the log. What their coming does to a client beside them is reported.
func TestCertificatesOfClientsAreNotTheTools(t *testing.T) {
	exe, dir := program(t), t.TempDir()
	desks, err := pki.Load(dir, "desks")
	if err != nil {
		t.Fatal(err)
	}
	files, err := desks.Save(dir, "mallory", pki.Identity{User: "mallory", URIs: []string{access.Tools}, ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	n := neighbour{name: "50 have a certificate with the name of the operator's tools, and reconnect", conns: 50, say: readLogs(8), stay: time.Second,
		seen: "ordergrid_node_clients_refused_total",
		tls:  &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}} //nolint:gosec // the node is to know them, not they the node
	more := []string{"--tls-client-ca", filepath.Join(dir, "ca.crt")}
	g, other := grid(t, exe, more...), grid(t, exe, more...)
	for _, addr := range g.Endpoints {
		c, err := n.dial(t, addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(n.say); err != nil {
			t.Fatal(err)
		}
		var m wire.Goaway
		f := answer(t, c)
		if wire.FrameType(f) == wire.TypeWelcome { // it names the node reached
			f = answer(t, c)
		}
		if err := wire.DecodeGoaway(f, &m); err != nil || m.Code != wire.GoawayNotPermitted {
			t.Errorf("%s answers %v, code %d (%v), want Goaway %d", addr, wire.FrameType(f), m.Code, err, wire.GoawayNotPermitted)
		}
		_ = c.Close()
	}
	n.beside(t, g, other)
}
