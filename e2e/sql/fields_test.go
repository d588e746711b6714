package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// onTexts gives PostgreSQL the operators that a listener has on values, which are text: those of type json.
const onTexts = `
create function get(text, text) returns json immutable language sql as 'select $1::json -> $2';
create function get(text, int) returns json immutable language sql as 'select $1::json -> $2';
create function get_text(text, text) returns text immutable language sql as 'select $1::json ->> $2';
create function get_text(text, int) returns text immutable language sql as 'select $1::json ->> $2';
create function at(text, text[]) returns json immutable language sql as 'select $1::json #> $2';
create function at_text(text, text[]) returns text immutable language sql as 'select $1::json #>> $2';
create operator -> (leftarg = text, rightarg = text, function = get);
create operator -> (leftarg = text, rightarg = int, function = get);
create operator ->> (leftarg = text, rightarg = text, function = get_text);
create operator ->> (leftarg = text, rightarg = int, function = get_text);
create operator #> (leftarg = text, rightarg = text[], function = at);
create operator #>> (leftarg = text, rightarg = text[], function = at_text)`

// documents are values: of fields that are there or not, of one type or of several, and of JSON that few write.
func documents(r *rand.Rand) []string {
	all := []string{`{}`, `[]`, `[1, [2, {"a": -0.50}], null]`, `"text"`, `null`, ` 17 `, `{"qty":1,"qty":2, "sym":null}`, `{"qty":null}`,
		`{"a":{"b":1},"a":{"c":2}}`, `{"a":[1,2,3],"a":[4]}`, "{ \"sym\" :\n\"a\\u0041\\n\\u00e9\\ud83d\\ude00\" , \"\\u0071ty\": 5 }", `{"":1," ":2}`,
		`{"a":{"b":[{"c":"x"},{"c":"y"}]}}`, `{"f":1e2,"px":1E-2}`, `{"ok":"yes","at":"2026-11-21T09:30:00+02"}`}
	for i := range 120 {
		var b strings.Builder
		fmt.Fprintf(&b, `{"sym":%q`, symbols[i%len(symbols)])
		if i%7 > 0 {
			fmt.Fprintf(&b, `, "qty": %d`, r.IntN(40)-10)
		}
		if i%5 > 0 {
			fmt.Fprintf(&b, `,"px":%q`, pick(r, []string{"1.50", "1.5", "0.1", "-3", "99999999999999999999.99"}))
		}
		if i%3 > 0 {
			fmt.Fprintf(&b, `,"ok":%v,"f":%s`, i%2 == 0, pick(r, []string{"0.1", "1e20", "2.5", "3", "-0.0001"}))
		}
		fmt.Fprintf(&b, `,"at":"2026-11-%02d 10:00:00.%d+00","mixed":%s,"a":{"b":[%d,"two",null],"n":"%d"}}`, 1+r.IntN(28), i, pick(r, []string{"1", `"x"`, "2.5", "true", "null", `"12"`, "99999999999"}), i, i%4)
		all = append(all, b.String())
	}
	return all
}

// fields are expressions that are no error, by type, and constants that they are compared with.
var fields = []col{
	{"(value->>'qty')::bigint", "int", []string{"1", "2", "0", "-3", "7.5", "100"}},
	{"(value->>'qty')::numeric::int", "int", []string{"1", "2", "100"}},
	{"(value->>'px')::numeric", "num", []string{"1.5", "1.50", "0.1", "-3", "99999999999999999999.99", "0.01"}},
	{"(value->>'f')::float8", "num", []string{"0.1", "1e20", "2.5", "3"}},
	{"value->>'sym'", "text", []string{"IBM", "a", "z z", "A%", "", "aA"}},
	{"value::json->'a'->>'n'", "text", []string{"0", "1", "3"}},
	{"value#>>'{a,b,1}'", "text", []string{"two", "x"}},
	{"value->'a'->'b'->>-2", "text", []string{"two", "1"}},
	{"value->'a'->'b'->>0", "text", []string{"1", "7"}},
	{"(value->>'at')::timestamptz", "time", []string{"2026-11-21 09:30:00+00", "2026-11-05", "2026-11-21 07:30+00"}},
	{"key", "text", []string{"K001", "K1", "K100"}},
}

// late are expressions that are errors in some rows. Which row comes first is not the same here and in PostgreSQL, so a
// statement has one of them: of several the first to fail differs.
var late = []string{"(value->>'mixed')::bigint", "(value->>'mixed')::numeric", "(value->>'mixed')::boolean", "(value->>'sym')::timestamptz", "(value->>'f')::float8::int"}

// field is a random one, some of which is an error.
func (a *asker) field() string {
	switch a.r.IntN(24) {
	case 0:
		return pick(a.r, []string{"(value->'qty')::bigint", "value->'sym' = 'x'", "version->>'a'", "value->>1.5", "nothing->>'a'"})
	case 1:
		return a.late
	}
	if a.r.IntN(4) == 0 {
		return pick(a.r, []string{"value->'a'", "value->>'a'", "value#>'{a,b}'", "value#>>'{a,b,-1}'", "value->0", "value->>1", "value->'a'->'b'->1", "value#>'{}'", "value#>>'{}'", "value->>''", "value#>>'{a,NULL}'",
			"(value->>'ok')::boolean", "value->>'mixed'", "(value->>'px')::numeric + 1.25", "(value->>'qty')::bigint - version", "value->>NULL", "(value->>'px')::numeric::text", "version::int4", "value->'f'", "value::json", "(value->>'at')::timestamptz + interval '1 hour'"})
	}
	return pick(a.r, fields).name
}

// ofFields makes a random statement about fields of values.
func (a *asker) ofFields() string {
	a.args, a.late = nil, pick(a.r, late)
	var list []string
	for range 1 + a.r.IntN(3) {
		list = append(list, a.field())
	}
	where := ""
	if a.r.IntN(4) > 0 {
		where = a.where()
	}
	switch a.r.IntN(4) {
	case 0: // groups
		by := pick(a.r, []string{"value->>'sym'", "(value->>'px')::numeric", "(value->>'qty')::bigint", "value->'a'->>'n'", "partition"})
		out := []string{by}
		for range 1 + a.r.IntN(3) {
			out = append(out, pick(a.r, []string{"count(*)", "count(value->>'px')", "sum((value->>'qty')::bigint)", "sum((value->>'px')::numeric)", "min((value->>'at')::timestamptz)", "max(value->>'sym')",
				"max((value->>'f')::float8)", "sum((value->>'qty')::numeric::int) + 1", "min(key)", "count(value->'a')", "sum(version)::text", "count(*) - 1"}))
		}
		return "SELECT " + strings.Join(out, ", ") + " FROM regions.positions" + where + pick(a.r, []string{" GROUP BY 1 ORDER BY ", " GROUP BY ALL 1 ORDER BY "}) + pick(a.r, []string{"1", "1 DESC NULLS LAST", by, "count(*) DESC, 1 NULLS FIRST"})
	case 1:
		if a.r.IntN(2) == 0 {
			return "SELECT " + pick(a.r, []string{"count(*)", "count(*), sum((value->>'qty')::bigint)", "min((value->>'px')::numeric), max((value->>'px')::numeric)"}) + " FROM regions.positions" + where
		}
		by := pick(a.r, fields).name
		return "SELECT DISTINCT " + by + " FROM regions.positions" + where + " ORDER BY 1" + pick(a.r, directions)
	case 2:
		s := "SELECT " + strings.Join(list, ", ") + " FROM regions.positions" + where + " ORDER BY " + pick(a.r, fields).name + pick(a.r, directions) + ", key"
		if a.r.IntN(2) == 0 { // PostgreSQL may compute what it does not answer, and find it wrong
			s = "SELECT key, " + pick(a.r, fields).name + s[strings.Index(s, " FROM "):]
			s += fmt.Sprintf(" LIMIT %d OFFSET %d", a.r.IntN(30), a.r.IntN(4))
		}
		return s
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM regions.positions" + where
}

// TestFieldsAreThoseOfPostgreSQL asks both random statements about fields of the same values.
func TestFieldsAreThoseOfPostgreSQL(t *testing.T) {
	p := postgres(t)
	w := start(t, 1)
	seed := uint64(number("ORDERGRID_SEED", int(rand.Uint32())))
	t.Logf("ORDERGRID_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	region := w.client.Region("positions")
	for i, doc := range documents(r) {
		if _, err := region.Put(t.Context(), fmt.Appendf(nil, "K%03d", i), []byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := open(t, w.dsn()), open(t, p.Admin())
	if _, err := ours.Exec(t.Context(), "set ordergrid.linearizable to on"); err != nil {
		t.Fatal(err)
	}
	copyEntries(t, ours, theirs)
	if _, err := theirs.Exec(t.Context(), onTexts); err != nil {
		t.Fatal(err)
	}
	counts := askBoth(t, ours, theirs, func(n int) (string, *asker) {
		a := &asker{r: r, bind: n%2 == 1, of: fields}
		return a.ofFields(), a
	})
	if counts["rows"] < 500 || counts["error"] < 50 || counts["refused"]*10 > counts["rows"] {
		t.Errorf("%v: the statements test nothing, or too many are refused", counts)
	}
}

// copyEntries makes the region's table of PostgreSQL.
func copyEntries(t *testing.T, ours, theirs *pgx.Conn) int {
	t.Helper()
	rows, err := ours.Query(t.Context(), "select * from regions.positions", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Exec(t.Context(), "create schema regions; create table regions.positions(key text, value text, version int8, expires timestamptz, partition int8)"); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.CopyFrom(t.Context(), pgx.Identifier{"regions", "positions"}, []string{"key", "value", "version", "expires", "partition"}, pgx.CopyFromRows(all)); err != nil {
		t.Fatal(err)
	}
	return len(all)
}
