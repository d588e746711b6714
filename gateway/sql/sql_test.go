package sql

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

var theCatalog = sync.OnceValues(func() (*Catalog, error) {
	s, err := NewSchema([]view.Extra{{Tag: 5001, Kind: view.Text, Name: "Desk"}})
	if err != nil {
		return nil, err
	}
	return NewCatalog(s)
})

func world(t testing.TB) (*Schema, *Catalog, *Env) {
	t.Helper()
	c, err := theCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return c.schema, c, &Env{Zone: time.UTC, Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), User: "desk", Database: "grid", Setting: func(string) (string, bool) { return "", false }}
}

// planned plans a statement without parameters.
func planned(t testing.TB, text string) (*Plan, *Error) {
	t.Helper()
	s, c, env := world(t)
	all, err := Parse(text, Bounds{}, c)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		t.Fatalf("%q is %d statements", text, len(all))
	}
	if r, ok := all[0].Statement.(*Refused); ok {
		return nil, r.Err
	}
	p, err := Prepare(all[0].Statement, s, env, nil)
	if err != nil {
		return nil, err
	}
	return p.Bind(env, make([][]byte, len(p.Params)), nil)
}

// show is a filter as text.
func show(e *query.Expr) string {
	if e == nil {
		return "all"
	}
	var parts []string
	for i := range e.Args {
		parts = append(parts, show(&e.Args[i]))
	}
	switch e.Op {
	case query.And, query.Or:
		return "(" + strings.Join(parts, " "+e.Op.String()+" ") + ")"
	case query.Not:
		return "not " + parts[0]
	}
	s := fmt.Sprintf("%d %s", uint32(e.Field), e.Op)
	for _, v := range e.Values {
		s += " " + v.String()
	}
	if e.Above {
		s += " above"
	}
	if e.Below {
		s += " below"
	}
	return s
}

// Three truth values, exact numbers beyond what columns hold, microseconds of nanoseconds.
func TestFilters(t *testing.T) {
	for _, c := range []struct{ where, want string }{
		{"symbol = 'IBM'", `55 eq "IBM"`},
		{"NOT symbol = 'IBM'", `not 55 eq "IBM"`}, // never null
		{"NOT account = 'A'", `(1 present and not 1 eq "A")`},
		{"account <> 'A'", `(1 present and not 1 eq "A")`},
		{"NOT (account = 'A' OR price > 1)", `(1 present and not 1 eq "A" and 44 range null 1)`},
		{"account IN ('A', 'B', NULL)", `1 in "A" "B"`},
		{"account NOT IN ('A', NULL)", "nothing"},
		{"account IS NULL", `not 1 present`},
		{"(account = 'A') IS NOT TRUE", `not 1 eq "A"`},
		{"price = 1.5e0 AND true", `44 eq 1.5`},
		{"price < 0.00000000000000000000000001", `44 range null 0`},
		{"price >= 0.00000000000000000000000001", `44 range 0 null above`},
		{"price < 1e60", `44 present`},
		{"price > 1e60", "nothing"},
		{"seq > 7.5", `1073741824 range 7 null above`},
		{"seq < -1", "nothing"},
		{"side = '12'", "nothing"},
		{"state = 'New'", "nothing"},
		{"received = '2026-11-21 00:00:00.000001+00'", `1073741826 range 2026-11-21T00:00:00.000001Z 2026-11-21T00:00:00.000002Z below`},
		{"received > now() - interval '1 hour'", `1073741826 range 2026-11-21T11:00:00.000001Z null`},
		{`symbol LIKE 'A\%%'`, `55 prefix "A%"`},
		{"clordid = ANY ('{a,\"b c\",NULL}')", `11 in "a" "b c"`},
		{"1 = 1", "all"}, {"1 = 0", "nothing"}, {"NULL", "nothing"},
		{"account = 'A' AND (price BETWEEN 1 AND 2 OR price IS NULL)", `(1 eq "A" and ((44 range 1 null and 44 range null 2) or not 44 present))`},
	} {
		p, err := planned(t, "select seq from orders where "+c.where)
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
			continue
		}
		got := "nothing"
		if len(p.Questions) > 0 {
			got = show(p.Questions[0].Where)
		}
		if got != c.want {
			t.Errorf("%s: %s, expected %s", c.where, got, c.want)
		}
	}
}

// What is refused has its SQLSTATE and place, those of PostgreSQL where it refuses it too.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		statement, code string
		position        int
		text            string
	}{
		{"select * from orders, orders b", StateUnsupported, 21, "a cross product of tables"},
		{"select * from orders cross join orders b", StateUnsupported, 22, "joins"},
		{"select * from orders where symbol ~ '(a+)+$'", StateUnsupported, 35, "regular expressions"},
		{"select * from orders where symbol like '%a%'", StateUnsupported, 35, "a pattern that is no prefix"},
		{"select * from orders where symbol = price", StateUnsupported, 35, "comparing columns"},
		{"select * from orders where symbol = (select 1)", StateUnsupported, 38, "subqueries"},
		{"select symbol || 'x' from orders", StateUnsupported, 15, "operator ||"},
		{"select avg(price) from orders", StateUnsupported, 8, "avg is sum(x) and count(*)"},
		{"select row_number() over () from orders", StateUnsupported, 0, ""},
		{"select clordid, count(*) from orders group by clordid", StateUnsupported, 47, "which few rows share"},
		{"with x as (select 1) select * from x", StateUnsupported, 1, "WITH"},
		{"select * from orders union select * from orders", StateUnsupported, 22, "UNION"},
		{"select * from pg_catalog.pg_locks", StateUnsupported, 15, "the catalog"},
		{"select * from nothing", StateTable, 15, `relation "nothing" does not exist`},
		{"select é, nothing from orders", StateColumn, 8, `column "é" does not exist`},
		{"select 'é', nothing from orders", StateColumn, 13, `column "nothing" does not exist`},
		{"select lowerr('a')", StateFunction, 8, "does not exist"},
		{"select * from orders where price = 'abc'", StateText, 36, `invalid input syntax for type numeric: "abc"`},
		{"select * from orders where seq = '9223372036854775808'", StateRange, 34, "out of range for type bigint"},
		{"select * from orders where received > 'noon'", StateDatetime, 39, "timestamp with time zone"},
		{"select * from orders where received > '2026-02-30'", "22008", 39, "out of range"},
		{"select * from orders where symbol = 5", StateFunction, 35, "operator does not exist: text = integer"},
		{"select * from orders where symbol", StateMismatch, 28, "argument of WHERE must be type boolean, not type text"},
		{"select symbol, count(*) from orders", StateGrouping, 8, "must appear in the GROUP BY clause"},
		{"select * from orders order by 99", StateOrderBy, 31, "position 99 is not in select list"},
		{"select * from orders limit -1", StateLimit, 0, "must not be negative"},
		{"select * frm orders", StateSyntax, 10, `syntax error at or near "frm"`},
		{"select * from orders where", StateSyntax, 27, "at end of input"},
		{"select 1a", StateSyntax, 8, "trailing junk"},
		{"select * from orders where price::bigint array in ('1')", StateUnsupported, 42, "ARRAY behind a type"},
		{"select * from orders where ('a'='b') . unknown", StateUnsupported, 38, "a part of a value"},
		{"select $1 . name", StateUnsupported, 11, "a part of a value"},
		{"select * from orders where price::timestamptz . now", StateUnsupported, 47, "a schema of types"},
		{"select * from orders where symbol in ('a') between between and true", StateUnsupported, 44, "an operator behind IN"},
		{"select * from orders where symbol in ('a') not in (true)", StateUnsupported, 44, "an operator behind IN"},
		{"select * from orders where symbol in ('a')::text = 'true'", StateUnsupported, 43, "an operator behind IN"},
		{"select symbol, count(*) from orders group by distinct symbol", StateUnsupported, 46, "GROUP BY DISTINCT"},
		{"select count(*) from orders group by all", StateSyntax, 41, "at end of input"},
		{"select 'abc", StateSyntax, 8, "unterminated quoted string"},
		{"select /* /* */ 1", StateSyntax, 8, "unterminated /* comment"},
		{"insert into orders values (1)", StateReadOnly, 0, "read-only transaction"},
		{"drop table orders", StateReadOnly, 0, "read-only transaction"},
		{"copy orders to stdout", StateReadOnly, 0, ""},
	} {
		_, err := planned(t, c.statement)
		if err == nil {
			t.Errorf("%s: it is answered", c.statement)
			continue
		}
		if err.Code != c.code || c.position != 0 && err.Position(c.statement) != c.position || !strings.Contains(err.Message+err.Hint, c.text) {
			t.Errorf("%s: %s %q at %d (%s), expected %s at %d with %q", c.statement, err.Code, err.Message, err.Position(c.statement), err.Hint, c.code, c.position, c.text)
		}
		if err.Code == StateUnsupported && err.Hint == "" {
			t.Errorf("%s: no hint", c.statement)
		}
	}
}

// Statements that are made to be much work are refused before they are.
func TestHostile(t *testing.T) {
	_, known, _ := world(t)
	for _, c := range []struct{ name, statement, code string }{
		{"1 MB", "select '" + strings.Repeat("x", 1<<20) + "'", StateTooLarge},
		{"10^5 terms", "select * from orders where seq=1" + strings.Repeat(" or seq=1", 100_000), StateTooComplex},
		{"10^5 values", "select * from orders where seq in (1" + strings.Repeat(",1", 100_000) + ")", StateTooComplex},
		{"parentheses", "select " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000), StateTooComplex},
		{"digits", "select * from orders where price = " + strings.Repeat("9", 5000), StateRange},
		{"exponent", "select * from orders where price = 1e999999999", StateRange},
		{"parameter", "select $99999", StateParameterName},
		{"parameters", "select $65000", StateParameterName},
		{"columns", "select " + strings.Repeat("*,", 20_000) + "*", StateSyntax},
		{"stars", "select " + strings.Repeat("*,", 5_000) + "* from orders", "54011"},
	} {
		bounds := Bounds{Bytes: 1 << 20}
		if c.name == "1 MB" {
			bounds.Bytes = 0
		}
		s, _, env := world(t)
		all, err := Parse(c.statement, bounds, known)
		if err == nil {
			_, err = Prepare(all[0].Statement, s, env, nil)
		}
		if err == nil || err.Code != c.code {
			t.Errorf("%s: %v, expected %s", c.name, err, c.code)
		}
	}
	not, err := planned(t, "select seq from orders where "+strings.Repeat("not ", 10_001)+"symbol = 'a'")
	if err != nil || show(not.Questions[0].Where) != `not 55 eq "a"` {
		t.Errorf("10,001 NOTs: %v", err)
	}
}

// An order that the grid does not have is made of questions, or of runs that are sorted here.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		order     string
		questions int
		same      int
	}{
		{"seq", 1, 0}, {"price", 2, 0}, {"price NULLS FIRST", 1, 0}, {"price DESC NULLS LAST", 1, 0}, {"price DESC", 2, 0},
		{"symbol, price", 1, 1}, {"price, account", 3, 1}, {"symbol, side, account, price", 1, 2},
	} {
		p, err := planned(t, "select clordid from orders order by "+c.order)
		if err != nil {
			t.Errorf("%s: %v", c.order, err)
			continue
		}
		if len(p.Questions) != c.questions || p.Questions[0].Same != c.same {
			t.Errorf("%s: %d questions, runs equal in %d keys, expected %d and %d", c.order, len(p.Questions), p.Questions[0].Same, c.questions, c.same)
		}
	}
	p, err := planned(t, "select clordid from orders where price > 1 order by price")
	if err != nil || len(p.Questions) != 1 {
		t.Errorf("prices that are required: %d questions, %v", len(p.Questions), err)
	}
}

// Statements of clients are found by their words, with other names and numbers of values.
func TestCatalog(t *testing.T) {
	for _, c := range []struct {
		statement string
		rows      int
	}{
		{"SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'", 0},
		{"select  quote_ident(column_name) as \"column\", data_type as \"type\" from information_schema.columns where quote_ident(table_name) = 'orders'", 16},
		{"select quote_ident(column_name) as \"column\", data_type as \"type\" from information_schema.columns where quote_ident(table_name) = 'others'", 0},
		{"SELECT current_setting('server_version_num')::int/100 as version", 1},
	} {
		p, err := planned(t, c.statement)
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
		} else if len(p.Fixed) != c.rows {
			t.Errorf("%s: %d rows, expected %d", c.statement, len(p.Fixed), c.rows)
		}
	}
	if _, err := planned(t, "SELECT extversion FROM pg_extension WHERE extname = 'other'"); err == nil || err.Code != StateUnsupported {
		t.Errorf("another value where one is fixed: %v", err)
	}
}

// Words of operators name what is before them if no operand follows.
func TestOperatorsAreNames(t *testing.T) {
	for text, name := range map[string]string{"select 1 in": "in", "select 1 between order by 1": "between", "select symbol like from orders": "like", "select 1 and where true": "and", "select 1 is limit 1": "is"} {
		if plan, err := planned(t, text); err != nil || plan.Outputs()[0].Name != name {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"select * from orders where price > 1.5 and symbol in ('a','b') order by 1 desc nulls last limit 5", "select $1::text", "set a to 'b'", "select e'\\n' -- x", "explain select count(*) from orders", "select '{1,2}'::int[]",
		"select timestamptz '2026-01-01', interval '1 day 02:03'", "select \"a\"\"b\" from orders where not a like 'x\\%%'",
		"select value->>'a', value#>'{a,-1}' from regions.r where (value->>'q')::bigint > $1 order by value->'a'->>0 desc", "select value->>'a', count(*), sum((value->>'q')::numeric) from regions.r group by 1",
		"insert into regions.r values ('a', '1')", "insert into regions.r as x (value, key, expires) values ($1, $2, now() + interval '1 hour'), ('b', default, null) on conflict (\"key\") do update set value = excluded.value, expires = excluded.expires returning key, value",
		"update regions.r x set value = (value::bigint + 1)::text, expires = $1 where x.key in ('a', $2) and value->>'q' = '1' returning version", "delete from only regions.r where key = any('{a,b}') and expires < now() returning *"} {
		f.Add(s)
	}
	s, c, env := world(f)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text, Bounds{}, c)
		if err != nil {
			_ = err.Position(text)
			return
		}
		for _, one := range all {
			switch one.Statement.(type) {
			case *Select, *Explain, *Found, *Write:
			default:
				continue
			}
			p, err := Prepare(one.Statement, s, env, nil)
			if err != nil {
				_ = err.Position(text)
				continue
			}
			for _, v := range [][]byte{nil, []byte("1"), []byte("{}"), []byte("2026-01-01")} {
				values := make([][]byte, len(p.Params))
				for i := range values {
					values[i] = v
				}
				for _, format := range []int16{0, 1} {
					plan, err := p.Bind(env, values, []int16{format})
					if err == nil && len(plan.Questions) == 0 && plan.Fixed == nil && !plan.Explain {
						tried(plan)
					}
				}
			}
		}
	})
}

// tried computes what a plan makes of a row, if it is of a region: the row of the answer, a group, and what is changed.
func tried(plan *Plan) {
	if plan.Region == nil && !plan.Constant { // of orders, and none of them
		return
	}
	var row []view.Value
	formats := make([]int16, len(plan.Outputs()))
	if plan.Region != nil {
		row = []view.Value{view.TextValue("a"), view.TextValue(`{"a":[1,{"b":"2026-01-01"}],"q":"12"}`), view.IntValue(7), view.TimeValue(1_763_719_200_000_000_123), view.IntValue(1)}
		_, _ = plan.Region.Has(row)
	}
	if plan.Change != nil && plan.Change.Verb == Update {
		_, _ = plan.Change.New(row)
	}
	if !plan.Gathers() {
		_, _, _ = plan.Encode(nil, nil, row, formats)
		return
	}
	g := plan.NewGather()
	if g.Add(row) != nil || g.Sort() != nil {
		return
	}
	for row, group, ok := g.Next(); ok; row, group, ok = g.Next() {
		if group != nil {
			_, _, _ = plan.EncodeGroup(nil, nil, group, formats)
		} else {
			_, _, _ = plan.Encode(nil, nil, row, formats)
		}
	}
}

// A statement as the simple protocol has it: read, resolved, planned.
func BenchmarkPlan(b *testing.B) {
	s, c, env := world(b)
	const text = "select clordid, symbol, price, orderqty from orders where account = 'ACC1' and price > 1.5 order by received desc limit 10"
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse(text, Bounds{}, c); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, text := range map[string]string{"bind": "select clordid, price from orders where clordid = 'A-1'", "bind a parameter": "select clordid, price from orders where clordid = $1"} {
		b.Run(name, func(b *testing.B) { // of a prepared statement
			all, err := Parse(text, Bounds{}, c)
			if err != nil {
				b.Fatal(err)
			}
			p, err := Prepare(all[0].Statement, s, env, nil)
			if err != nil {
				b.Fatal(err)
			}
			raw := [][]byte{[]byte("A-1")}[:len(p.Params)]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Bind(env, raw, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parse and plan", func(b *testing.B) {
		for b.Loop() {
			all, _ := Parse(text, Bounds{}, c)
			p, err := Prepare(all[0].Statement, s, env, nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Bind(env, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
