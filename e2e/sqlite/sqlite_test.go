// Package sqlite asks a view and SQLite (modernc.org/sqlite, in Go: no C compiler needed)
// the same random questions about the same rows.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// TestAnswersAreThoseOfSQLite asks 2,000 questions; ORDERGRID_QUESTIONS=100000 so many.
// ORDERGRID_SEED repeats a run.
func TestAnswersAreThoseOfSQLite(t *testing.T) {
	questions, seed := 2000, rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv("ORDERGRID_QUESTIONS")); err == nil {
		questions = n
	}
	if n, err := strconv.ParseUint(os.Getenv("ORDERGRID_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("ORDERGRID_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const base, perLog = 2<<16 - 400, 5000
	for asked := 0; asked < questions; {
		c, err := querytest.New(base, 4<<16)
		if err != nil {
			t.Fatal(err)
		}
		c.Plain = true // SQLite's integers have 64 bits
		if err := c.Add(r, 200+r.IntN(800)); err != nil {
			t.Fatal(err)
		}
		for r.IntN(2) == 0 && c.View.Sort() {
		}
		db := load(t, c)
		for n := 0; n < perLog && asked < questions; n, asked = n+1, asked+1 {
			q := c.Question(r)
			q.At = base + 1 + uint64(r.IntN(int(c.View.Applied()-base)))
			compare(t, c, db, q)
			if t.Failed() {
				return
			}
		}
		db.Close()
		c.Close()
	}
	t.Logf("%d questions", questions)
}

func name(f view.Field) string { return fmt.Sprintf("f%d", uint32(f)) }

// load makes a table of the rows.
func load(t *testing.T, c *querytest.Case) *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	columns, marks := []string{"ended INTEGER", "by TEXT"}, "?,?"
	for _, d := range c.View.Fields() {
		kind := "INTEGER"
		if d.Kind == view.Text {
			kind = "TEXT"
		}
		columns, marks = append(columns, name(d.Field)+" "+kind), marks+",?"
	}
	if _, err := db.Exec("CREATE TABLE o(" + strings.Join(columns, ",") + ")"); err != nil {
		t.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO o VALUES(" + marks + ")")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range c.Rows {
		by, kind := c.Ended(i)
		values := []any{nil, nil}
		if by != 0 {
			values = []any{int64(by), kind}
		}
		for _, d := range c.View.Fields() {
			values = append(values, plain(row.Values[d.Field]))
		}
		if _, err := insert.Exec(values...); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// plain is a value as SQLite has it: decimals in units of 1e-8.
func plain(v view.Value) any {
	switch v.Kind {
	case view.Null:
		return nil
	case view.Text:
		return v.Text
	case view.Decimal:
		m := v.Number.Big()
		if q, rest := new(big.Int).QuoRem(m, big.NewInt(100_000_000_000), new(big.Int)); rest.Sign() == 0 && q.IsInt64() {
			return q.Int64()
		}
		return v.Number.String() // is no value of these rows, and no integer
	}
	return v.Int
}

// statement is a question as SQL with its arguments.
type statement struct {
	c    *querytest.Case
	at   uint64
	args []any
}

func (s *statement) column(f view.Field) string {
	if f == view.State {
		return fmt.Sprintf("CASE WHEN f35='F' THEN NULL WHEN ended IS NULL OR ended>%d THEN 'new' WHEN by='F' THEN 'cancelled' ELSE 'replaced' END", s.at)
	}
	return name(f)
}

func (s *statement) arg(v view.Value) string {
	s.args = append(s.args, plain(v))
	return "?"
}

// where is a filter. A comparison with null is false, not unknown.
func (s *statement) where(e *query.Expr) string {
	var parts []string
	switch e.Op {
	case query.And, query.Or:
		for i := range e.Args {
			parts = append(parts, s.where(&e.Args[i]))
		}
		return "(" + strings.Join(parts, map[query.Op]string{query.And: " AND ", query.Or: " OR "}[e.Op]) + ")"
	case query.Not:
		return "(NOT " + s.where(&e.Args[0]) + ")"
	}
	col := "(" + s.column(e.Field) + ")"
	switch e.Op {
	case query.Present:
		return col + " IS NOT NULL"
	case query.Prefix:
		return fmt.Sprintf("COALESCE(substr(%s,1,%d)=%s,0)", col, len(e.Values[0].Text), s.arg(e.Values[0]))
	case query.Range:
		parts = append(parts, col+" IS NOT NULL")
		for i, op := range [2]string{">", "<"} {
			if e.Values[i].Kind != view.Null {
				if open := [2]bool{e.Above, e.Below}[i]; !open {
					op += "="
				}
				parts = append(parts, col+op+s.arg(e.Values[i]))
			}
		}
		return "COALESCE(" + strings.Join(parts, " AND ") + ",0)"
	}
	for _, v := range e.Values {
		parts = append(parts, s.arg(v))
	}
	return "COALESCE(" + col + " IN (" + strings.Join(parts, ",") + "),0)"
}

func (s *statement) of(q *query.Query) string {
	var out, order []string
	for _, f := range append(append([]view.Field(nil), q.Select...), q.GroupBy...) {
		out = append(out, s.column(f))
	}
	for _, a := range q.Aggregates {
		if a.Func == query.Count {
			out = append(out, "count(*)")
		} else {
			out = append(out, a.Func.String()+"("+s.column(a.Field)+")")
		}
	}
	dir := func(o query.Order) string { return map[bool]string{true: " DESC", false: ""}[o.Desc] }
	for _, o := range q.OrderBy {
		if o.Aggregate > 0 {
			order = append(order, fmt.Sprint(len(q.GroupBy)+o.Aggregate)+dir(o))
		} else {
			order = append(order, "("+s.column(o.Field)+")"+dir(o))
		}
	}
	where := "1"
	if q.Where != nil {
		where = s.where(q.Where)
	}
	text := "SELECT " + strings.Join(out, ",") + fmt.Sprintf(" FROM o WHERE f%d<=%d AND ", uint32(view.Seq), s.at) + where
	if len(q.GroupBy) > 0 {
		var by []string
		for _, f := range q.GroupBy {
			by = append(by, "("+s.column(f)+")")
		}
		text += " GROUP BY " + strings.Join(by, ",")
		order = append(order, by...)
	} else if len(q.Aggregates) == 0 {
		order = append(order, name(view.Seq))
	}
	if len(order) > 0 {
		text += " ORDER BY " + strings.Join(order, ",")
	}
	return text
}

func compare(t *testing.T, c *querytest.Case, db *sql.DB, q *query.Query) {
	s := &statement{c: c, at: q.At}
	text := s.of(q)
	rows, err := db.Query(text, s.args...)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	defer rows.Close()
	answer, err := query.Run(context.Background(), c.View, q, query.Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	columns, _ := rows.Columns()
	n := 0
	for ; rows.Next(); n++ {
		want, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range want {
			into[i] = &want[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		if n >= len(answer.Rows) {
			t.Fatalf("%d rows, SQLite has more: %s %v", n, text, s.args)
		}
		for i, v := range answer.Rows[n] {
			if got := plain(v); got != want[i] {
				t.Fatalf("row %d, column %d is %v, in SQLite %v: %s %v", n, i, got, want[i], text, s.args)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if n != len(answer.Rows) {
		t.Fatalf("%d rows, in SQLite %d: %s %v", len(answer.Rows), n, text, s.args)
	}
}
