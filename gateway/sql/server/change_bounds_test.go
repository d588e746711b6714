package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// executed is what a statement with text parameters answers: its tag, or its SQLSTATE and message.
func executed(t *testing.T, c *pgconn.PgConn, text string, values ...string) string {
	t.Helper()
	raw := make([][]byte, len(values))
	for i, v := range values {
		raw[i] = []byte(v)
	}
	a := c.ExecParams(t.Context(), text, raw, nil, nil, nil).Read()
	var e *pgconn.PgError
	switch {
	case errors.As(a.Err, &e):
		return e.Code + " " + e.Message + "; " + e.Detail
	case a.Err != nil:
		t.Fatal(a.Err)
	}
	return a.CommandTag.String()
}

// changesBounded: statements that are made to be much work, or that no region takes, get an error that says what is
// allowed; nothing is changed and the connection goes on.
func (g *grid) changesBounded(t *testing.T) {
	c := mustConnect(t, g.writable(t))
	rows := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("('bound-%d','1')", i)
		}
		return strings.Join(all, ",") + " on conflict do nothing"
	}
	long, most := strings.Repeat("k", 64<<10), strings.Repeat("k", wire.MaxRegionPair-1)
	const insert, values = "insert into regions.work values ", "insert into regions.work values ($1, $2)"
	for _, step := range []struct {
		statement string
		values    []string
		want      string
	}{
		{insert + rows(sql.MaxChanges+1), nil, "54000 statement has 1001 rows, allowed: 1000"},
		{insert + rows(90_000), nil, "54000 statement has "}, // bytes
		{insert + "('bound', '" + strings.Repeat("v", 1<<20) + "')", nil, "54000 statement has 1048621 bytes, allowed: 65536"},
		{"delete from regions.work where key = any($1)", []string{"{" + series(20_000) + "}"}, "54001 filter has more than "},
		{"delete from regions.work where key = any($1)", []string{"{" + series(sql.MaxChanges+1) + "}"}, "54000 statement has 1001 keys, allowed: 1000"},
		{values, []string{long, "v"}, "23514 key has 65536 bytes and value 1, allowed: a key of 1 or more, together at most 65440"},
		{values, []string{"bound", long}, "23514 key has 5 bytes and value 65536"},
		{values, []string{"", "v"}, "23514 key has 0 bytes"},
		{"update regions.work set value = $2 where key = $1", []string{long, "v"}, "UPDATE 0"},
		{"delete from regions.work where key = $1", []string{long}, "DELETE 0"},
		{"delete from regions.work where key = $1 returning value", []string{long}, "DELETE 0"},
		{"insert into regions.work (key, value, expires) values ('bound', '1', $1)", []string{"noon"}, `22007 invalid input syntax for type timestamp with time zone: "noon"; It is parameter $1`},
		{"insert into regions.work (key, value, expires) values ('bound', '1', 5)", nil, `42804 column "expires" is of type timestamp with time zone but expression is of type integer`},
		{"select count(*) from regions.work where key like 'bound%' or value = 'v'", nil, "SELECT 1"},
		{values, []string{most, "v"}, "INSERT 0 1"},
		{"update regions.work set value = 'vv' where key = $1", []string{most}, "23514 key has 65439 bytes and value 2"},
		{"delete from regions.work where key = $1", []string{most}, "DELETE 1"},
	} {
		if got := executed(t, c, step.statement, step.values...); !strings.HasPrefix(got, step.want) {
			t.Errorf("%.80s: %.200s, want %s", step.statement, got, step.want)
		}
	}
	if n, err := rowsOf(t, c, "select count(*) from regions.work where key like 'bound%'"); err != nil || string(n[0][0]) != "0" {
		t.Errorf("%s rows were inserted, %v", n, err)
	}
	g.changesInTime(t, c, insert+strings.ReplaceAll(rows(sql.MaxChanges), "do nothing", "(key) do update set value = excluded.value"))
}

func series(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	return strings.Join(keys, ",")
}

// changesInTime: the time of a statement is that of all its changes, and what was made of them is told.
func (g *grid) changesInTime(t *testing.T, c *pgconn.PgConn, put string) {
	set := func(timeout string) {
		if _, err := rowsOf(t, c, "set statement_timeout to '"+timeout+"'; set ordergrid.linearizable to on"); err != nil {
			t.Fatal(err)
		}
	}
	set("2ms")
	if got := executed(t, c, "update regions.work set value = 'x' where key = any($1)", "{"+series(sql.MaxChanges)+"}"); !strings.HasPrefix(got, "57014 canceling statement due to statement timeout") {
		t.Errorf("1,000 reads in 2 ms: %s", got)
	}
	set("20ms")
	got := executed(t, c, put)
	set("0")
	there, err := rowsOf(t, c, "select count(*) from regions.work where key like 'bound%'")
	if err != nil {
		t.Fatal(err)
	}
	var made, n int
	_, _ = fmt.Sscan(string(there[0][0]), &n)
	switch {
	case strings.HasPrefix(got, "08007"): // some were made, or the first was sent
		_, _ = fmt.Sscanf(got, "08007 %d of 1000 changes were made", &made)
	case !strings.HasPrefix(got, "57014"):
		t.Errorf("1,000 changes in 20 ms: %s", got)
	}
	if n != made && n != made+1 || n == sql.MaxChanges {
		t.Errorf("%d rows are there, and it was told: %s", n, got)
	}
}

// changesPrepared: a statement that is prepared is made by the clock, and in the zone, of when it is executed.
func (g *grid) changesPrepared(t *testing.T) {
	c := mustConnect(t, g.writable(t))
	do := func(text string) string {
		t.Helper()
		got := told(t, c, text)
		if len(got) == 5 { // a SQLSTATE
			t.Fatalf("%s: %s", text, got)
		}
		return got
	}
	run := func(name string) *pgconn.Result {
		t.Helper()
		r := c.ExecPrepared(t.Context(), name, nil, nil, nil).Read()
		if r.Err != nil {
			t.Fatalf("%s: %v", name, r.Err)
		}
		return r
	}
	do("set ordergrid.linearizable to on")
	for name, text := range map[string]string{
		"keep":   "update regions.work set value = '2' where key = 'clock'",
		"renew":  "update regions.work set expires = now() + interval '1 hour' where key = 'clock'",
		"insert": "insert into regions.work (key, value, expires) values ('zone', '{\"at\":\"2096-11-21 10:00\"}', '2096-11-21 10:00')",
		"set":    "update regions.work set value = (value->>'at')::timestamptz::text where key = 'zone'",
		"where":  "delete from regions.work where key = 'zone' and value::timestamptz = '2096-11-21 10:00'",
		"select": "select (value->>'at')::timestamptz from regions.work where key = 'zone'",
	} {
		if _, err := c.Prepare(t.Context(), name, text, nil); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	// A value ends when it would have ended: not later by the time between preparing and executing.
	began := time.Now()
	do("insert into regions.work (key, value, expires) values ('clock', '1', now() + interval '1 hour')")
	slow := time.Since(began) // an end is as much later as the statement is under way
	ends := func() time.Time {
		t.Helper()
		rows, err := rowsOf(t, c, "select expires from regions.work where key = 'clock'")
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		at, err := time.Parse("2006-01-02 15:04:05.999999-07", string(rows[0][0]))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := ends()
	const wait = 1500 * time.Millisecond
	time.Sleep(wait)
	began = time.Now()
	run("keep")
	slow += time.Since(began)
	if later := ends().Sub(first); later.Abs() > wait/2+slow {
		t.Errorf("an UPDATE of the value moved its end by %s", later)
	}
	run("renew")
	if later := ends().Sub(first); later < wait/2-slow {
		t.Errorf("now() in an UPDATE moved the end by %s, want %s or more", later, wait)
	}
	do("delete from regions.work where key = 'clock'")
	// Texts are times in the zone that is set when they are looked at.
	do("set timezone to 'Asia/Riyadh'") // +03
	run("insert")
	if got := do("select expires from regions.work where key = 'zone'"); !strings.HasPrefix(got, "SELECT 1 2096-11-21 10:0") || !strings.HasSuffix(got, "+03") {
		t.Errorf("it ends %s", got)
	}
	if got := string(run("select").Rows[0][0]); got != "2096-11-21 10:00:00+03" {
		t.Errorf("a field that is a time: %s", got)
	}
	run("set")
	if got := do("select value from regions.work where key = 'zone'"); got != "SELECT 1 2096-11-21 10:00:00+03" {
		t.Errorf("a value that is made of a time: %s", got)
	}
	if got := run("where").CommandTag.String(); got != "DELETE 1" {
		t.Errorf("a condition on a time: %s", got)
	}
}
