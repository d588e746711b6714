package system

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// maxKeyShare is what a get by key may take of the question that finds most rows; published 0.0004. It is judged of
	// caches of largeCache rows and more: of fewer, that question is no longer one for many.
	maxKeyShare, largeCache = 0.01, 50_000
	// noise is how much slower a median may be and count as equal.
	noise = 1.10
)

// cachesOf returns the parameters of a mode.
func cachesOf(d *published.Data, s published.Scenario, mode scenario.Mode) (published.Caches, error) {
	return ofMode(mode, of(d.Caches, s), func(p *published.Caches) {
		p.Rows, p.Users, p.Loops = p.Rows/5, min(p.Users, 4), min(p.Loops, 3)
	})
}

// asked is a published question.
type asked struct {
	name string
	rows int
	ask  func(context.Context) (int, error)
}

// where makes a question of a filter.
func (k *caches) where(name string, rows int, e query.Expr) asked {
	return asked{name, rows, func(ctx context.Context) (int, error) { return k.ask(ctx, e) }}
}

// questions are those of table 5.3.
func (k *caches) questions() []asked {
	p0, a0, all := equal(tagCache, "P0"), equal(tagCache, "A0"), equal(tagCache, "A0", "A1", "A2")
	x, s0, d0 := equal(tagStatus, "X"), equal(tagSettle, "S0"), equal(tagTrade, "D0")
	key := func(n int) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) { return k.keys(ctx, n) }
	}
	return []asked{
		k.where("Position POF Key", 914, both(p0, equal(tagKey, "K"))),
		k.where("Position Date", positionDates*k.p.Rows/perMillion, both(p0, d0)),
		k.where("Position Account(s)", 914, both(p0, equal(view.Account, "PA0", "PA1", "PA2"))),
		{"Activity Key", 1, key(1)},
		k.where("Activity Settlement Date", 147, both(a0, s0)),
		k.where("Activity Trade Date", tradeDates*k.p.Rows/perMillion, both(a0, d0)),
		k.where("Activity Trade Status", 1000, both(a0, x)),
		k.where("Activity Account(s)", 37, both(a0, equal(view.Account, "AA0", "AA1", "AA2"))),
		k.where("Activity Trade Status (3 Time Zones)", 3000, both(all, x)),
		k.where("Activity Settlement Date (3 Regions)", 441, both(all, s0)),
		{"Activity Key (1000)", 1000, key(1000)},
	}
}

func cacheDifferences(r *Report, k *caches) {
	r.Differences = append(r.Differences,
		"caches are values of a field of one table of orders, held in views with indexes on all fields that are asked for, as posted columns; rows are orders of some 250 bytes, and answers have nine fields of them",
		fmt.Sprintf("%d rows in each of %d caches; dates find the published shares of a million, other questions the published rows", k.p.Rows, k.p.Caches))
}

// queries asks the published questions, without and with other clients.
func queries(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := cachesOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	k, err := o.newCaches(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	r.Columns = []string{"query", "rows", "idle ms", "traffic ms", "ratio", "published rows", "published idle s", "published traffic s", "published ratio"}
	cacheDifferences(r, k)
	r.Differences = append(r.Differences, "three time zones, or regions, are one question for three values, which each partition answers at the same time, beside three questions one after the other",
		fmt.Sprintf("traffic: %d clients that ask for an account, write an order, and rest for %d ms", p.Users, p.SleepMs))
	idle := map[string]float64{}
	list := k.questions()
	for i := range list {
		if idle[list[i].name], err = k.one(ctx, r, &list[i], "idle"); err != nil {
			return err
		}
	}
	o.Say("the same beside %d clients", p.Users)
	stop := k.beside(ctx)
	for i := range list {
		q := &list[i]
		busy, err := k.one(ctx, r, q, "beside others")
		if err != nil {
			return errors.Join(err, stop())
		}
		queryRow(r, d, q, idle[q.name], busy)
	}
	if err := stop(); err != nil {
		return err
	}
	share := idle["Activity Key"] / idle["Activity Trade Date"]
	a, _, _ := d.QuerySeconds("Activity Key")
	b, _, _ := d.QuerySeconds("Activity Trade Date")
	r.figure(report.Comparison{Table: "5.3", Row: "Activity Key", Metric: "by that of Activity Trade Date", Published: a / b, Derived: true}, share)
	switch {
	case p.Rows < largeCache:
		r.Differences = append(r.Differences, fmt.Sprintf("what a get by key takes of the question for a date, %.2f %%, is judged of caches of %d rows and more", 100*share, largeCache))
	case share > maxKeyShare:
		r.judge(Fail, "a get by key takes %.2f %% of the question for a date, allowed: %.0f (published %.2f)", 100*share, 100*maxKeyShare, 100*a/b)
	}
	if err := k.parallel(ctx, d, r, idle["Activity Trade Status (3 Time Zones)"]); err != nil {
		return err
	}
	return k.control(ctx, r)
}

// one asks a question in all loops, and judges what it counted.
func (k *caches) one(ctx context.Context, r *Report, q *asked, when string) (float64, error) {
	seconds, counted, err := timed(k.p.Loops, q.rows, func() (int, error) { return q.ask(ctx) })
	if err != nil {
		return 0, fmt.Errorf("%s, %s: %w", q.name, when, err)
	}
	if counted != q.rows {
		r.judge(Wrong, "%s, %s: %d rows, there are %d", q.name, when, counted, q.rows)
	}
	return seconds, nil
}

func queryRow(r *Report, d *published.Data, q *asked, idle, busy float64) {
	wasIdle, wasBusy, _ := d.QuerySeconds(q.name)
	wasRows := d.Number("coherence", "5.3", q.name, "affected_rows")
	ms := func(s float64) string { return fmt.Sprintf("%.3f", 1e3*s) }
	r.row(q.name, q.rows, ms(idle), ms(busy), fmt.Sprintf("%.2f", busy/idle), wasRows, wasIdle, wasBusy, fmt.Sprintf("%.2f", wasBusy/wasIdle))
	r.figure(report.Comparison{Table: "5.3", Row: q.name, Metric: "with traffic, by that without", Published: wasBusy / wasIdle, Derived: true}, busy/idle)
	r.beside(report.Comparison{Table: "5.3", Row: q.name, Metric: "without traffic", Unit: "s", Published: wasIdle, At: fmt.Sprintf("%d rows", q.rows)}, idle)
}

// parallel compares one question for three values with three questions.
func (k *caches) parallel(ctx context.Context, d *published.Data, r *Report, one float64) error {
	series, _, err := timed(k.p.Loops, 3000, func() (n int, err error) {
		for _, cache := range []string{"A0", "A1", "A2"} {
			rows, err := k.ask(ctx, both(equal(tagCache, cache), equal(tagStatus, "X")))
			if err != nil {
				return 0, err
			}
			n += rows
		}
		return n, nil
	})
	if err != nil {
		return err
	}
	r.row("the same as three questions, one after the other", 3000, fmt.Sprintf("%.3f", 1e3*series), "-", "-", "-", "-", "-", "-")
	if was, ok := d.FactNumber("bar.parallel"); ok {
		r.beside(report.Comparison{Table: report.ProsePrefix + "bar.parallel", Metric: "faster in parallel than in series", Unit: "%", Published: was}, 100*(1-one/series))
	}
	if one > noise*series {
		r.judge(Fail, "one question for three values takes %.2f of three questions one after the other, allowed: %.2f", one/series, noise)
	}
	return nil
}

// types scans a column of texts and one of decimals.
func types(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := cachesOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	p.Caches = 2
	p.Rows /= p.Caches
	k, err := o.newCaches(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	r.Columns = []string{"question", "rows", "counted", "ms", "ms of a million rows", "published ms"}
	r.Differences = append(r.Differences, fmt.Sprintf("%d orders; a text is a number in a dictionary, as of each column of views, and a number is a decimal", p.Rows*p.Caches),
		"sizes of encoded objects (POF) are not measured: an order is kept as the FIX message that it came as")
	var texts, numbers int
	for i := range p.Rows * p.Caches {
		j := shuffled(i/p.Caches, p.Rows)
		if j%64 < 10 {
			texts++
		}
		if j%1000 < 156 {
			numbers++
		}
	}
	// About as many rows each, none of them found by an index: of a prefix, and of quantities, there is none.
	seconds := map[string]float64{}
	for _, q := range []struct {
		name  string
		rows  int
		where query.Expr
	}{
		{"String", texts, query.Expr{Op: query.Prefix, Field: view.Symbol, Values: []view.Value{view.TextValue("SYM0")}}},
		{"Integer", numbers, query.Expr{Op: query.Range, Field: view.OrderQty, Values: []view.Value{number(1), number(156)}}},
	} {
		took, counted, err := timed(10*p.Loops, q.rows, func() (int, error) { return k.count(ctx, q.where) })
		if err != nil {
			return err
		}
		if counted != q.rows {
			r.judge(Wrong, "%s: %d rows, there are %d", q.name, counted, q.rows)
		}
		seconds[q.name] = took
		was := d.Number("coherence", "5.4", q.name, "duration_ms")
		r.row(q.name, q.rows, counted, fmt.Sprintf("%.3f", 1e3*took), fmt.Sprintf("%.2f", 1e9*took/float64(p.Rows*p.Caches)), was)
		if was > 0 {
			r.beside(report.Comparison{Table: "5.4", Row: q.name, Metric: "scan", Unit: "ms", Published: was, At: fmt.Sprintf("%d rows", p.Rows*p.Caches)}, 1e3*took)
		}
	}
	text, integer := d.Number("coherence", "5.4", "String", "duration_ms"), d.Number("coherence", "5.4", "Integer", "duration_ms")
	ratio := seconds["Integer"] / seconds["String"]
	r.figure(report.Comparison{Table: "5.4", Row: "Integer", Metric: "by that of String", Published: integer / text, Derived: true}, ratio)
	if ratio > noise {
		r.judge(Fail, "a scan of numbers takes %.2f of one of texts, allowed: %.2f (published %.2f)", ratio, noise, integer/text)
	}
	return k.control(ctx, r)
}

func number(n uint64) view.Value { return view.NumberValue(view.Number{Lo: n}) }

// count asks how many rows a filter lets through.
func (k *caches) count(ctx context.Context, where query.Expr) (int, error) {
	a, err := k.c.Query(ctx, client.Query{Query: query.Query{Where: &where, Aggregates: []query.Aggregate{{Func: query.Count}}}, After: k.after})
	if err != nil {
		return 0, err
	}
	if len(a.Rows) != 1 || len(a.Rows[0]) != 1 || a.Rows[0][0].Kind != view.Int {
		return 0, fmt.Errorf("a count is answered with %v", a.Rows)
	}
	return int(a.Rows[0][0].Int), nil
}
