package sql

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// TestClients runs the clients people have before one grid.
func TestClients(t *testing.T) {
	w := start(t, 2000, "--postgresql-insecure-writes")
	settle(t, w)
	t.Run("psql", w.psql)
	t.Run("pgx", w.pgx)
	t.Run("python", w.python)
	t.Run("pgjdbc", w.java)
}

// settle waits until every copy has all orders in its view: clients here ask without
// ordergrid.linearizable.
func settle(t *testing.T, w *world) {
	t.Helper()
	c := open(t, w.dsn())
	for same := 0; same < 20; {
		var n int
		if err := c.QueryRow(t.Context(), "select count(*) from orders").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if same++; n != w.orders {
			same = 0
		}
	}
}

func (w *world) psql(t *testing.T) {
	if _, err := exec.LookPath("psql"); err != nil {
		missing(t, fmt.Errorf("no psql on this machine (Debian: apt-get install postgresql-client): %w", err))
	}
	for _, c := range []struct{ command, want string }{
		{`\dt`, "public | orders | table | ordergrid"}, {`\d`, "public | orders | table"}, {`\dt orders`, "public | orders"}, {`\dt public.*`, "public | orders"},
		{`\d orders`, "price        | numeric"}, {`\d+ orders`, "received     | timestamp with time zone |           | not null"}, {`\d+`, "permanent"},
		{`\d others`, "Did not find any relation"}, {`\dv`, "Did not find any relations"}, {`\di`, "Did not find any"}, {`\ds`, "Did not find any"},
		{`\l`, "grid | ordergrid | UTF8"}, {`\dn`, "public"}, {`\du`, "ordergrid"}, {`\dp`, "orders"}, {`\df`, "(0 rows)"}, {`\dT`, "(0 rows)"}, {`\conninfo`, `database "grid"`},
		{"select count(*) from orders", "2000"},
		{"select symbol from orders where symbol = 'IBM' limit 1", "IBM"},
		{"select * from orders, orders", "a cross product of tables: not supported"},
		{"select nothing from orders", "LINE 1: select nothing from orders\n               ^"},
		{"explain select * from orders where clordid='C000001'", "partition p1"},
		{`insert into regions.positions values ('psql', '{"qty": 5}') on conflict (key) do update set value = excluded.value`, "INSERT 0 1"},
		{"select (value->>'qty')::int * 1 from regions.positions", "operator *: not supported"},
		{"select (value->>'qty')::int + 1 as n from regions.positions where key = 'psql'", "6"},
		{"insert into regions.positions values ('psql', 'x')", `duplicate key value violates unique constraint "positions_pkey"`},
		{"delete from regions.positions where key = 'psql' returning value", "DELETE 1"},
	} {
		out, _ := exec.CommandContext(t.Context(), "psql", "-X", w.dsn(), "-c", c.command).CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s:\n%s\nexpected %q in it", c.command, out, c.want)
		}
	}
}

func (w *world) pgx(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		c := open(t, w.dsn())
		for range 3 {
			var seq int64
			var id string
			var price *float64
			row := c.QueryRow(t.Context(), "select seq, clordid, price::float8 from orders where clordid = $1 and seq between $2 and $3", "C000007", 0, int64(1)<<40)
			if err := row.Scan(&seq, &id, &price); err != nil || id != "C000007" {
				t.Errorf("%v: %d %q %v", mode, seq, id, err)
			}
		}
		b := &pgx.Batch{}
		for i := range 20 {
			b.Queue("select count(*) from orders where clordid = $1", fmt.Sprintf("C%06d", i))
		}
		r := c.SendBatch(t.Context(), b)
		for range 20 {
			var n int
			if err := r.QueryRow().Scan(&n); err != nil || n != 1 {
				t.Errorf("%v: in a batch: %d, %v", mode, n, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		tag, err := c.Exec(t.Context(), "insert into regions.positions (key, value) values ($1, $2)", "pgx", `{"qty": 7}`)
		if err != nil || tag.String() != "INSERT 0 1" {
			t.Errorf("%v: insert: %s, %v", mode, tag, err)
		}
		var qty int64
		if err := c.QueryRow(t.Context(), "update regions.positions set value = $2 where key = $1 and (value->>'qty')::bigint = $3 returning (value->>'qty')::bigint", "pgx", `{"qty": 8}`, int64(7)).Scan(&qty); err != nil || qty != 8 {
			t.Errorf("%v: update: %d, %v", mode, qty, err)
		}
		var taken string
		if err := c.QueryRow(t.Context(), "delete from regions.positions where key = $1 returning value", "pgx").Scan(&taken); err != nil || taken != `{"qty": 8}` {
			t.Errorf("%v: delete: %q, %v", mode, taken, err)
		}
		if tx, err := c.Begin(t.Context()); err != nil {
			t.Error(err)
		} else {
			var e *pgconn.PgError
			if _, err := tx.Exec(t.Context(), "delete from regions.positions where key = 'pgx'"); !errors.As(err, &e) || e.Code != "25001" {
				t.Errorf("%v: in a transaction: %v", mode, err)
			}
			_ = tx.Rollback(t.Context()) // it changed nothing
		}
		rows, err := c.Query(t.Context(), "select clordid from orders where symbol = any($1)", []string{"IBM", "Z"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(got) < 100 {
			t.Errorf("%v: %d rows, %v", mode, len(got), err)
		}
	}
}

// tools is a directory for what is fetched.
func tools(t *testing.T) string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "out", "sql")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (w *world) python(t *testing.T) {
	venv := filepath.Join(tools(t), "venv")
	python := filepath.Join(venv, "bin", "python")
	for _, cmd := range [][]string{{"python3", "-m", "venv", venv}, {python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", "testdata/requirements.txt"}} {
		if out, err := exec.CommandContext(t.Context(), cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			missing(t, fmt.Errorf("%s: %w\n%s", strings.Join(cmd, " "), err, out))
		}
	}
	host, port, err := net.SplitHostPort(w.address)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "testdata/clients.py", host, port, strconv.Itoa(w.orders)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func (w *world) java(t *testing.T) {
	list := filepath.Join(tools(t), "pgjdbc.classpath")
	for _, program := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "mvn", "-B", "-q", "-f", "testdata/pom.xml", "dependency:build-classpath", "-Dmdep.outputFile="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, fmt.Errorf("mvn dependency:build-classpath: %w\n%s", err, out))
	}
	classpath, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-cp", strings.TrimSpace(string(classpath)), "testdata/Client.java",
		"jdbc:postgresql://"+w.address+"/grid?user=desk", strconv.Itoa(w.orders))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
