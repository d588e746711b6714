package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// change makes a random statement that changes a region, by its keys.
func (a *asker) change() string {
	a.args = nil
	key := col{"key", "text", []string{"a", "b", "c", "d", "e", "f", "g", "é", "A"}}
	value := col{"value", "text", []string{"1", "2", "17", `{"q":1}`, `{"q":2,"s":"x"}`, "", "text"}}
	returning := pick(a.r, []string{"", "", " RETURNING key", " RETURNING key, value", " RETURNING value AS v, 1", " RETURNING nothing"})
	table := "regions.positions"
	switch a.r.IntN(6) {
	case 0:
		return "INSERT INTO " + table + " (key, value) VALUES (" + a.constant(key) + ", " + a.constant(value) + ")" + returning
	case 1:
		s := pick(a.r, []string{"(value, key)", "(key, value)", "", "(key)", "(key, value, nothing)", "(key, key)"})
		x, y := a.constant(key), a.constant(value)
		if strings.HasPrefix(s, "(value") {
			x, y = y, x
		}
		return "INSERT INTO " + table + " " + s + " VALUES (" + x + ", " + y + ")" + pick(a.r, []string{"", " ON CONFLICT DO NOTHING", " ON CONFLICT (key) DO NOTHING", " ON CONFLICT (key) DO UPDATE SET value = excluded.value", " ON CONFLICT (value) DO NOTHING"}) + returning
	case 2:
		var rows []string
		for range 1 + a.r.IntN(3) {
			rows = append(rows, "("+a.constant(key)+", "+a.constant(value)+")")
		}
		return "INSERT INTO " + table + " (key, value) VALUES " + strings.Join(rows, ", ") + pick(a.r, []string{" ON CONFLICT DO NOTHING", " ON CONFLICT (key) DO UPDATE SET value = excluded.value"}) + returning
	}
	deletes, set := a.r.IntN(2) == 0, ""
	if !deletes {
		set = pick(a.r, []string{"value = ", "value = ", "value = ", "value = key, value = ", "nothing = "})
		if rest := pick(a.r, []string{"", "key", "value::text", "NULL"}); rest != "" {
			set += rest
		} else {
			set += a.constant(value)
		}
	}
	where := ""
	if a.r.IntN(3) > 0 {
		where = "key = " + a.constant(key)
	} else {
		where = "key IN (" + a.constant(key) + ", " + a.constant(key) + ", " + a.constant(key) + ")"
	}
	where += pick(a.r, []string{"", "", " AND value <> '1'", " AND value LIKE '{%'", " AND expires IS NULL", " AND value = value", " AND false", " AND (value = '17' OR value > 'a')", " AND nothing = 1"})
	if deletes {
		return "DELETE FROM " + table + pick(a.r, []string{"", " AS x", " x"}) + " WHERE " + where + returning
	}
	return "UPDATE " + table + " SET " + set + " WHERE " + where + returning
}

// TestChangesAreThoseOfPostgreSQL makes the same random changes in both, one after the other, and compares tags, rows and
// SQLSTATEs, and in the end what is there.
func TestChangesAreThoseOfPostgreSQL(t *testing.T) {
	p := postgres(t)
	w := start(t, 1, "--postgresql-insecure-writes")
	seed := uint64(number("ORDERGRID_SEED", int(rand.Uint32())))
	t.Logf("ORDERGRID_SEED=%d", seed)
	ours, theirs := open(t, w.dsn()), open(t, p.Admin())
	if _, err := theirs.Exec(t.Context(), "create schema regions; create table regions.positions(key text primary key check (key <> ''), value text not null, version int8 default 1, expires timestamptz, partition int8 default 0)"); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Exec(t.Context(), "set ordergrid.linearizable to on"); err != nil {
		t.Fatal(err)
	}
	r, counts := rand.New(rand.NewPCG(seed, 9)), map[string]int{}
	for n := range number("ORDERGRID_SQL_QUESTIONS", 1500) {
		a := &asker{r: r, bind: n%2 == 1}
		statement := a.change()
		got, want := tell(t, ours, statement, a), tell(t, theirs, statement, a)
		counts[strings.Fields(want)[0]]++
		if got == "0A000" {
			t.Fatalf("%s %q: refused; PostgreSQL: %s", statement, a.args, want)
		}
		if got != want {
			t.Fatalf("%s %q:\n      %s\nPostgreSQL %s", statement, a.args, got, want)
		}
	}
	t.Log(counts)
	const all = "select key, value from regions.positions order by key collate \"C\""
	a := &asker{}
	if got, want := tell(t, ours, strings.Split(all, " collate")[0], a), tell(t, theirs, all, a); got != want {
		t.Errorf("what is there:\n      %s\nPostgreSQL %s", got, want)
	}
	for _, kind := range []string{"INSERT", "UPDATE", "DELETE", "23505", "23502"} {
		if counts[kind] < 20 {
			t.Errorf("%v: the statements test nothing", counts)
		}
	}
}

// tell is the tag and the rows that a change answers, or its SQLSTATE.
func tell(t *testing.T, c *pgx.Conn, statement string, a *asker) string {
	t.Helper()
	var result *pgconn.Result
	if a.bind {
		values := make([][]byte, len(a.args))
		for i := range a.args {
			values[i] = []byte(a.args[i])
		}
		result = c.PgConn().ExecParams(t.Context(), statement, values, nil, nil, nil).Read()
	} else {
		all, err := c.PgConn().Exec(t.Context(), statement).ReadAll()
		result = &pgconn.Result{Err: err}
		if err == nil {
			result = all[0]
		}
	}
	if result.Err != nil {
		e, ok := result.Err.(*pgconn.PgError)
		if !ok {
			t.Fatalf("%s %q: %v", statement, a.args, result.Err)
		}
		return e.Code
	}
	var rows []string
	for _, row := range result.Rows {
		rows = append(rows, fmt.Sprintf("%q", row))
	}
	slices.Sort(rows)
	return result.CommandTag.String() + " " + strings.Join(rows, " ")
}
