// Package desk is a counterparty that sends one order after the other, whatever happens to its session, and keeps what it is
// sent. Its engine is one of others, which does what a session asks for: it logs on again, and sends again.
package desk

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixj"
)

// Desk is a session with its orders: NAME-0, NAME-1 and so on.
type Desk struct {
	Name   string
	Engine string
	enough func() error
	stop   func()
	look   func() // takes over how the session is; nil: that is told

	mu       sync.Mutex
	orders   int                 // sent so far
	reports  map[string][]string // of an order: what each report says (ExecType)
	numbers  map[string]string   // MsgSeqNum of a report to its order
	twice    []string            // numbers that came twice
	others   []string            // texts of what was no report
	loggedOn bool
	logons   int
	err      error // of the engine, from the last order
}

// State is how far a desk is.
type State struct {
	Orders, Answered, Logons int
	Trouble                  string // what is in the way of the others
}

// State returns how far the desk is.
func (d *Desk) State() State {
	if d.look != nil {
		d.look()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return State{d.orders, len(d.reports), d.logons, fmt.Sprintf("%s: %d of %d orders answered, logged on: %v, after %d logons; %v %v", d.Name, len(d.reports), d.orders, d.loggedOn, d.logons, d.err, d.others)}
}

// Enough ends new orders.
func (d *Desk) Enough() error { return d.enough() }

// Stop ends the engine.
func (d *Desk) Stop() { d.stop() }

// Judge returns what is wrong: an order without a report, with several, or with another one than New, a number that came
// twice, and, given how often the grid has each ClOrdID, an order that it has not once.
func (d *Desk) Judge(grid map[string]int) (wrong []string) {
	d.State() // with what came last
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.orders {
		id := fmt.Sprintf("%s-%d", d.Name, n)
		if got := strings.Join(d.reports[id], ""); got != "0" {
			wrong = append(wrong, fmt.Sprintf("the reports of %s are %q, expected is New (0), once", id, got))
		}
		if grid[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("order %s is %d times in the grid, expected once", id, grid[id]))
		}
	}
	for _, n := range d.twice {
		wrong = append(wrong, fmt.Sprintf("%s was given a report of number %s twice", d.Name, n))
	}
	for _, text := range d.others {
		wrong = append(wrong, fmt.Sprintf("%s was sent %s", d.Name, text))
	}
	return wrong
}

// report takes an ExecutionReport that the engine has passed on.
func (d *Desk) report(id, exec, number string) {
	d.reports[id] = append(d.reports[id], exec)
	if _, is := d.numbers[number]; is {
		d.twice = append(d.twice, number)
	}
	d.numbers[number] = id
}

func open(name, engine string) *Desk {
	return &Desk{Name: name, Engine: engine, reports: map[string][]string{}, numbers: map[string]string{}}
}

// QuickFIXJ starts a desk with the engine of Java; o.Pace is the time between two orders.
func QuickFIXJ(classpath string, o quickfixj.Options) (*Desk, error) {
	o.Orders = 0
	p, err := quickfixj.Start(classpath, o)
	if err != nil {
		return nil, err
	}
	d := open(o.Sender, "QuickFIX/J")
	var read sync.WaitGroup
	read.Go(func() {
		for line := range p.Lines {
			d.line(line)
		}
	})
	d.enough, d.stop = p.Enough, func() { p.Stop(); read.Wait() }
	return d, nil
}

// line takes what QuickFIX/J's process prints.
func (d *Desk) line(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f := strings.Fields(text); strings.Join(f[:min(1, len(f))], "") {
	case "on":
		d.loggedOn, d.logons = true, d.logons+1
	case "off":
		d.loggedOn = false
	case "sent":
		d.orders++
	case "report":
		d.report(f[1], f[2], f[3])
	case "other":
		if f[1] != "5" { // a Logout says why
			d.others = append(d.others, text)
		}
	} // else a line of its log
}

// QuickFIXGo starts a desk with the engine of Go, which sends an order each pace.
func QuickFIXGo(o counterparty.Options, pace time.Duration) (*Desk, error) {
	d := open(o.Sender, "quickfixgo")
	o.Report = func(id, exec, number string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.report(id, exec, number)
	}
	engine, err := counterparty.Start(o)
	if err != nil {
		return nil, err
	}
	d.look = func() {
		seen := engine.Seen()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.loggedOn, d.logons = seen.LoggedOn, seen.Logons
		d.others = append(append([]string(nil), seen.Refused...), seen.Rejects...)
	}
	end := make(chan struct{})
	var sent sync.WaitGroup
	sent.Go(func() { d.send(engine, pace, end) })
	var once sync.Once
	enough := func() { once.Do(func() { close(end) }); sent.Wait() }
	d.enough = func() error { enough(); return nil }
	d.stop = func() { enough(); engine.Stop() }
	return d, nil
}

func (d *Desk) send(engine *counterparty.Initiator, pace time.Duration, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(pace):
		}
		x := d.State()
		if x.Logons == 0 {
			continue // the first order is for a session that is there
		}
		err := engine.Order(fmt.Sprintf("%s-%d", d.Name, x.Orders), "ACME")
		d.mu.Lock()
		d.orders, d.err = x.Orders+1, err
		d.mu.Unlock()
	}
}
