package postgres_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestGridExecutionsKilled: primaries of a grid that matches are killed while orders trade, grid-sink and the server of the
// database in turn with them. The table has every execution that the grid has, once, and as the grid has it. A sink of
// executions alone, killed as well, has the same rows and no order, and its entries are dense.
func TestGridExecutionsKilled(t *testing.T) {
	kills := downstream.Kills(t, 3)
	p := server(t, downstream.PostgresOptions{})
	url := file(t, p.Admin())
	downstream.RunSink(t, "postgres", "migrate", "--url-file", url).End(0)
	downstream.RunSink(t, "postgres", "migrate", "--url-file", url, "--schema", "alone").End(0)
	g := testgrid.Matching(t, "--partitions", "1", "--external-sink", "orders,alone")
	c := downstream.DialMatching(t, g)
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "postgres", "orders", "--url-file", url, "--executions")
	}
	beginAlone := func() *downstream.Sink {
		return downstream.StartSink(t, g, "postgres", "alone", "--url-file", url, "--schema", "alone", "--only-executions")
	}
	s, alone := begin(), beginAlone()
	acked, last := downstream.KillUnderTrading(t, c, g, kills, 100, func(i int) {
		switch i % 3 {
		case 1:
			s.Kill()
			s = begin()
		case 2:
			alone.Kill()
			alone = beginAlone()
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
	})
	downstream.WaitFor(t, fmt.Sprintf("entry %d", last[0]), func() bool {
		at, err := p.PSQL(t.Context(), fmt.Sprintf("SELECT o.seq >= %d AND a.seq >= %[1]d FROM ordergrid.fence o, alone.fence a", last[0]))
		return err == nil && at == "t"
	})
	s.Stop()
	alone.Stop()
	want := map[string]string{}
	filled := 0
	_, err := c.ReadExecutions(t.Context(), 0, "", 1, func(e client.Execution) error {
		if e.Kind <= client.ExecTriggered && e.Entry <= last[0] {
			want[fmt.Sprintf("%d.%d", e.Entry, e.N)] = executionRow(&e)
		}
		if e.Kind == client.ExecFilled {
			filled++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.PSQL(t.Context(), fmt.Sprintf(`SELECT entry || '.' || n, concat_ws(' ', kind, symbol, account, side, order_seq, coalesce(other_seq::text, '-'), coalesce(price::text, '-'), coalesce(quantity::text, '-'),
		coalesce(leaves::text, '-'), coalesce(cumulative::text, '-'), coalesce(reason, '-'), passive, auction) FROM ordergrid.executions WHERE grid = 'dev' AND "partition" = 0 AND entry <= %d AND cl_ord_id IS NOT NULL`, last[0]))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out, "\n")
	for _, row := range rows {
		id, got, _ := strings.Cut(row, "|")
		if want[id] != got {
			t.Errorf("execution %s is %q in the table, want %q", id, got, want[id])
		}
		delete(want, id)
	}
	if len(want) > 0 || filled == 0 {
		t.Errorf("%d executions are not in the table, or there twice; %d fills", len(want), filled)
	}
	for _, sql := range []string{
		"SELECT count(*) FROM ordergrid.executions e LEFT JOIN ordergrid.orders o ON (o.grid, o.partition, o.seq) = (e.grid, e.partition, e.order_seq) WHERE o.cl_ord_id IS DISTINCT FROM e.cl_ord_id",
		fmt.Sprintf("SELECT count(*) - %d FROM ordergrid.orders WHERE convert_from(payload, 'LATIN1') LIKE '8=FIX.4.2%%' AND price = 125.25 AND quantity = 100 AND symbol = 'IBM'", len(acked)),
		"SELECT coalesce(sum(CASE side WHEN '1' THEN quantity ELSE -quantity END), 0) FROM ordergrid.executions WHERE kind = 'filled'",
		"SELECT count(*) FROM ordergrid.executions_default",
		"SELECT count(*) FROM (TABLE ordergrid.executions EXCEPT TABLE alone.executions) AS x",
		"SELECT count(*) FROM (TABLE alone.executions EXCEPT TABLE ordergrid.executions) AS x",
		"SELECT (SELECT count(*) FROM alone.executions) - (SELECT count(*) FROM ordergrid.executions)",
		"SELECT count(*) + (SELECT orders FROM alone.fence) FROM alone.orders",
		"SELECT (SELECT seq FROM alone.fence) - sum(n) FROM (SELECT count(DISTINCT entry) AS n FROM alone.executions UNION ALL SELECT sum(through - seq + 1) FROM alone.others) AS x",
	} {
		if got, err := p.PSQL(t.Context(), sql); got != "0" || err != nil {
			t.Errorf("%s: %s (%v), want 0", sql, got, err)
		}
	}
	if got, err := p.PSQL(t.Context(), pageSQL(t, "positions")); got != "ACC|IBM|0" || err != nil {
		t.Errorf("positions: %s (%v), want ACC|IBM|0: the account buys from itself", got, err)
	}
	t.Logf("%d primaries killed; %d orders acknowledged, %d executions, %d of them fills", kills, len(acked), len(rows), filled)
}

// TestGridExecutionsFreed: a grid that matches frees what the sink holds, and an order whose entry is freed trades. Every
// execution is in the table; those of that order have no account, and lead to its row.
func TestGridExecutionsFreed(t *testing.T) {
	p := server(t, downstream.PostgresOptions{})
	url := file(t, p.Admin())
	downstream.RunSink(t, "postgres", "migrate", "--url-file", url).End(0)
	g := testgrid.Matching(t, "--partitions", "1", "--external-sink", "orders", "--memory-limit", "64Mi", "--", "--retention", "free-downstream", "--high-watermark", "20")
	c := downstream.DialMatching(t, g)
	downstream.StartSink(t, g, "postgres", "orders", "--url-file", url, "--executions")
	submit := func(id, side, price string) client.Receipt {
		m := bytes.Replace(testgrid.Order(id, 305), []byte("\x0154=1\x01"), []byte("\x0154="+side+"\x01"), 1)
		m = bytes.Replace(m, []byte("44=125.25"), []byte("44="+price), 1)
		order.Seal(m)
		r, err := c.Submit(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	early := submit("EARLY", "1", "100.00")
	load := downstream.StartTrading(t, c, 8)
	downstream.WaitFor(t, "the first entries to be freed", func() bool {
		_, err := c.ReadExecutions(t.Context(), 0, "", early.Seq, func(client.Execution) error { return errors.New("they are there") })
		return errors.Is(err, client.ErrSnapshotRequired)
	})
	acked := len(load.Stop()) + 1
	// What is left on the bid side is above the early order: sells at its price take that first.
	var late client.Receipt
	for traded := false; !traded; acked++ {
		late = submit(fmt.Sprint("LATE-", acked), "2", "100.00")
		if _, err := c.ReadExecutions(t.Context(), 0, "", late.Seq, func(e client.Execution) error {
			traded = traded || e.Kind == client.ExecFilled && e.Order == early.Seq
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	downstream.WaitFor(t, "the last order", func() bool {
		got, err := p.PSQL(t.Context(), fmt.Sprintf("SELECT seq >= %d FROM ordergrid.fence", late.Seq))
		return err == nil && got == "t"
	})
	for _, sql := range []string{
		fmt.Sprintf("SELECT count(*) - %d FROM ordergrid.executions WHERE kind = 'accepted'", acked),
		fmt.Sprintf("SELECT count(*) - %d FROM ordergrid.orders", acked),
		"SELECT count(*) FROM ordergrid.executions WHERE kind NOT IN ('accepted', 'filled')",
		"SELECT coalesce(sum(CASE side WHEN '1' THEN quantity ELSE -quantity END), 0) FROM ordergrid.executions WHERE kind = 'filled'",
		"SELECT count(*) FROM (SELECT entry, max(n) - count(*) AS missing FROM ordergrid.executions GROUP BY entry) AS x WHERE missing <> 0",
		"SELECT count(*) FROM ordergrid.executions e LEFT JOIN ordergrid.orders o ON (o.grid, o.partition, o.seq) = (e.grid, e.partition, e.order_seq) WHERE o.account IS DISTINCT FROM 'ACC' OR o.cl_ord_id <> e.cl_ord_id",
		fmt.Sprintf("SELECT count(*) - 1 FROM ordergrid.executions WHERE account IS NULL AND order_seq = %d", early.Seq),
	} {
		if got, err := p.PSQL(t.Context(), sql); got != "0" || err != nil {
			t.Errorf("%s: %s (%v), want 0", sql, got, err)
		}
	}
	t.Logf("%d orders", acked)
}

// executionRow is what the table must have of an execution of IBM: prices have two digits, quantities none.
func executionRow(e *client.Execution) string {
	filled := e.Kind == client.ExecFilled
	amount := func(units int64, digits uint8, there bool) string {
		if there || units != 0 {
			return client.Decimal(units, digits)
		}
		return "-"
	}
	other := ""
	if filled {
		other = fmt.Sprint(e.Other)
	}
	sums := filled || e.Leaves != 0 || e.Cum != 0
	short := map[bool]string{true: "t", false: "f"}
	return strings.Join([]string{e.Kind.String(), "IBM ACC", fmt.Sprint(e.Side), fmt.Sprint(e.Order), cmp.Or(other, "-"), amount(e.Price, 2, filled), amount(e.Qty, 0, filled),
		amount(e.Leaves, 0, sums), amount(e.Cum, 0, sums), "-", short[e.Passive], short[e.Auction]}, " ")
}

// TestGridWithoutExecutions: a grid that stores refuses a sink that wants executions, and the sink says so.
func TestGridWithoutExecutions(t *testing.T) {
	p := server(t, downstream.PostgresOptions{})
	url := file(t, p.Admin())
	downstream.RunSink(t, "postgres", "migrate", "--url-file", url).End(0)
	g := testgrid.Run(t, "--external-sink", "orders")
	s := downstream.StartSink(t, g, "postgres", "orders", "--url-file", url, "--executions")
	downstream.WaitFor(t, "a permanent error", func() bool {
		var status sinkStatus
		s.Status(&status)
		return len(status.Partitions) > 0 && status.Partitions[0].Error.Kind == "permanent" && strings.Contains(status.Partitions[0].Error.Text, "spec.execution.mode Match")
	})
}

type sinkStatus struct {
	Partitions []struct {
		Error struct{ Kind, Text string }
	}
}

// TestMigrateFromOne: a schema of version 1 with orders gets executions, and their tables of days that have one of orders.
func TestMigrateFromOne(t *testing.T) {
	p, o := migrated(t)
	w, s := open(t, o), newSource()
	if err := w.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatal(err)
	}
	day := begin.Format("2006-01-02")
	const back = `DROP TABLE ordergrid.executions; DELETE FROM ordergrid.schema_version WHERE version = 2`
	if _, err := p.PSQL(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if out := downstream.RunSink(t, "postgres", "migrate", "--url-file", file(t, p.Admin())).End(0); !strings.Contains(out, "version 2, was 1") {
		t.Fatalf("%s, want version 2, was 1", out)
	}
	for range 2 {
		if got, err := p.PSQL(t.Context(), "SELECT ordergrid.make_day('"+day+"'), to_regclass('ordergrid.executions_"+begin.Format("20060102")+"') IS NOT NULL, count(*) FROM ordergrid.orders"); err != nil || !strings.HasSuffix(got, "|t|994") {
			t.Fatalf("%s (%v), want the table of the day, and all orders", got, err)
		}
	}
	if err := w.Write(t.Context(), s.next(1000)); err != nil {
		t.Fatalf("the writer that was open: %v", err)
	}
	prove(t, p, 2000)
}
