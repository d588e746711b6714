//go:build e2e

package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/site"
)

// pace is the time between two orders of a desk.
const pace = 20 * time.Millisecond

// desk sends orders as a counterparty does that wants each of them in the grid: after a logon it sends again, under the
// same ClOrdID, what was sent before it and has no report. If that order is in the grid, it is refused as a duplicate.
type desk struct {
	name   string
	engine *counterparty.Initiator
	stop   context.CancelFunc

	mu       sync.Mutex
	enough   bool           // no new orders
	next     int            // orders so far
	open     map[string]int // ClOrdID of each without a report: number of logons when it was sent last
	loggedOn bool
	logons   int
	err      error // of the engine, from the last order
}

func open(ctx context.Context, s *site.Site, name string, o counterparty.Options) *desk {
	s.Helper()
	at := address(ctx, s)
	o.Address, o.CA, o.Name, o.ResetOnLogon, o.Sender, o.Target = at.Address, at.CA, at.Name, at.ResetOnLogon, name, "GRID"
	engine, err := counterparty.Start(o)
	if err != nil {
		s.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	d := &desk{name: name, engine: engine, open: map[string]int{}, stop: func() { stop(); ended.Wait(); engine.Stop() }}
	ended.Go(func() {
		for ; running.Err() == nil; time.Sleep(pace) {
			d.look()
			if id, logons := d.pick(); id != "" {
				err := d.engine.Order(id, "ACME")
				d.mu.Lock()
				d.open[id], d.err = logons, err
				d.mu.Unlock()
			}
		}
	})
	return d
}

// look takes over what the engine has seen.
func (d *desk) look() {
	_ = d.engine.Wait(time.Second, func(s counterparty.Seen) bool { // it never has to wait
		d.mu.Lock()
		defer d.mu.Unlock()
		d.loggedOn, d.logons = s.LoggedOn, s.Logons
		for id := range d.open {
			if len(s.Reports[id]) > 0 {
				delete(d.open, id)
			}
		}
		return true
	})
}

// pick returns the order to send now: one that was sent before the last logon, or a new one.
func (d *desk) pick() (id string, logons int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loggedOn {
		return "", 0
	}
	for id, sent := range d.open {
		if sent < d.logons {
			return id, d.logons
		}
	}
	if d.enough {
		return "", 0
	}
	d.next++
	return d.clOrdID(d.next), d.logons
}

func (d *desk) clOrdID(n int) string { return fmt.Sprintf("%s-%d", d.name, n) }

// state is how many orders were answered, and what is in the way of the others.
func (d *desk) state() (answered, logons int, trouble string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next - len(d.open), d.logons, fmt.Sprintf("logged on: %v, after %d logons; without an answer: %d; the engine: %v", d.loggedOn, d.logons, len(d.open), d.err)
}

// finish ends new orders, and waits until each has an answer.
func (d *desk) finish(ctx context.Context, s *site.Site) (orders int) {
	s.Helper()
	d.mu.Lock()
	d.enough = true
	d.mu.Unlock()
	s.Eventually(ctx, "an answer to each order of "+d.name, site.Patience, func(context.Context) error {
		if answered, _, trouble := d.state(); answered < d.orders() {
			return fmt.Errorf("%s", trouble)
		}
		return nil
	})
	return d.orders()
}

func (d *desk) orders() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next
}

// reports is what each order was answered with, and what was refused.
func (d *desk) reports(t testing.TB) (reports map[string][]string, refused []string) {
	t.Helper()
	err := d.engine.Wait(time.Second, func(s counterparty.Seen) bool {
		reports = map[string][]string{}
		for id, types := range s.Reports {
			reports[id] = append([]string(nil), types...)
		}
		refused = append([]string(nil), s.Refused...)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports, refused
}
