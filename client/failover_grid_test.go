package client_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// load submits from several goroutines until it is stopped, and keeps what was
// answered.
type load struct {
	t     *testing.T
	mu    sync.Mutex
	acked map[string]client.Receipt
	stop  atomic.Bool
	wg    sync.WaitGroup
}

func newLoad(t *testing.T) *load { return &load{t: t, acked: map[string]client.Receipt{}} }

// submitter is one goroutine; between two orders it rests for pause.
func (l *load) submitter(name string, pause time.Duration, submit func(fix []byte) (client.Receipt, error)) {
	l.wg.Go(func() {
		for i := 0; !l.stop.Load(); i++ {
			id := fmt.Sprintf("%s-%d", name, i)
			r, err := submit(testgrid.Order(id, 305))
			if err != nil {
				l.t.Errorf("order %s: %v: %v", id, client.FateOf(err), err)
				return
			}
			l.note(id, r)
			time.Sleep(pause)
		}
	})
}

// pipeline keeps many orders of one session unanswered.
func (l *load) pipeline(s *client.Session) {
	l.wg.Go(func() {
		for i := 0; !l.stop.Load(); i++ {
			id := fmt.Sprintf("ASYNC-%d", i)
			err := s.SubmitAsync(testgrid.Order(id, 305), func(r client.Receipt, err error) {
				if err != nil {
					l.t.Errorf("order %s: %v: %v", id, client.FateOf(err), err)
					return
				}
				l.note(id, r)
			})
			if err != nil {
				l.t.Errorf("order %s: %v", id, err)
				return
			}
			time.Sleep(500 * time.Microsecond)
		}
		if err := s.Drain(l.t.Context()); err != nil {
			l.t.Error(err)
		}
	})
}

func (l *load) note(id string, r client.Receipt) {
	l.mu.Lock()
	l.acked[id] = r
	l.mu.Unlock()
}

func (l *load) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

// spread is a distribution in one line.
func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[min(int(q*float64(len(took))), len(took)-1)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%d: min %s p50 %s p90 %s p99 %s max %s", len(took), at(0), at(.5), at(.9), at(.99), at(1))
}

// collector takes every outage of a client.
type collector struct {
	mu   sync.Mutex
	list []client.Outage
}

func (c *collector) add(o client.Outage) {
	c.mu.Lock()
	c.list = append(c.list, o)
	c.mu.Unlock()
}

// take waits until n have ended.
func (c *collector) take(t *testing.T, n int) []client.Outage {
	waitFor(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.list) >= n })
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// TestGridManySessionsFailOver kills the primary that 300 sessions write to. No order fails, and
// sessions do not stampede: the attempts of each stay within what its pauses allow.
func TestGridManySessionsFailOver(t *testing.T) {
	g := testgrid.Run(t)
	var outages collector
	c := dial(t, g, func(c *client.Config) {
		c.RequestTimeout, c.IO, c.OnOutage = 30*time.Second, client.IONet, outages.add
	})
	waitForRedundancy(t, c)
	const sessions = 300
	l := newLoad(t)
	for i := range sessions {
		s, err := c.Session(c.Table()[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		l.submitter(fmt.Sprintf("HERD-%d", i), 50*time.Millisecond, func(fix []byte) (client.Receipt, error) { return s.Submit(t.Context(), fix) })
	}
	time.Sleep(300 * time.Millisecond) // all of them are submitting
	killPrimary(t, c, g)
	list := outages.take(t, sessions)
	waitForRedundancy(t, c)
	l.end()
	checkLog(t, c, l.acked)
	var took []time.Duration
	attempts, most := 0, 0
	for _, o := range list {
		took = append(took, o.Duration())
		attempts, most = attempts+o.Attempts, max(most, o.Attempts)
		if limit := 30 + 3*int(o.Duration()/(125*time.Millisecond)); o.Attempts > limit {
			t.Errorf("outage %s: want at most %d attempts", o, limit)
		}
	}
	st := c.Stats()
	t.Logf("%d orders; outages %s; %.1f attempts per session, at most %d; %d connections in all", len(l.acked), spread(took), float64(attempts)/float64(len(list)), most, st.Connects)
	if st.Refused+st.Unknown+st.NotSent+st.Violations != 0 {
		t.Errorf("stats %+v", st)
	}
}

// TestGridHandOver hands the partition over back and forth under load: no order
// fails, none is lost or there twice. The pauses are printed, not judged.
func TestGridHandOver(t *testing.T) {
	g := testgrid.Run(t, "--", "--hand-over-delay", "100ms")
	var outages collector
	c := dial(t, g, func(c *client.Config) { c.RequestTimeout, c.OnOutage = 30*time.Second, outages.add })
	waitForRedundancy(t, c)
	part := c.Table()[0].ID
	l := newLoad(t)
	for i := range 3 {
		s, err := c.Session(part)
		if err != nil {
			t.Fatal(err)
		}
		l.submitter(fmt.Sprintf("HAND-%d", i), 200*time.Microsecond, func(fix []byte) (client.Receipt, error) { return s.Submit(t.Context(), fix) })
	}
	l.submitter("SHARED", time.Millisecond, func(fix []byte) (client.Receipt, error) { return c.SubmitTo(t.Context(), part, fix) })
	s, err := c.Session(part)
	if err != nil {
		t.Fatal(err)
	}
	l.pipeline(s)
	const turns = 10
	for range turns {
		handOver(t, c, g, part)
		time.Sleep(150 * time.Millisecond) // in sync for longer than the delay
	}
	l.end()
	waitForRedundancy(t, c)
	checkLog(t, c, l.acked)
	var took []time.Duration
	for _, o := range outages.take(t, int(c.Stats().Outages)) {
		took = append(took, o.Duration())
		if o.Cause != client.OutageMoved {
			t.Errorf("not the outage of a hand-over: %s", o)
		}
	}
	t.Logf("%d orders, %d hand-overs; pauses %s", len(l.acked), turns, spread(took))
	if st := c.Stats(); st.Refused+st.Unknown+st.NotSent+st.Violations != 0 || st.Outages < turns {
		t.Errorf("stats %+v", st)
	}
}

// handOver makes the other pod the preferred one and waits until it serves.
func handOver(t *testing.T, c *client.Client, g *testgrid.Grid, part wire.PartitionID) {
	t.Helper()
	now := func() client.PartitionInfo {
		for _, p := range c.Table() {
			if p.ID == part {
				return p
			}
		}
		return client.PartitionInfo{}
	}
	before := now()
	nodes, err := g.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Address == before.Primary.Address {
			continue
		}
		if err := g.SetSpec("dev-"+part.String(), fmt.Sprintf(`{"preferredPod":%q}`, n.Pod)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool {
		return c.Refresh(t.Context()) == nil && now().Epoch > before.Epoch && now().Primary.ID != before.Primary.ID
	})
}
