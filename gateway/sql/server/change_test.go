package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/client"
)

// writable is a server whose clients may change regions.
func (g *grid) writable(t *testing.T) *Server {
	t.Helper()
	return serve(t, Config{Open: true, OpenWrites: true, Grid: g.loader})
}

// told is the tag of a statement and its rows, or its SQLSTATE.
func told(t *testing.T, c *pgconn.PgConn, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all, err := c.Exec(ctx, text).ReadAll()
	if err != nil {
		return code(err)
	}
	last := all[len(all)-1]
	parts := []string{last.CommandTag.String()}
	for _, row := range last.Rows {
		var cells []string
		for _, v := range row {
			if v == nil {
				v = []byte("NULL")
			}
			cells = append(cells, string(v))
		}
		parts = append(parts, strings.Join(cells, "|"))
	}
	return strings.Join(parts, " ")
}

func (g *grid) changes(t *testing.T) {
	s := g.writable(t)
	c := mustConnect(t, s)
	if got := c.ParameterStatus("default_transaction_read_only"); got != "off" {
		t.Errorf("default_transaction_read_only is %q", got)
	}
	for _, step := range []struct{ statement, want string }{
		{"insert into regions.work values ('a', '1')", "INSERT 0 1"},
		{"insert into regions.work (value, key) values ('2', 'a')", "23505"},
		{"insert into regions.work (key, value) values ('a', '2'), ('b', '2') on conflict do nothing returning key", "INSERT 0 1 b"},
		{"insert into regions.work (key, value) values ('a', '3') on conflict (key) do update set value = excluded.value returning key, value, value || ''", "0A000"},
		{"insert into regions.work (key, value) values ('a', '{\"q\": 3}') on conflict (key) do update set value = excluded.value returning key, value->'q'", "INSERT 0 1 a|3"},
		{"insert into regions.work (key, value) values ('x', '1'), ('y', '1')", "0A000"},
		{"insert into regions.work (key, value) values ('x', '1'), ('x', '1') on conflict (key) do update set value = excluded.value", "21000"},
		{"insert into regions.work (key) values ('x')", "23502"},
		{"insert into regions.work (key, value) values ('', 'x')", "23514"},
		{"insert into regions.work (key, value, version) values ('x', 'x', 1)", "428C9"},
		{"insert into regions.work (key, value) values ('a', 'x') returning *", "0A000"},
		{"insert into regions.nowhere values ('a', 'x')", "42P01"},
		{"select count(*) from regions.work", "SELECT 1 2"},
		{"update regions.work set value = '5' where key = 'a' and version = 1", "UPDATE 0"},
		{"update regions.work set value = '5' where key in ('a', 'b', 'c') and value->>'q' = '3' returning key, value", "UPDATE 1 a|5"},
		{"update regions.work set value = (value::bigint + 1)::text where key = any('{a,b,c}') returning value", "UPDATE 2 6 3"},
		{"update regions.work set value = null where key = 'a'", "23502"},
		{"update regions.work set version = 3 where key = 'a'", "428C9"},
		{"update regions.work set value = 'x'", "0A000"},
		{"update regions.work set value = 'x' where key like 'a%'", "0A000"},
		{"update regions.work set value = 'x' where key = 'none'", "UPDATE 0"},
		{"update regions.work set value = 'x' where false", "UPDATE 0"},
		{"delete from regions.work where key = 'a' and value = '5' returning *", "DELETE 0"},
		{"delete from regions.work where key = 'a' returning key, value", "DELETE 1 a|6"},
		{"delete from regions.work where key = 'a' returning key, value", "DELETE 0"},
		{"delete from regions.work where key in ('a', 'b')", "DELETE 1"},
		{"insert into regions.work (key, value, expires) values ('e', '1', now() + interval '1 hour')", "INSERT 0 1"},
		{"update regions.work set value = '2' where key = 'e'", "UPDATE 1"},
		{"select key from regions.work where expires between now() + interval '59 minutes' and now() + interval '61 minutes'", "SELECT 1 e"},
		{"update regions.work set expires = null where key = 'e'", "UPDATE 1"},
		{"delete from regions.work where key = 'e' and version > 0 returning value, expires, partition = partition", "DELETE 1 2|NULL|t"},
		{"insert into orders values ('a')", "25006"}, {"delete from orders", "25006"},
		{"set default_transaction_read_only to on", "SET"}, {"insert into regions.work values ('z', '1')", "25006"},
		{"set session characteristics as transaction read write", "SET"}, {"insert into regions.work values ('z', '1')", "INSERT 0 1"},
		{"explain delete from regions.work where key = 'z'", "42601"},
	} {
		if _, err := rowsOf(t, c, "set ordergrid.linearizable to on"); err != nil {
			t.Fatal(err)
		}
		if got := told(t, c, step.statement); got != step.want {
			t.Errorf("%s: %s, want %s", step.statement, got, step.want)
		}
	}
	full := ""
	for i := 0; full == "" && i < 200; i++ {
		if got := told(t, c, fmt.Sprintf("insert into regions.tiny values ('%d', '%s')", i, strings.Repeat("v", 100))); got != "INSERT 0 1" {
			full = got
		}
	}
	if full != "53200" {
		t.Errorf("a region that is full: %q", full)
	}
	// What is changed in part is told so: the first rows are there.
	var e *pgconn.PgError
	_, err := rowsOf(t, c, "insert into regions.work values ('p1', '1') on conflict do nothing; ")
	if err != nil {
		t.Error(err)
	}
	_, err = rowsOf(t, c, "update regions.work set value = (value::bigint + 1)::text where key in ('p1', 'p2')")
	if err != nil {
		t.Error(err)
	}
	if got := told(t, c, "insert into regions.work values ('p2', 'no number')"); got != "INSERT 0 1" {
		t.Error(got)
	}
	_, err = rowsOf(t, c, "update regions.work set value = (value::bigint + 1)::text where key in ('p1', 'p2')")
	if !errors.As(err, &e) || e.Code != "08007" || !strings.Contains(e.Message, "1 of 2 changes were made") || !strings.Contains(e.Detail, "22P02") || !strings.Contains(e.Detail, `"p2"`) {
		t.Errorf("a statement whose second change fails: %v, %+v", err, e)
	}
	if got := told(t, c, "select value from regions.work where key = 'p1'"); got != "SELECT 1 3" {
		t.Errorf("what was changed: %s", got)
	}
}

// changesAlone: what PostgreSQL would roll back with others is refused before it is made.
func (g *grid) changesAlone(t *testing.T) {
	s := g.writable(t)
	c := mustConnect(t, s)
	const insert = "insert into regions.work values ('alone', '1')"
	for _, step := range []struct{ statement, want string }{
		{"begin; " + insert + "; commit", "25001"}, {insert + "; select 1", "25001"}, {"begin", "BEGIN"}, {insert, "25001"}, {"select 1", "25P02"}, {"rollback", "ROLLBACK"},
		{"select key from regions.work where key = 'alone'", "SELECT 0"},
	} {
		if got := told(t, c, step.statement); got != step.want {
			t.Errorf("%s: %s, want %s", step.statement, got, step.want)
		}
	}
	f, _ := front(t, s)
	send := func(want string, messages ...pgproto3.FrontendMessage) {
		t.Helper()
		for _, m := range messages {
			f.Send(m)
		}
		f.Send(&pgproto3.Sync{})
		if got := exchange1(t, f); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	parse := &pgproto3.Parse{Query: insert}
	send("12(25001)Z", parse, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Parse{Query: insert}, &pgproto3.Bind{}, &pgproto3.Execute{})
	send("12(25001)Z", parse, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
	send("12(25001)Z", parse, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Execute{})
	many := []pgproto3.FrontendMessage{parse, &pgproto3.Bind{}, &pgproto3.Execute{}}
	for range maxCloses + 1 {
		many = append(many, &pgproto3.Close{ObjectType: 'P'})
	}
	send("12(25001)Z", many...)
	send("12(25001)Z", parse, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S', Name: strings.Repeat("n", maxCloseNames+1)})
	if got := told(t, c, "select key from regions.work where key = 'alone'"); got != "SELECT 0" {
		t.Errorf("it was made: %s", got)
	}
	send("12d[SELECT 1]12[INSERT 0 1]3Z", &pgproto3.Parse{Query: "select 1"}, &pgproto3.Bind{}, &pgproto3.Execute{}, parse, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'P'})
	send("1t2[UPDATE 1]Z", &pgproto3.Parse{Name: "u", Query: "update regions.work set value = $2 where key = $1"}, &pgproto3.Describe{ObjectType: 'S', Name: "u"},
		&pgproto3.Bind{PreparedStatement: "u", Parameters: [][]byte{[]byte("alone"), []byte("2")}}, &pgproto3.Execute{})
	send("1tT2d[DELETE 1]Z", &pgproto3.Parse{Name: "d", Query: "delete from regions.work where key = $1 returning value"}, &pgproto3.Describe{ObjectType: 'S', Name: "d"},
		&pgproto3.Bind{PreparedStatement: "d", Parameters: [][]byte{[]byte("alone")}}, &pgproto3.Execute{})
	send("(0A000)Z", &pgproto3.Parse{Query: "delete from regions.work where version = 1 returning value"})
	send("1(0A000)Z", &pgproto3.Parse{Query: "delete from regions.work where value = $1"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("alone")}})
}

// A user who may write need not be permitted to read what is not read.
func (g *grid) whoMayChange(t *testing.T) {
	const pat, sue, wes, will = "pat sslmode=require password='secret of pat'", "sue sslmode=require password='secret of sue'", "wes sslmode=require password='secret of wes'", "will sslmode=require password='secret of will'"
	const writer, reader = "any sslmode=require password=token-of-writer", "any sslmode=require password=token-of-reader"
	put, update, take := "insert into regions.work values ('who', '1') on conflict (key) do update set value = excluded.value", "update regions.work set value = '2' where key = 'who'", "delete from regions.work where key = 'who' returning value"
	s := g.closed(t)
	for _, c := range []struct{ user, statement, want string }{
		{pat, put, "25006"}, {sue, put, "25006"}, {wes, put, "INSERT 0 1"}, {wes, update, "42501"}, {will, update, "UPDATE 1"}, {wes, take, "DELETE 1 2"},
		{writer, put, "INSERT 0 1"}, {writer, update, "UPDATE 1"}, {writer, take, "DELETE 1 2"}, {reader, put, "42501"}, {reader, take, "42501"},
	} {
		conn, err := connect(t, s, "user="+c.user)
		if err != nil {
			t.Fatalf("%s: %v", c.user, err)
		}
		if got := told(t, conn, c.statement); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.user, c.statement, got, c.want)
		}
	}
	// The gateway needs the permission too, and what it lacks is not put on the user.
	s = g.closedOf(t, g.dial(t, "reader"))
	conn, err := connect(t, s, "user="+will)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rowsOf(t, conn, put); code(err) != "42501" || !strings.Contains(err.Error(), "to the gateway, not to the user") {
		t.Errorf("a gateway that may not write: %v", err)
	}
}

// Raises of one value by many connections: none is lost, none is made twice.
func TestRaises(t *testing.T) {
	g := newGrid(t)
	s := g.writable(t)
	if got := told(t, mustConnect(t, s), "insert into regions.work values ('n', '0')"); got != "INSERT 0 1" {
		t.Fatal(got)
	}
	var wg sync.WaitGroup
	for range 6 {
		c := mustConnect(t, s)
		wg.Go(func() {
			for range 50 {
				if _, err := c.Exec(t.Context(), "update regions.work set value = (value::bigint + 1)::text where key = 'n'").ReadAll(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if e, err := g.loader.Region("work").Get(t.Context(), []byte("n")); err != nil || string(e.Value) != "300" {
		t.Errorf("raised to %s (%v), want 300", e.Value, err)
	}
}

// An answer that is lost is no failure: the client is told that the outcome is unknown.
func TestUnknownOutcome(t *testing.T) {
	c := &conn{}
	for _, x := range []struct {
		err  error
		want string
	}{
		{&client.UnknownOutcomeError{Cause: context.DeadlineExceeded}, "08007"}, {&client.UnknownOutcomeError{Cause: &client.RejectError{Code: 3}}, "08007"},
		{&client.NotSentError{Cause: errors.New("no primary")}, "57P03"}, {&readError{fmt.Errorf("%w", client.ErrUnavailable)}, "57P03"}, {errors.New("of another origin"), "08007"},
	} {
		if got := c.changeError(t.Context(), x.err, "work"); got.Code != x.want {
			t.Errorf("%v: %v, want %s", x.err, got, x.want)
		}
	}
}
