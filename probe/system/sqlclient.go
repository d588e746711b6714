package system

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// maxClients is how often the time of one client may be the other's; the report claims 10 % for two languages by one
// proxy; here it is two protocols, and a point get by SQL shall take at most twice the other.
const maxClients = 2

// clients asks the questions of table 5.6 by two clients: the grid's own, and one of PostgreSQL through a gateway.
func clients(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := cachesOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	k, err := o.newCaches(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	w, err := o.gateway(ctx, k.grid, "--postgresql", "127.0.0.1:0", "--postgresql-insecure-plain", "--postgresql-column", cacheColumns)
	if err != nil {
		return err
	}
	defer w.end()
	sql, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://me@%s/grid?sslmode=disable", w.Address))
	if err != nil {
		return err
	}
	defer sql.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it ends with the gateway
	r.Columns = []string{"query", "rows", "Go ms", "PostgreSQL ms", "ratio", "published Java ms", "published .NET ms", "published ratio"}
	cacheDifferences(r, k)
	r.Differences = append(r.Differences, "in place of Java and .NET by a proxy: the Go client at the nodes, and a client of PostgreSQL's protocol (pgx) through order-gateway --postgresql, by prepared statements; clients of another language are compared in docs/clients.md",
		fmt.Sprintf("the clients ask by turns, %d times or for %v, and the median counts, in place of the mean of %d loops", p.Loops, leastTime, p.Loops))
	a0 := equal(tagCache, "A0")
	columns := "clordid, account, symbol, price, orderqty, cache, tradestatus, settldate, tradedate"
	for _, q := range []struct {
		name, where string
		rows        int
		ask         func() (int, error)
	}{
		{"Activity Key", fmt.Sprintf("clordid = '%s'", rowID("A", 0, 0)), 1, func() (int, error) { return k.keys(ctx, 1) }},
		{"Activity Accounts", "cache = 'A0' and account in ('AA0', 'AA1', 'AA2')", 37, func() (int, error) { return k.ask(ctx, both(a0, equal(view.Account, "AA0", "AA1", "AA2"))) }},
		{"Activity Settlement Date", "cache = 'A0' and settldate = 'S0'", 147, func() (int, error) { return k.ask(ctx, both(a0, equal(tagSettle, "S0"))) }},
		{"Activity Trade Status", "cache = 'A0' and tradestatus = 'X'", 1000, func() (int, error) { return k.ask(ctx, both(a0, equal(tagStatus, "X"))) }},
	} {
		statement := "select " + columns + " from orders where " + q.where
		if _, err := sql.Prepare(ctx, q.name, statement, nil); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		native, other, err := byTurns(p.Loops, q.rows, q.ask, func() (int, error) {
			a := sql.ExecPrepared(ctx, q.name, nil, nil, nil).Read()
			return len(a.Rows), a.Err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		if native.counted != q.rows || other.counted != q.rows {
			r.judge(Wrong, "%s: %d and %d rows, there are %d", q.name, native.counted, other.counted, q.rows)
		}
		java, net := d.Number("coherence", "5.6", q.name, "java_ms"), d.Number("coherence", "5.6", q.name, "dotnet_ms")
		r.row(q.name, q.rows, fmt.Sprintf("%.3f", 1e3*native.seconds), fmt.Sprintf("%.3f", 1e3*other.seconds), fmt.Sprintf("%.2f", other.seconds/native.seconds), java, net, fmt.Sprintf("%.2f", net/java))
		r.figure(report.Comparison{Table: "5.6", Row: q.name, Metric: "one client by the other", Published: net / java, Derived: true, At: "PostgreSQL's protocol by Go"}, other.seconds/native.seconds)
		r.beside(report.Comparison{Table: "5.6", Row: q.name, Metric: "Java, here Go", Unit: "ms", Published: java, At: fmt.Sprintf("%d rows in a cache", p.Rows)}, 1e3*native.seconds)
		if ratio := other.seconds / native.seconds; ratio > maxClients {
			r.judge(Fail, "%s: PostgreSQL's protocol takes %.1f of the client of the grid, allowed: %d", q.name, ratio, maxClients)
		}
	}
	return k.control(ctx, r)
}
