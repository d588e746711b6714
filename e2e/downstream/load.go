package downstream

import (
	"bytes"
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

// Dial connects to a grid of Grid, for the time of the test.
func Dial(t testing.TB, g *testgrid.Grid) *client.Client {
	t.Helper()
	return dial(t, g, client.Config{})
}

// DialMatching is Dial to a grid that matches.
func DialMatching(t testing.TB, g *testgrid.Grid) *client.Client {
	t.Helper()
	return dial(t, g, client.Config{BySymbol: true})
}

func dial(t testing.TB, g *testgrid.Grid, cfg client.Config) *client.Client {
	t.Helper()
	cfg.Endpoints, cfg.Grid, cfg.DialTimeout, cfg.RequestTimeout = g.Endpoints, "dev", time.Minute, time.Minute
	if g.TLS != nil {
		cfg.TLS = client.TLSFiles(client.PEMFiles{Cert: g.TLS.Cert, Key: g.TLS.Key, CA: g.TLS.CA})
	}
	c, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Load submits orders to a grid until Stop.
type Load struct {
	mu    sync.Mutex
	acked map[wire.OrderID]string // ClOrdID
	stop  atomic.Bool
	all   sync.WaitGroup
}

// StartLoad submits from several goroutines, each with one order unanswered; what fails fails the test.
func StartLoad(t testing.TB, c *client.Client, goroutines int) *Load {
	return StartLoadOf(t, c, goroutines, "LOAD")
}

// StartLoadOf is StartLoad with another beginning of all ClOrdIDs.
func StartLoadOf(t testing.TB, c *client.Client, goroutines int, name string) *Load {
	return startLoad(t, c, goroutines, name, func(id string, _ int) []byte { return testgrid.Order(id, 305) })
}

// StartTrading is StartLoad for a grid that matches: buys and sells of the same price in turn.
func StartTrading(t testing.TB, c *client.Client, goroutines int) *Load {
	return startLoad(t, c, goroutines, "TRADE", func(id string, i int) []byte {
		m := testgrid.Order(id, 305)
		if i%2 == 1 {
			m = bytes.Replace(m, []byte("\x0154=1\x01"), []byte("\x0154=2\x01"), 1)
			order.Seal(m)
		}
		return m
	})
}

// startLoad submits what fix makes of a ClOrdID and the number of the order in its goroutine.
func startLoad(t testing.TB, c *client.Client, goroutines int, name string, fix func(id string, i int) []byte) *Load {
	l := &Load{acked: map[wire.OrderID]string{}}
	t.Cleanup(func() { l.Stop() })
	for w := range goroutines {
		l.all.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				id := fmt.Sprintf("%s-%d-%d", name, w, i)
				r, err := c.Submit(t.Context(), fix(id, i))
				if err != nil {
					t.Errorf("order %s: %v", id, err)
					return
				}
				l.mu.Lock()
				l.acked[r.ID()] = id
				l.mu.Unlock()
			}
		})
	}
	return l
}

// Count is how many orders are acknowledged.
func (l *Load) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// Stop ends the load and returns the ClOrdIDs of all orders that were acknowledged.
func (l *Load) Stop() map[wire.OrderID]string {
	l.stop.Store(true)
	l.all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// WaitForCopies waits until each partition has a primary and two copies in sync.
func WaitForCopies(t testing.TB, c *client.Client) {
	t.Helper()
	WaitFor(t, "two copies in sync", func() bool {
		if c.Refresh(t.Context()) != nil {
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

// KillPrimary kills the process that is primary of a partition, and waits for the next one.
func KillPrimary(t testing.TB, c *client.Client, g *testgrid.Grid, p wire.PartitionID) {
	t.Helper()
	before := c.Table()[p]
	pid, err := g.PIDOf(before.Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the next primary", func() bool { return c.Refresh(t.Context()) == nil && c.Table()[p].Epoch > before.Epoch })
}

// waitLimit is far beyond what is waited for, on a machine that is busy.
const waitLimit = 2 * time.Minute

// WaitFor waits until ok.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain for %s", waitLimit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
