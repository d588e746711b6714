package journal_test

import (
	"bytes"
	"fmt"
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
			s := testgrid.OpenSession(t, endpoint, attempt)
			for acks = nil; !s.Moved && len(acks) < 5; {
				acks = append(acks, s.Submit(uint64(len(acks))+1))
			}
			if !s.Moved {
				return true
			}
		}
		return false
	})
	return acks
}
