package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/internal/scrape"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// The published mix, of a hundred questions: ten columns of all rows are enough for 80, 15 want whole objects of a page of
// 100 rows, and 5 those of all rows.
const (
	columnsShare, pageShare, wholeShare = 0.80, 0.15, 0.05
	pageRows                            = 100
	projectionLoops                     = 20
	// projectionUpdates are the changes that both are asked for.
	projectionUpdates = 500
)

// projectionOf returns the parameters of a mode.
func projectionOf(s published.Scenario, mode scenario.Mode) (published.Projection, error) {
	return ofMode(mode, s.Projection, func(p *published.Projection) { p.Rows /= 5 })
}

// tier is a grid whose rows are whole objects, and columns of them.
type tier struct {
	*caches
	fields  int
	columns []view.Field
}

// ballast is the first tag of the fields of an object that no column has; of user-defined tags a message has at most 64.
const ballast = 6000

// parties are the fields of eight parties.
const parties = 1 + 8*3

// orderFields are how many fields newOrder has of its own.
const orderFields = 18

// wide is row i, with all its fields.
func (k *tier) wide(dst []byte, i int) []byte {
	return k.order(dst, rowID("A", 0, i), shuffled(i, k.p.Rows), 1+i%1000)
}

// order is one whose number j among the rows tells what finds it.
func (k *tier) order(dst []byte, id string, j, quantity int) []byte {
	status := fmt.Sprintf("ST%d", j%7)
	if j < hotRows["X"] {
		status = "X"
	}
	more := fmt.Appendf(nil, "5001=A0\x015003=%s\x01", status)
	left := k.fields - orderFields - 2
	if left > parties {
		more = append(more, "453=8\x01"...)
		for n := range 8 {
			more = fmt.Appendf(more, "448=P%05d\x01447=D\x01452=%d\x01", (j*31+n*7)%100_000, 1+n)
		}
		left -= parties
	}
	for f := range left {
		more = fmt.Appendf(more, "%d=V%05d\x01", ballast+f, (j*31+f*7)%100_000)
	}
	return newOrder(dst, id, fmt.Sprintf("ACC%03d", j%500), fmt.Sprintf("SYM%02d", j%64), quantity, string(more))
}

// projections compares questions that columns answer with those for whole objects.
func projections(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := projectionOf(s, o.Mode)
	if err != nil {
		return err
	}
	k := &tier{fields: p.Fields, columns: append(slices.Clone(object), view.State)[:p.Columns]}
	if k.caches, err = o.emptyCaches(ctx, published.Caches{Rows: p.Rows, Caches: 1}, p.Rows*p.Fields/25, 1, 2); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	if err := k.load(ctx, &o, k.wide); err != nil {
		return err
	}
	r.Columns = []string{"tiers", "question", "share of questions", "rows", "ms"}
	r.Differences = append(r.Differences, "the report models two caches and measures none; here the small object is a row of the view, which follows the same log, and the whole one is the order",
		fmt.Sprintf("%d orders of %d fields, %d of them in columns; a question finds %d rows; whole objects are fetched by key, %d at a time", p.Rows, p.Fields, p.Columns, hotRows["X"], together),
		fmt.Sprintf("of 100 questions %.0f want columns of all rows, %.0f whole objects of a page of %d, %.0f those of all rows; with one tier each wants whole objects", 100*columnsShare, 100*pageShare, pageRows, 100*wholeShare))
	where := equal(tagStatus, "X")
	took := map[string]float64{}
	for _, q := range []struct {
		name string
		rows int
		ask  func() (int, error)
	}{
		{"columns", hotRows["X"], func() (n int, err error) {
			err = k.pages(ctx, k.columns, where, func(page [][]view.Value) { n += len(page) })
			return n, err
		}},
		{"page", pageRows, func() (int, error) { return k.whole(ctx, where, pageRows) }},
		{"whole", hotRows["X"], func() (int, error) { return k.whole(ctx, where, hotRows["X"]) }},
	} {
		o.Say("%s: %d rows", q.name, q.rows)
		seconds, counted, err := timed(projectionLoops, q.rows, q.ask)
		if err != nil {
			return err
		}
		if counted != q.rows {
			r.judge(Wrong, "%s: %d rows, there are %d", q.name, counted, q.rows)
		}
		took[q.name] = seconds
	}
	k.weigh(d, r, took)
	if err := k.memory(ctx, d, r); err != nil {
		return err
	}
	return k.updates(ctx, r)
}

// weigh compares both by the published mix.
func (k *tier) weigh(d *published.Data, r *Report, took map[string]float64) {
	ms := func(s float64) string { return fmt.Sprintf("%.2f", 1e3*s) }
	one := (columnsShare+wholeShare)*took["whole"] + pageShare*took["page"]
	two := columnsShare*took["columns"] + pageShare*took["page"] + wholeShare*took["whole"]
	r.row("one", "whole objects of all rows", columnsShare+wholeShare, hotRows["X"], ms(took["whole"]))
	r.row("one", "whole objects of a page", pageShare, pageRows, ms(took["page"]))
	r.row("one", "weighted", 1, "-", ms(one))
	r.row("two", "columns of all rows", columnsShare, hotRows["X"], ms(took["columns"]))
	r.row("two", "whole objects of a page", pageShare, pageRows, ms(took["page"]))
	r.row("two", "whole objects of all rows", wholeShare, hotRows["X"], ms(took["whole"]))
	r.row("two", "weighted", 1, "-", ms(two))
	if was, ok := d.FactNumber("bar.pkred"); ok {
		r.figure(report.Comparison{Table: report.ProsePrefix + "bar.pkred", Metric: "shorter with two tiers (a model)", Unit: "%", Published: was}, 100*(1-two/one))
	}
	if was, ok := d.FactNumber("bar.pk"); ok {
		r.beside(report.Comparison{Table: report.ProsePrefix + "bar.pk", Metric: "weighted response with two tiers (a model)", Unit: "s", Published: was}, two)
	}
	if two >= one {
		r.judge(Fail, "two tiers take %.2f of one, allowed: less than 1 (the report's model: 0.36)", two/one)
	}
}

// whole finds up to so many rows, fetches their orders, and counts those with all their fields.
func (k *tier) whole(ctx context.Context, where query.Expr, most int) (int, error) {
	a, err := k.c.Query(ctx, client.Query{Query: query.Query{Select: []view.Field{view.ClOrdID}, Where: &where, Limit: uint32(most)}, After: k.after})
	if err != nil {
		return 0, err
	}
	var there atomic.Int64
	err = each(ctx, len(a.Rows), func(ctx context.Context, i int) error {
		o, err := k.c.GetByClOrdID(ctx, a.Rows[i][0].Text)
		if err == nil && bytes.Count(o.FIX, []byte{1}) == k.fields {
			there.Add(1)
		}
		return err
	})
	return int(there.Load()), err
}

// memory compares what columns take with what orders take, at a node.
func (k *tier) memory(ctx context.Context, d *published.Data, r *Report) error {
	m, err := scrape.Get(ctx, http.DefaultClient, strings.TrimPrefix(k.grid.HTTP[0], "http://"))
	if err != nil {
		return err
	}
	const views, orders = "view_bytes", "memory_used_bytes"
	if !m.Has(views) || !m.Has(orders) {
		return fmt.Errorf("%s: metrics %s and %s are not there", k.grid.HTTP[0], views, orders)
	}
	here := 100 * m.Sum(views) / m.Sum(orders)
	each := func(v float64) string { return fmt.Sprintf("%.0f bytes an order", v/float64(k.p.Rows)) }
	r.Differences = append(r.Differences, fmt.Sprintf("memory of a node: orders with their indexes %s, columns with theirs %s; the report's small objects have no index", each(m.Sum(orders)), each(m.Sum(views))))
	if was, ok := d.FactNumber("bar.mem"); ok {
		r.figure(report.Comparison{Table: report.ProsePrefix + "bar.mem", Metric: "memory more with two tiers (a model)", Unit: "%", Published: was}, here)
	}
	return nil
}

// updates writes orders and asks for the quantity of each, in columns and of the whole, as soon as it is acknowledged. The
// control compares the columns of one order with another.
func (k *tier) updates(ctx context.Context, r *Report) error {
	differ := func(id, other string, after ...client.Receipt) (bool, error) {
		where := equal(view.ClOrdID, id)
		a, err := k.c.Query(ctx, client.Query{Query: query.Query{Select: []view.Field{view.OrderQty}, Where: &where}, After: after})
		if err != nil {
			return false, err
		}
		whole, err := k.c.GetByClOrdID(ctx, other)
		if err != nil {
			return false, err
		}
		_, text, _ := bytes.Cut(whole.FIX, []byte("\x0138="))
		text, _, _ = bytes.Cut(text, []byte{1})
		n, err := strconv.Atoi(string(text))
		return len(a.Rows) != 1 || a.Rows[0][0] != number(uint64(n)), err
	}
	wrong := 0
	var first, last string
	begun := time.Now()
	for i := range projectionUpdates {
		id := fmt.Sprintf("N%09d", i)
		receipt, err := k.c.Submit(ctx, k.order(nil, id, k.p.Rows-1, 1001+i))
		if err != nil {
			return err
		}
		bad, err := differ(id, id, receipt)
		if err != nil {
			return err
		}
		if bad {
			wrong++
		}
		if last = id; first == "" {
			first = id
		}
	}
	r.row("two", "an order written, and asked for in both", "-", projectionUpdates, fmt.Sprintf("%.2f", 1e3*time.Since(begun).Seconds()/projectionUpdates))
	if wrong > 0 {
		r.judge(Wrong, "%d of %d orders differ between columns and the whole when they are acknowledged", wrong, projectionUpdates)
	}
	found, err := differ(first, last)
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("%d orders were compared as soon as they were acknowledged; columns of one and another whole order were found to differ: %t", projectionUpdates, found)
	if !found {
		r.judge(Invalid, "the control found columns of one order equal to another order: the comparison is blind")
	}
	return nil
}
