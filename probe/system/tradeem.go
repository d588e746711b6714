package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// minFlat is what is left of the fewest users' rate at the most.
	minFlat = 0.95
	// tradeRounds are measured of each row, in turns.
	tradeRounds = 3
	// servedWithin is the p99 of answers and trades at the rate that is searched for.
	servedWithin = 10 * time.Millisecond
	// stepOrders bounds the orders of a step, unless there are more users.
	stepOrders = 100_000
)

// servedShares of the highest rate are tried, one after the other.
var servedShares = []float64{0.9, 0.75, 0.6, 0.45, 0.3, 0.15, 0.05}

// exchangeOf returns the rows of a mode, and how long a step takes.
func exchangeOf(d *published.Data, s published.Scenario, mode scenario.Mode) ([]published.Exchange, time.Duration, error) {
	exact, scaled, err := d.Exchange(s)
	switch mode {
	case scenario.Exact:
		return exact, 5 * time.Second, err
	case scenario.Quick:
		for i := range scaled {
			scaled[i].Users /= 5
		}
		return scaled, time.Second, err
	}
	return scaled, 2 * time.Second, err
}

// tradeEm lets users of concentrators trade with each other, over queues that match.
func tradeEm(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) error {
	rows, lasts, err := exchangeOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	exact, _, err := d.Exchange(s)
	if err != nil {
		return err
	}
	r.Columns = []string{"users", "queues", "concentrators", "feeder", "matchmaker", "logs", "TPS", "wait p99 ms", "order to trade p50 ms", "p99 ms", "trades", "lost",
		"rate served", "its p99 ms", "its trades p99 ms", "published TPS"}
	r.Differences = append(r.Differences,
		"a queue with its matchmaker is a partition, which takes orders one after the other and matches as it stores, on two copies; a concentrator is a client with a connection to each queue; users have no sockets, their orders name them (tags 1, 11, 49)",
		"n transactions per commit of a feeder are the orders that a connection sends in one go, of a matchmaker those that it has without answer; neither waits until n are there, so a larger n delays no order at the same rate",
		"a transaction is an order, acknowledged by both copies after both executed it with the same result; nothing is written to a disk, wherever the published logs were",
		fmt.Sprintf("rate served: the highest of %v of TPS at which each user's orders are answered and traded with a p99 of %v", servedShares, servedWithin),
		"users and grid share this machine")
	rates := map[published.Exchange]float64{}
	queues := []int{}
	for _, x := range rows {
		if !slices.Contains(queues, x.Queues) {
			queues = append(queues, x.Queues)
		}
	}
	for _, q := range queues {
		same := slices.DeleteFunc(slices.Clone(rows), func(x published.Exchange) bool { return x.Queues != q || x.Maintenance })
		if err := o.trades(ctx, r, same, exact, lasts, rates); err != nil {
			return err
		}
	}
	for _, x := range exact {
		if x.Maintenance {
			r.missing(comparison(x), "a grid that matches has no collections beside its books that could be maintained")
		}
	}
	tradeShape(r, rows, exact, rates)
	return nil
}

// ordersOf bounds those of a step.
func ordersOf(x published.Exchange) int { return max(stepOrders, 2*x.Users) }

// trades measures rows with the same number of queues, on one grid, and then looks for the rate of each on one of its own.
func (o *Options) trades(ctx context.Context, r *Report, rows, exact []published.Exchange, lasts time.Duration, rates map[published.Exchange]float64) error {
	steps, err := o.inTurns(ctx, r, rows, lasts)
	if err != nil {
		return err
	}
	for i, x := range rows {
		slices.SortFunc(steps[i], func(a, b *traded) int { return cmp.Compare(a.tps, b.tps) })
		mid := steps[i][tradeRounds/2]
		rates[x] = mid.tps
		m, err := o.newMarket(ctx, x.Queues, len(servedShares)*ordersOf(x))
		if err != nil {
			return err
		}
		at, rate, err := m.served(ctx, o, r, x, mid.tps, lasts)
		if err := errors.Join(err, m.grid.Stop()); err != nil {
			return err
		}
		exchangeRow(r, x, exact, mid, at, rate)
	}
	return nil
}

// inTurns measures each row as fast as its windows let it.
func (o *Options) inTurns(ctx context.Context, r *Report, rows []published.Exchange, lasts time.Duration) (_ [][]*traded, err error) {
	most := 0 // of a step, the same for all: what begins and ends it is not in one rate more than in another
	for _, x := range rows {
		most = max(most, ordersOf(x))
	}
	m, err := o.newMarket(ctx, rows[0].Queues, most*len(rows)*tradeRounds)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.grid.Stop()) }()
	steps := make([][]*traded, len(rows))
	for range tradeRounds {
		for i, x := range rows {
			o.Say("%d users, %d queues, %d concentrators, %d/%d in one go", x.Users, x.Queues, x.Concentrators, x.Feeder, x.Matchmaker)
			got, err := m.run(ctx, demand{row: x, lasts: lasts, most: most})
			if err != nil {
				return nil, err
			}
			r.judgeTraded(x, got)
			steps[i] = append(steps[i], got)
		}
	}
	m.control(r)
	return steps, nil
}

// served looks for the highest rate at which all users are served in time; 0: at none.
func (m *market) served(ctx context.Context, o *Options, r *Report, x published.Exchange, tps float64, lasts time.Duration) (*traded, int, error) {
	for _, share := range servedShares {
		rate := max(1, int(share*tps))
		o.Say("%d users, %d orders/s", x.Users, rate)
		most := min(max(int(float64(rate)*lasts.Seconds()), x.Users), ordersOf(x))
		got, err := m.run(ctx, demand{row: x, rate: rate, lasts: time.Hour, most: most})
		if err != nil {
			return nil, 0, err
		}
		r.judgeTraded(x, got)
		if got.unserved == 0 && at(got.acked, 0.99) <= servedWithin && at(got.trade, 0.99) <= servedWithin {
			return got, rate, nil
		}
	}
	r.judge(Fail, "%d users: at none of the rates are they served with a p99 of %v", x.Users, servedWithin)
	return &traded{}, 0, nil
}

// at is a quantile of sorted times.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (r *Report) judgeTraded(x published.Exchange, got *traded) {
	where := fmt.Sprintf("%d users, %d queues", x.Users, x.Queues)
	switch {
	case got.wrong != "":
		r.judge(Wrong, "%s: %s", where, got.wrong)
	case got.untold != 0:
		r.judge(Wrong, "%s: %d executions were told, of %d", where, got.toldTo, got.toldTo+got.untold)
	case got.trades == 0:
		r.judge(Invalid, "%s: there was no trade", where)
	case got.unserved > 0:
		r.judge(Fail, "%s: %d users had no order", where, got.unserved)
	}
}

// publishedRow is the published row that one here is; scaled ones are none.
func publishedRow(x published.Exchange, exact []published.Exchange) (of published.Exchange, ok bool) {
	for _, p := range exact {
		if p == x {
			return p, true
		}
	}
	return of, false
}

func exchangeRow(r *Report, x published.Exchange, exact []published.Exchange, got, then *traded, rate int) {
	was, pub := "-", "-"
	if x.Logs != "" {
		pub = x.Logs
	}
	if p, ok := publishedRow(x, exact); ok {
		was = fmt.Sprintf("%.0f", p.TPS)
		r.figure(comparison(p), got.tps)
	}
	r.row(x.Users, x.Queues, x.Concentrators, x.Feeder, x.Matchmaker, pub, fmt.Sprintf("%.0f", got.tps), ms(at(got.waited, 0.99)), ms(at(got.trade, 0.5)), ms(at(got.trade, 0.99)), got.trades, got.lost,
		rate, ms(at(then.acked, 0.99)), ms(at(then.trade, 0.99)), was)
}

func comparison(p published.Exchange) report.Comparison {
	text := fmt.Sprintf("%d users, %d queues, logs %s", p.Users, p.Queues, p.Logs)
	if p.Maintenance {
		text += ", maintenance"
	}
	if p.Feeder > 10 {
		text += fmt.Sprintf(", %d/%d a commit", p.Feeder, p.Matchmaker)
	}
	return report.Comparison{Table: "TradeEm-TCP", Row: text, Metric: "TPS", Published: p.TPS}
}

// flat are the rows with the most and the fewest users of those that differ in these alone, or in concentrators too.
func flat(rows []published.Exchange) (few, many published.Exchange) {
	for _, x := range rows {
		for _, y := range rows {
			if x.Alike(y) && y.Users-x.Users > many.Users-few.Users {
				few, many = x, y
			}
		}
	}
	return few, many
}

// tradeShape judges that more users cost no throughput.
func tradeShape(r *Report, rows, exact []published.Exchange, rates map[published.Exchange]float64) {
	few, many := flat(rows)
	wasFew, wasMany := flat(exact)
	ratio := rates[many] / rates[few]
	if _, ok := publishedRow(many, exact); !ok {
		c := comparison(wasMany)
		c.At = fmt.Sprintf("%d users, %d queues", many.Users, many.Queues)
		r.figure(c, rates[many])
	}
	r.figure(report.Comparison{Table: "TradeEm-TCP", Row: fmt.Sprintf("%d and %d users", wasMany.Users, wasFew.Users), Metric: "TPS of the most users, by that of the fewest",
		Published: wasMany.TPS / wasFew.TPS, Derived: true, At: fmt.Sprintf("%d and %d users", many.Users, few.Users)}, ratio)
	if ratio < minFlat {
		r.judge(Fail, "%.0f orders/s of %d users, %.0f of %d: %.2f of it, allowed: %.2f or more (published %.2f)", rates[many], many.Users, rates[few], few.Users, ratio, minFlat, wasMany.TPS/wasFew.TPS)
	}
}

// control judges the executions of the first step again, with one trade left out, and with a trade of another order.
func (m *market) control(r *Report) {
	judged := func(change func(i int, e client.Execution) (client.Execution, bool)) string {
		t := newTape()
		for seq, s := range m.sent {
			t.sent[seq] = &s
		}
		for i, e := range m.kept {
			if e, ok := change(i, e); ok {
				if wrong := t.read(e); wrong != "" {
					return wrong
				}
			}
		}
		return t.end()
	}
	trade := slices.IndexFunc(m.kept, func(e client.Execution) bool { return e.Kind == client.ExecFilled })
	right := judged(func(_ int, e client.Execution) (client.Execution, bool) { return e, true })
	without := judged(func(i int, e client.Execution) (client.Execution, bool) { return e, i != trade && i != trade+1 })
	other := judged(func(i int, e client.Execution) (client.Execution, bool) {
		if i == trade {
			e.Other++
		}
		return e, true
	})
	r.Control = fmt.Sprintf("a trade was left out of the executions: %q; one was with another order: %q", without, other)
	if trade < 0 || right != "" || without == "" || other == "" {
		r.judge(Invalid, "the control finds %q of executions that are right, %q without a trade, %q with another one: it is not to be believed", right, without, other)
	}
}
