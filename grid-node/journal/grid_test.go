package journal_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// All processes of a grid are killed at once, under load, and started again. Every
// acknowledged order is there, a session gets the answers that it got, and new orders are
// taken. A kill loses nothing that the kernel was given; TestPowerCuts, and the simulator,
// lose that too.
func TestGridKilled(t *testing.T) {
	dir := t.TempDir()
	g := testgrid.Run(t, "--journal", dir)
	c := downstream.Dial(t, g)
	downstream.WaitForCopies(t, c)
	acks := askSession(t, g, 1)
	orders := map[wire.OrderID]string{}
	for round := range 2 {
		load := downstream.StartLoadOf(t, c, 4, fmt.Sprintf("ROUND%d", round))
		downstream.WaitFor(t, "500 orders", func() bool { return load.Count() > 500 })
		killAll(t, g)
		before := load.Count()
		downstream.WaitFor(t, "orders after the kill", func() bool { return load.Count() > before+200 })
		for id, clOrdID := range load.Stop() {
			orders[id] = clOrdID
		}
		downstream.WaitForCopies(t, c)
	}
	hasOrders(t, c, orders)
	for i, got := range askSession(t, g, 100) {
		was := acks[i]
		if got.Seq != was.Seq || got.Epoch != was.Epoch || got.Hash != was.Hash || got.Flags&wire.AckDup == 0 || got.Lineage != was.Lineage {
			t.Errorf("order %d of the session was answered %+v, and is again %+v", i+1, was, got)
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "*", "aside", "*")); len(aside) > 0 {
		reason, _ := os.ReadFile(filepath.Join(aside[0], "REASON.txt"))
		t.Logf("%d journals were set aside, the first because %s", len(aside), reason)
	}
	t.Logf("%d orders in 2 kills of all processes", len(orders))
}

func killAll(t *testing.T, g *testgrid.Grid) {
	t.Helper()
	nodes, err := g.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if err := syscall.Kill(n.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes { // none of them sees another one end
		if err := syscall.Kill(n.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func hasOrders(t *testing.T, c *client.Client, orders map[wire.OrderID]string) {
	t.Helper()
	for id, clOrdID := range orders {
		if o, err := c.Get(t.Context(), id); err != nil || !bytes.Contains(o.FIX, []byte("\x0111="+clOrdID+"\x01")) {
			t.Fatalf("order %s, acknowledged as %s: %v, %q", clOrdID, id, err, o.FIX)
		}
	}
}

// askSession submits the five orders of a session at the primary, which may move meanwhile.
func askSession(t *testing.T, g *testgrid.Grid, attempt uint64) (acks []wire.Ack) {
	t.Helper()
	downstream.WaitFor(t, "a session at the primary", func() bool {
		for _, endpoint := range g.Endpoints {
			attempt++
			s := openSession(t, endpoint, attempt)
			for acks = nil; !s.moved && len(acks) < 5; {
				acks = append(acks, s.submit(t, uint64(len(acks))+1))
			}
			if !s.moved {
				return true
			}
		}
		return false
	})
	return acks
}

// rawSession is a session whose id and numbers are the test's.
type rawSession struct {
	conn  net.Conn
	in    []byte
	open  wire.SessionOpened
	moved bool // it was told that another node is the primary
}

func openSession(t *testing.T, address string, attempt uint64) *rawSession {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &rawSession{conn: conn}
	hello := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, BootID: 77, Grid: []byte("dev"), Member: []byte("test")})
	s.send(t, wire.AppendOpenSession(hello, 0, &wire.OpenSession{ReqID: 1, IDHi: 4711, IDLo: 17, Attempt: attempt}))
	if f := s.await(t, wire.TypeSessionOpened); s.moved {
		return s
	} else if err := wire.DecodeSessionOpened(f, &s.open); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *rawSession) send(t *testing.T, frames []byte) {
	t.Helper()
	if _, err := s.conn.Write(frames); err != nil {
		t.Fatal(err)
	}
}

// submit submits the order of a number, the same one each time.
func (s *rawSession) submit(t *testing.T, clientSeq uint64) (m wire.Ack) {
	t.Helper()
	s.send(t, wire.AppendSubmit(nil, 0, &wire.Submit{Slot: s.open.Slot, Generation: s.open.Generation, ClientSeq: clientSeq,
		Payload: testgrid.Order(fmt.Sprintf("SESSION-%d", clientSeq), 305)}))
	if f := s.await(t, wire.TypeAck); s.moved {
		return m
	} else if err := wire.DecodeAck(f, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *rawSession) await(t *testing.T, want wire.Type) []byte {
	t.Helper()
	for {
		frame, rest, err := wire.Split(s.in)
		if err != nil {
			t.Fatal(err)
		}
		if frame == nil {
			b := make([]byte, 4096)
			n, err := s.conn.Read(b)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			s.in = append(s.in, b[:n]...)
			continue
		}
		s.in = rest
		switch got := wire.FrameType(frame); got {
		case want:
			return frame
		case wire.TypeNotPrimary:
			s.moved = true
			return nil
		case wire.TypeReject, wire.TypeGoaway:
			t.Fatalf("waiting for %s: got %s: %q", want, got, frame)
		}
	}
}
