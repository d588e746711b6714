package sql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ordergrid/ordergrid/e2e/downstream"
)

// postgres starts the real one, or skips the test with the reason.
func postgres(t *testing.T) *downstream.Postgres {
	t.Helper()
	bin, err := downstream.FindPostgres()
	if err != nil {
		missing(t, err)
	}
	p, err := downstream.NewPostgres(bin, downstream.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	return p
}

// missing skips a test for what cannot be had here, unless it has to be there.
func missing(t *testing.T, why error) {
	t.Helper()
	if os.Getenv("ORDERGRID_REQUIRE_SQL_CLIENTS") != "" {
		t.Fatal(why)
	}
	t.Skip("not tested: ", why)
}

// copyRows makes the table of PostgreSQL from all rows of the listener.
func copyRows(t *testing.T, from, to *pgx.Conn, orders int) {
	t.Helper()
	if _, err := from.Exec(t.Context(), "set ordergrid.linearizable to on"); err != nil {
		t.Fatal(err)
	}
	rows, err := from.Query(t.Context(), "select * from orders", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	var columns, names []string
	for _, f := range rows.FieldDescriptions() {
		ty, ok := from.TypeMap().TypeForOID(f.DataTypeOID)
		if !ok {
			t.Fatalf("column %s has type %d", f.Name, f.DataTypeOID)
		}
		columns, names = append(columns, f.Name+" "+ty.Name), append(names, f.Name)
	}
	var all [][]any
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values)
	}
	if rows.Err() != nil || len(all) != orders {
		t.Fatalf("%d rows, expected %d: %v", len(all), orders, rows.Err())
	}
	if _, err := to.Exec(t.Context(), "create table orders("+strings.Join(columns, ", ")+")"); err != nil {
		t.Fatal(err)
	}
	if _, err := to.CopyFrom(t.Context(), pgx.Identifier{"orders"}, names, pgx.CopyFromRows(all)); err != nil {
		t.Fatal(err)
	}
}

// outcome of a statement.
type outcome struct {
	columns []string
	rows    []string
	err     *pgconn.PgError
}

// ask runs a statement: in the simple protocol with texts, or in the extended one with values as
// text and answers in binary form.
func ask(ctx context.Context, c *pgx.Conn, statement string, args []string, extended bool) (outcome, error) {
	var r *pgconn.Result
	if extended {
		values := make([][]byte, len(args))
		for i, a := range args {
			values[i] = []byte(a)
		}
		r = c.PgConn().ExecParams(ctx, statement, values, nil, nil, []int16{1}).Read()
	} else {
		all, err := c.PgConn().Exec(ctx, statement).ReadAll()
		r = &pgconn.Result{Err: err}
		if err == nil && len(all) == 1 {
			r = all[0]
		}
	}
	var o outcome
	if r.Err != nil {
		if errors.As(r.Err, &o.err) {
			return o, nil
		}
		return o, r.Err
	}
	for _, f := range r.FieldDescriptions {
		o.columns = append(o.columns, fmt.Sprintf("%s %d", f.Name, f.DataTypeOID))
	}
	for _, row := range r.Rows {
		var line []string
		for i, v := range row {
			line = append(line, cell(v, r.FieldDescriptions[i], extended))
		}
		o.rows = append(o.rows, strings.Join(line, " | "))
	}
	return o, nil
}

// cell is a value to compare: of numbers not how many zeros they end with.
func cell(v []byte, f pgconn.FieldDescription, binary bool) string {
	switch {
	case v == nil:
		return "NULL"
	case f.DataTypeOID == pgtype.NumericOID:
		var n pgtype.Numeric
		format := int16(pgtype.TextFormatCode)
		if binary {
			format = pgtype.BinaryFormatCode
		}
		if err := pgtype.NewMap().Scan(f.DataTypeOID, format, v, &n); err != nil {
			return err.Error()
		}
		text, err := n.Value()
		if err != nil {
			return err.Error()
		}
		if s := fmt.Sprint(text); strings.Contains(s, ".") {
			return strings.TrimRight(strings.TrimRight(s, "0"), ".")
		} else {
			return s
		}
	case binary:
		return fmt.Sprintf("%q", v)
	}
	return string(v)
}

// TestAnswersAreThoseOfPostgreSQL asks both the same random statements about the same rows.
// ORDERGRID_SQL_QUESTIONS of them, 1,500 unless it is given; ORDERGRID_SEED repeats a run.
func TestAnswersAreThoseOfPostgreSQL(t *testing.T) {
	p := postgres(t)
	w := start(t, number("ORDERGRID_ORDERS", 2000))
	seed := uint64(number("ORDERGRID_SEED", int(rand.Uint32())))
	t.Logf("ORDERGRID_SEED=%d", seed)
	ours, theirs := open(t, w.dsn()), open(t, p.Admin())
	copyRows(t, ours, theirs, w.orders)
	r := rand.New(rand.NewPCG(seed, 3))
	counts := askBoth(t, ours, theirs, func(n int) (string, *asker) {
		a := &asker{r: r, bind: n%2 == 1}
		return a.statement(), a
	})
	if counts["rows"] == 0 || counts["error"] == 0 || counts["refused"]*10 > counts["rows"] {
		t.Errorf("%v: the statements test nothing, or too many are refused", counts)
	}
}

// askBoth asks both ORDERGRID_SQL_QUESTIONS statements, compares the answers, and counts them by their kind. Ten that differ are
// enough.
func askBoth(t *testing.T, ours, theirs *pgx.Conn, next func(n int) (statement string, a *asker)) map[string]int {
	t.Helper()
	counts, wrong := map[string]int{}, 0
	for n := range number("ORDERGRID_SQL_QUESTIONS", 1500) {
		statement, a := next(n)
		got, err := ask(t.Context(), ours, statement, a.args, a.bind)
		if err != nil {
			t.Fatalf("%s %q: %v", statement, a.args, err)
		}
		want, err := ask(t.Context(), theirs, statement, a.args, a.bind)
		if err != nil {
			t.Fatalf("PostgreSQL: %s %q: %v", statement, a.args, err)
		}
		if counts[compare(t, statement, a.args, got, want)]++; t.Failed() {
			if wrong++; wrong == 10 {
				t.FailNow()
			}
		}
	}
	t.Log(counts)
	return counts
}

// compare reports what kind of answer it was.
func compare(t *testing.T, statement string, args []string, got, want outcome) string {
	t.Helper()
	switch {
	case got.err != nil && got.err.Code == "0A000":
		if got.err.Position == 0 && !strings.HasPrefix(got.err.Detail, "It is parameter") || got.err.Hint == "" {
			t.Errorf("%s %q: refused without position and hint: %+v", statement, args, got.err)
		}
		return "refused"
	case got.err != nil || want.err != nil:
		if got.err == nil || want.err == nil || class(got.err.Code) != class(want.err.Code) || got.err.Position != want.err.Position && want.err.Position != 0 && got.err.Position != 0 {
			t.Errorf("%s %q:\n      %v at %d\nPostgreSQL: %v at %d\n", statement, args, got.err, position(got.err), want.err, position(want.err))
		}
		return "error"
	case !slices.Equal(got.columns, want.columns):
		t.Errorf("%s %q:\ncolumns   %q\nPostgreSQL %q", statement, args, got.columns, want.columns)
	}
	if !strings.Contains(statement, "ORDER BY") {
		slices.Sort(got.rows)
		slices.Sort(want.rows)
	}
	for i := range max(len(got.rows), len(want.rows)) {
		if i >= len(got.rows) || i >= len(want.rows) || got.rows[i] != want.rows[i] {
			t.Errorf("%s %q:\n%d rows, PostgreSQL %d; row %d:\n%s\n%s", statement, args, len(got.rows), len(want.rows), i,
				strings.Join(got.rows[min(i, len(got.rows)):min(i+1, len(got.rows))], ""), strings.Join(want.rows[min(i, len(want.rows)):min(i+1, len(want.rows))], ""))
			break
		}
	}
	return "rows"
}

// class of an error: of what is no time PostgreSQL finds some to be times out of range.
func class(code string) string {
	if code == "22008" {
		return "22007"
	}
	return code
}

func position(e *pgconn.PgError) int32 {
	if e == nil {
		return 0
	}
	return e.Position
}
