package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// registrations of a user, as published: 12,000 of 6,000 users.
	registrations = 2
	// thinWindow is how many orders may be under way before all users know of the first of them.
	thinWindow = 32
	// thinOrders bounds those of a step.
	thinOrders = 200_000
	// minShared is what is left of the fewest users' rate at the most, where users share registrations.
	minShared = 0.8
)

// usersOf returns the parameters of a mode.
func usersOf(s published.Scenario, mode scenario.Mode) (published.Users, error) {
	return ofMode(mode, s.Users, func(p *published.Users) {
		p.MeasureS = 2
		for i := range p.Users {
			p.Users[i] = max(1, p.Users[i]/5)
		}
	})
}

// thinGrid is a grid with gateways.
type thinGrid struct {
	grid     *devgrid.Grid
	gates    []*gateway
	measureS int
	step     int
}

func (o *Options) newThin(ctx context.Context, p published.Users) (_ *thinGrid, err error) {
	t := &thinGrid{measureS: p.MeasureS}
	if t.grid, err = o.grid(ctx, thinOrders*(2*len(p.Users)+1)); err != nil {
		return nil, err
	}
	for range p.AppServers {
		w, err := o.streaming(ctx, t.grid, slices.Max(p.Users))
		if err != nil {
			return nil, errors.Join(err, t.end())
		}
		t.gates = append(t.gates, w)
	}
	return t, nil
}

func (t *thinGrid) end() error {
	for _, w := range t.gates {
		w.end()
	}
	return t.grid.Stop()
}

// notified is what came of a step.
type notified struct {
	tally
	handed int // to users, by concentrators
	tps    float64
	reader float64
}

// notify submits orders as fast as all users are told of each. Where these have no connections of their own, each
// connection hands its messages on to an equal share of them.
func (t *thinGrid) notify(ctx context.Context, connections, users int, lose bool) (_ *notified, err error) {
	t.step++
	accounts := []string{fmt.Sprintf("STEP%d-0", t.step), fmt.Sprintf("STEP%d-1", t.step)}
	w, err := newSwarm(t.gates, connections, 0, func(int) []string {
		return []string{"orders." + accounts[0] + ".>", "orders." + accounts[1] + ".>"}
	})
	if err != nil {
		return nil, err
	}
	defer w.close()
	for i := range users {
		if l := w.clients[i%connections]; users > connections {
			l.inboxes = append(l.inboxes, inbox{})
		}
	}
	if lose {
		w.clients[0].loses, w.clients[connections-1].repeats = 5, 7
	}
	c, err := client.Dial(ctx, client.Config{Endpoints: t.grid.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	ended := make(chan error, 1)
	go func() { ended <- w.run() }()
	begun, sent := time.Now(), 0
	over := begun.Add(time.Duration(t.measureS) * time.Second)
	p, err := publish(ctx, c, timetable{begun, 1e9}, thinOrders, func() bool {
		for int64(sent-thinWindow)*int64(connections) >= w.received.Load() && time.Now().Before(over) && ctx.Err() == nil {
			time.Sleep(50 * time.Microsecond)
		}
		sent++
		return !time.Now().Before(over)
	}, func(dst []byte, i int) []byte {
		return newOrder(dst, fmt.Sprintf("THIN-%d-%d", t.step, i), accounts[i%2], "SYM", 100, "")
	})
	var want account
	if err == nil {
		for i := range p.sent() {
			want.add(uint32(p.receipts[i].Partition), p.receipts[i].Seq)
		}
		err = arrived(ctx, w, int64(want.count)*int64(connections))
	}
	took := time.Since(begun)
	w.stop.Store(true)
	if err := errors.Join(err, <-ended); err != nil {
		return nil, fmt.Errorf("%w; a gateway says: %.1000s", err, t.gates[0].Log())
	}
	x := &notified{tally: w.tally(func(int) account { return want }), tps: float64(want.count) / took.Seconds(), reader: w.busy.Seconds() / took.Seconds()}
	for _, l := range w.clients {
		for i := range l.inboxes {
			x.handed += l.inboxes[i].count
		}
	}
	return x, nil
}

// thin tells each user of each order by registrations of its own, and then by those of the gateways' concentrators.
func thin(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := usersOf(s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = []string{"design", "users", "registrations", "orders/s all are told of", "messages", "expected", "handed on", "left out", "reader's core", "published TPS"}
	r.Differences = append(r.Differences,
		fmt.Sprintf("an application server is an order-gateway, of which there are %d; users are WebSocket clients with %d subscriptions each, to all orders; a transaction is an order, and the next ones wait while %d are under way", p.AppServers, registrations, thinWindow),
		"for concentrators one connection to each gateway has the two subscriptions, and copies each message into a buffer of each of its users, in the memory of the probe",
		"users, gateways and grid share this machine")
	t, err := o.newThin(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	rates := map[bool][]float64{}
	for _, shared := range []bool{false, true} {
		for _, users := range p.Users {
			design, connections := "per user", users
			if shared {
				design, connections = "per concentrator", p.AppServers
			}
			o.Say("%s: %d users by %d connections", design, users, connections)
			x, err := t.notify(ctx, connections, users, false)
			if err != nil {
				return err
			}
			rates[shared] = append(rates[shared], x.tps)
			was, ok := d.Cell("jade", "TradeEm-thin", float64(users), "tps")
			pub := "-"
			if ok && !shared {
				pub = fmt.Sprint(was.Value)
				r.figure(report.Comparison{Table: "TradeEm-thin", Row: fmt.Sprint(users), Metric: "TPS", Published: was.Value}, x.tps)
			}
			r.row(design, users, registrations*connections, fmt.Sprintf("%.0f", x.tps), x.received, x.expected, x.handed, x.told, fmt.Sprintf("%.0f %%", 100*x.reader), pub)
			if shared && x.missing == 0 && x.handed != x.received/p.AppServers*users {
				r.judge(Wrong, "%s, %d users: %d messages handed on, of %d", design, users, x.handed, x.received/p.AppServers*users)
			}
			r.judgeTold(fmt.Sprintf("%s, %d users", design, users), x)
		}
	}
	thinShape(d, r, p, rates)
	x, err := t.notify(ctx, p.AppServers, p.AppServers, true)
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("one connection passed a message over and another took one twice: of %d messages %d are found missing and %d repeated", x.expected, x.missing, x.repeated)
	if x.missing != 1+x.told || x.repeated != 1 || x.others != 0 {
		r.judge(Invalid, "the control is found as %d missing, %d repeated and %d other messages: the count is not to be believed", x.missing, x.repeated, x.others)
	}
	return nil
}

func (r *Report) judgeTold(where string, x *notified) {
	switch {
	case x.expected == 0:
		r.judge(Invalid, "%s: there was no order", where)
	case x.repeated > 0 || x.others > 0 || x.missing > x.told:
		r.judge(Wrong, "%s: %d of %d messages missing (%d of them told as left out), %d twice, %d other ones", where, x.missing, x.expected, x.told, x.repeated, x.others)
	case x.told > 0:
		r.judge(Fail, "%s: %d messages left out, and told so; allowed: none", where, x.told)
	}
	if x.reader > maxReader {
		r.judge(Invalid, "%s: the thread of the users used %.0f %% of its core, allowed: %.0f", where, 100*x.reader, 100*maxReader)
	}
}

// thinShape judges that more users with registrations of their own cost orders, and that sharing them does not.
func thinShape(d *published.Data, r *Report, p published.Users, rates map[bool][]float64) {
	first, _ := d.Cell("jade", "TradeEm-thin", 1200, "tps")
	last, _ := d.Cell("jade", "TradeEm-thin", 6000, "tps")
	own, shared := rates[false], rates[true]
	n := len(p.Users) - 1
	r.figure(report.Comparison{Table: "TradeEm-thin", Row: "6000 and 1200", Metric: "TPS of the most users, by that of the fewest", Published: last.Value / first.Value, Derived: true, At: fmt.Sprintf("%d and %d users", p.Users[n], p.Users[0])}, own[n]/own[0])
	if own[n] >= own[0] {
		r.judge(Fail, "per user: %.0f orders/s of %d users, %.0f of %d: it does not fall (published %.0f and %.0f)", own[n], p.Users[n], own[0], p.Users[0], last.Value, first.Value)
	}
	if shared[n] < minShared*shared[0] {
		r.judge(Fail, "per concentrator: %.0f orders/s for %d users, %.0f for %d, allowed: %.2f of it or more", shared[n], p.Users[n], shared[0], p.Users[0], minShared)
	}
}
