package java

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// kills is how many primaries TestGridKilled kills.
func kills(t *testing.T) int {
	s := os.Getenv("ORDERGRID_CLIENT_KILLS")
	if s == "" {
		return 3
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("ORDERGRID_CLIENT_KILLS is %q, allowed: 1 or more", s)
	}
	return n
}

// TestGridKilled kills primaries with SIGKILL under load of the Java client. Every order that it got a receipt for is in the
// log once, at its place, and in the order of its session; none is there twice; the replicas are equal.
func TestGridKilled(t *testing.T) {
	receipts := filepath.Join(t.TempDir(), "receipts")
	cmd := java(t, "KillLoad")
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	load := start(t, cmd, strings.Join(g.Endpoints, ","), receipts)
	t.Cleanup(func() { load.threads(t) })
	for i := range kills(t) {
		redundant(t, c)
		kill(t, c, g, load, i)
	}
	redundant(t, c)
	load.stop(t)
	judge(t, c, receipts)
}

// TestGridRegionsKilled kills primaries while counters are counted and tokens taken. The load judges: each step is there
// once, no token is lost or taken twice. The replicas are equal.
func TestGridRegionsKilled(t *testing.T) {
	cmd := java(t, "RegionLoad")
	g := regionGrid(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	load := start(t, cmd, strings.Join(g.Endpoints, ","))
	t.Cleanup(func() { load.threads(t) })
	for i := range kills(t) {
		redundant(t, c)
		kill(t, c, g, load, i)
	}
	redundant(t, c)
	load.stop(t)
	equal(t, c)
}

// redundant waits until every partition has a primary and two replicas in sync.
func redundant(t *testing.T, c *client.Client) {
	t.Helper()
	until(t, "two replicas in sync of each partition", func() bool {
		if c.Refresh(t.Context()) != nil {
			return false
		}
		for _, p := range c.Table() {
			n := 0
			for _, m := range p.Members {
				if m.InSync {
					n++
				}
			}
			if n < 2 || p.Primary.ID == "" {
				return false
			}
		}
		return true
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 2 min: %s", what)
		}
	}
}

// kill kills the primary of the partition whose turn it is, once the load has orders there. Each third is not killed but
// stopped until another one has taken over: its connections stay open and are silent.
func kill(t *testing.T, c *client.Client, g *testgrid.Grid, load *process, turn int) {
	t.Helper()
	p := c.Table()[turn%len(c.Table())]
	seq := committed(t, c, p)
	until(t, "200 more entries", func() bool { load.alive(t); return committed(t, c, p) > seq+200 })
	pid, err := g.PIDOf(p.Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	signal := syscall.SIGKILL
	if turn%3 == 2 {
		signal = syscall.SIGSTOP
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may be gone by then
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	until(t, "another primary", func() bool { return c.Refresh(t.Context()) == nil && c.Table()[p.ID].Epoch > p.Epoch })
}

// committed is how far the primary's log is.
func committed(t *testing.T, c *client.Client, p client.PartitionInfo) uint64 {
	t.Helper()
	r := c.NewLogReader(p.ID, p.Primary.Address)
	if _, err := r.Next(t.Context(), func(client.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return r.End().CommitSeq
}

// equal compares the replicas.
func equal(t *testing.T, c *client.Client) {
	t.Helper()
	result, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode() != verify.ExitEqual {
		var text bytes.Buffer
		_ = result.WriteText(&text) // a buffer takes everything
		t.Fatalf("%s", &text)
	}
}

// judge compares the receipts with the logs.
func judge(t *testing.T, c *client.Client, receipts string) {
	t.Helper()
	equal(t, c)
	text, err := os.ReadFile(receipts)
	if err != nil {
		t.Fatal(err)
	}
	places, last, n := places(t, c), map[string]uint64{}, 0
	for line := range strings.Lines(string(text)) {
		var session, id string
		var at wire.OrderID
		if _, err := fmt.Sscan(line, &session, &id, &at.Partition, &at.Seq); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if n++; places[id] != at {
			t.Errorf("order %s has a receipt for %s and is at %s", id, at, places[id])
		}
		if at.Seq <= last[session] {
			t.Errorf("order %s at %s is behind its successor at %d", id, at, last[session])
		}
		last[session] = at.Seq
		delete(places, id)
	}
	if len(places) > 0 || n == 0 {
		t.Errorf("%d orders of the logs have no receipt, %d have one", len(places), n)
	}
	t.Logf("%d orders acknowledged, each in the log once", n)
}

// places are those of all orders in the logs.
func places(t *testing.T, c *client.Client) map[string]wire.OrderID {
	t.Helper()
	found := map[string]wire.OrderID{}
	for _, p := range c.Table() {
		_, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind != order.KindOrder {
				return nil
			}
			id := string(order.ClOrdID(e.Bytes))
			if other, twice := found[id]; twice {
				t.Errorf("order %s is in the log twice: %s and p%d/%d", id, other, p.ID, e.Seq)
			}
			found[id] = wire.OrderID{Partition: p.ID, Seq: e.Seq}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
