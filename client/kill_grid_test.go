package client_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridKilledPrimary kills primaries under load. Every receipt must be in the log exactly once,
// no order may be there twice, and no call returns an error.
func TestGridKilledPrimary(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	var (
		mu    sync.Mutex
		acked = map[string]client.Receipt{}
		stop  atomic.Bool
		wg    sync.WaitGroup
	)
	for w := range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				id := fmt.Sprintf("KILL-%d-%d", w, i)
				r, err := c.Submit(t.Context(), testgrid.Order(id, 305))
				if err != nil {
					t.Errorf("order %s: %v", id, err)
					return
				}
				mu.Lock()
				acked[id] = r
				mu.Unlock()
			}
		})
	}
	const kills = 3
	for range kills {
		waitForRedundancy(t, c)
		time.Sleep(50 * time.Millisecond) // some traffic at full redundancy
		killPrimary(t, c, g)
	}
	waitForRedundancy(t, c)
	stop.Store(true)
	wg.Wait()
	checkLog(t, c, acked)
	st := c.Stats()
	t.Logf("%d orders acknowledged, %d kills; %d outages, the longest %v; %d resent, %d duplicates recognised",
		len(acked), kills, st.Outages, st.LongestOutage.Duration(), st.Resent, st.Duplicates)
	if st.Outages == 0 || st.Violations != 0 || st.Unknown != 0 {
		t.Errorf("stats %+v", st)
	}
}

// TestGridSilentPrimary stops a primary's process, so that its sockets stay open but silent, until
// another has taken over, and then continues it.
func TestGridSilentPrimary(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g, func(c *client.Config) { c.RequestTimeout = 30 * time.Second })
	waitForRedundancy(t, c)
	partition := c.Table()[0]
	acked := map[string]client.Receipt{}
	submit := func(i int) {
		id := fmt.Sprintf("STOP-%d", i)
		r, err := c.SubmitTo(t.Context(), partition.ID, testgrid.Order(id, 305))
		if err != nil {
			t.Fatal(err)
		}
		acked[id] = r
	}
	for i := range 100 {
		submit(i)
	}
	pid, err := g.PIDOf(partition.Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may be gone by then
	for i := range 100 {
		submit(100 + i)
	}
	if r := acked["STOP-199"]; r.Epoch <= partition.Epoch {
		t.Errorf("receipt %v is of epoch %d, in which the stopped process was the primary", r, partition.Epoch)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		submit(200 + i)
	}
	waitForRedundancy(t, c)
	checkLog(t, c, acked)
	t.Logf("the outage this client saw: %v", c.Stats().LongestOutage.Duration())
}

func waitForRedundancy(t *testing.T, c *client.Client) {
	t.Helper()
	waitFor(t, func() bool {
		if err := c.Refresh(t.Context()); err != nil {
			return false
		}
		for _, p := range c.Table() {
			inSync := 0
			for _, m := range p.Members {
				if m.InSync {
					inSync++
				}
			}
			if inSync < 2 || p.Primary.ID == "" {
				return false
			}
		}
		return true
	})
}

// killPrimary kills the process that is primary of the first partition, when there is another copy: a machine that is busy
// may have held the backup up for so long that it was dropped.
func killPrimary(t *testing.T, c *client.Client, g *testgrid.Grid) {
	t.Helper()
	waitForRedundancy(t, c)
	pid, err := g.PIDOf(c.Table()[0].Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	before := c.Table()[0].Epoch
	waitFor(t, func() bool { return c.Refresh(t.Context()) == nil && c.Table()[0].Epoch > before })
}

func checkLog(t *testing.T, c *client.Client, acked map[string]client.Receipt) {
	t.Helper()
	found := map[string]wire.OrderID{}
	for _, p := range c.Table() {
		_, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind != order.KindOrder {
				return nil
			}
			id := string(order.ClOrdID(e.Bytes))
			if other, twice := found[id]; twice {
				t.Errorf("order %s is in the log twice: %s and %s/%d", id, other, p.ID, e.Seq)
			}
			found[id] = wire.OrderID{Partition: p.ID, Seq: e.Seq}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	lost := 0
	for id, r := range acked {
		if found[id] != r.ID() {
			lost++
			t.Errorf("order %s was acknowledged as %s and is in the log as %v", id, r, found[id])
		}
	}
	if len(found) != len(acked) {
		t.Errorf("%d orders in the log, %d acknowledged, %d lost", len(found), len(acked), lost)
	}
}
