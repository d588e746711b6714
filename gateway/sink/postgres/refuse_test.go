package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
	"github.com/ordergrid/ordergrid/internal/pki"
)

func tryOpen(t *testing.T, o postgres.Options) error {
	t.Helper()
	target, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := target.Open(t.Context(), 0)
	if err == nil {
		err = w.Close()
	}
	return err
}

// permanent checks that an error is a permanent one with these parts in it, and without any secret.
func permanent(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	var p *sink.PermanentError
	if !errors.As(err, &p) || p.Remedy == "" {
		t.Errorf("%s: %v, want a permanent error with a remedy", name, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", name, err, part)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: the password is in %v", name, err)
	}
}

// TestRefusals: what a retry does not mend, and the remedy.
func TestRefusals(t *testing.T) {
	p := server(t, downstream.PostgresOptions{})
	o := options(t, p)
	permanent(t, "no schema", tryOpen(t, o), "database postgres has no schema ordergrid", "grid-sink postgres migrate")
	if _, _, err := postgres.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	at := func(url string) postgres.Options {
		o := o
		o.Connection = postgres.Connection{URLFile: file(t, url)}
		return o
	}
	permanent(t, "password", tryOpen(t, at(p.URL("postgres", "hunter2", "postgres", "sslmode=disable"))), "password authentication failed", "28P01", "correct the password")
	permanent(t, "database", tryOpen(t, at(p.URL("postgres", p.Password, "elsewhere", "sslmode=disable"))), "elsewhere", "create the database")
	permanent(t, "connection string", tryOpen(t, at("postgres://postgres:hunter2@[::1/postgres")), "cannot be read", "percent-encoded")
	permanent(t, "no TLS there, verify-full by default", tryOpen(t, at(p.URL("postgres", p.Password, "postgres"))), "refused TLS", "switch TLS on")
	gone := o
	gone.Connection.URLFile = filepath.Join(t.TempDir(), "none")
	permanent(t, "no file", tryOpen(t, gone), "none", "mount the secret")

	for _, test := range []struct{ name, change, undo, want string }{
		{"an earlier version", "DELETE FROM ordergrid.schema_version WHERE version = 2", "INSERT INTO ordergrid.schema_version VALUES (2)", "has version 1, this program writes version 2; run: grid-sink postgres migrate"},
		{"a later version", "INSERT INTO ordergrid.schema_version VALUES (99)", "DELETE FROM ordergrid.schema_version WHERE version = 99", "has version 99, this program writes version 2; use the release"},
		{"no column", "ALTER TABLE ordergrid.orders RENAME account TO acct", "ALTER TABLE ordergrid.orders RENAME acct TO account", "ordergrid.orders has no column account (text)"},
		{"another type", "ALTER TABLE ordergrid.orders ALTER price TYPE float8", "ALTER TABLE ordergrid.orders ALTER price TYPE numeric", "ordergrid.orders has column price of type double precision, allowed: numeric"},
		{"one more", "ALTER TABLE ordergrid.orders ADD desk text NOT NULL", "ALTER TABLE ordergrid.orders DROP desk", "ordergrid.orders has another column desk (text) that needs a value"},
		{"no fence", "ALTER TABLE ordergrid.fence RENAME TO hedge", "ALTER TABLE ordergrid.hedge RENAME TO fence", "ordergrid.fence does not exist"},
		{"not logged", "ALTER TABLE ordergrid.others SET UNLOGGED", "ALTER TABLE ordergrid.others SET LOGGED", "ordergrid.others is unlogged"},
	} {
		if _, err := p.PSQL(t.Context(), test.change); err != nil {
			t.Fatal(err)
		}
		permanent(t, test.name, tryOpen(t, o), test.want)
		if _, err := p.PSQL(t.Context(), test.undo); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.PSQL(t.Context(), "ALTER TABLE ordergrid.orders ADD note text"); err != nil {
		t.Fatal(err)
	}
	if err := tryOpen(t, o); err != nil {
		t.Errorf("with a further column that needs no value: %v", err)
	}
}

// TestContentStays: a sink of executions alone does not go on behind one of orders, nor the other way round. That of before
// is not ended by it.
func TestContentStays(t *testing.T) {
	p, both := migrated(t)
	both.Executions = true
	alone := both
	alone.OnlyExecutions = true
	batch := func(s *source) *sink.Batch {
		b := s.next(10)
		b.Executions = []client.Executed{{Execution: client.Execution{Entry: b.Through.Seq, N: 1, Kind: client.ExecAccepted}, Received: begin}}
		return b
	}
	for _, c := range []struct {
		name          string
		before, after postgres.Options
		want          string
	}{
		{"orders before", both, alone, "the sink wrote 8 orders of p0, and is to write executions alone now: there would be a gap"},
		{"executions alone before", alone, both, "the sink wrote executions of p0 alone, and is to write orders now: there would be a gap"},
	} {
		w, s := open(t, c.before), newSource()
		if err := w.Write(t.Context(), batch(s)); err != nil {
			t.Fatal(err)
		}
		permanent(t, c.name, tryOpen(t, c.after), c.want, "a schema of its own")
		if err := w.Write(t.Context(), batch(s)); err != nil {
			t.Errorf("%s: the writer in force: %v", c.name, err)
		}
		if err := tryOpen(t, c.before); err != nil {
			t.Errorf("%s: as before: %v", c.name, err)
		}
		wrong := s.next(10)
		wrong.Executions = []client.Executed{{Execution: client.Execution{Entry: wrong.Through.Seq + 1, N: 1}}}
		if err := open(t, c.before).Write(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "has an execution of entry 31") {
			t.Errorf("%s: an execution behind the batch: %v", c.name, err)
		}
		if _, err := p.PSQL(t.Context(), "TRUNCATE ordergrid.orders, ordergrid.executions, ordergrid.others, ordergrid.fence"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeastRights: the page's GRANTs are enough, and each is needed.
func TestLeastRights(t *testing.T) {
	p, o := migrated(t)
	sql := strings.ReplaceAll(pageSQL(t, "grants"), "'…'", "'hunter2'")
	if _, err := p.PSQL(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	owner := o
	o.Connection = postgres.Connection{Host: p.Host, Port: p.Port, Database: "postgres", User: "grid_sink", PasswordFile: file(t, "hunter2"), SSLMode: "disable"}
	w, s := open(t, o), newSource()
	if err := w.Write(t.Context(), s.next(100_000)); err != nil {
		t.Fatal(err)
	}
	prove(t, p, 100_000)
	const ready = "SELECT (SELECT count(*) FROM ordergrid.orders_default), to_regclass('ordergrid.orders_' || to_char((now() AT TIME ZONE 'UTC')::date + 6, 'YYYYMMDD')) IS NOT NULL"
	if got, err := p.PSQL(t.Context(), ready); got != "0|t" || err != nil {
		t.Errorf("orders in the default partition, a table six days ahead: %s (%v), want 0|t", got, err)
	}
	for _, right := range []struct{ what, want string }{
		{"INSERT ON ordergrid.orders", "INSERT on ordergrid.orders"},
		{"INSERT ON ordergrid.others", "INSERT on ordergrid.others"},
		{"UPDATE ON ordergrid.fence", "UPDATE on ordergrid.fence"},
		{"SELECT ON ordergrid.fence", "SELECT on ordergrid.fence"},
		{"SELECT ON ordergrid.schema_version", "SELECT on ordergrid.schema_version"},
		{"USAGE ON SCHEMA ordergrid", "USAGE on schema ordergrid"},
	} {
		if _, err := p.PSQL(t.Context(), "REVOKE "+right.what+" FROM grid_sink"); err != nil {
			t.Fatal(err)
		}
		permanent(t, "without "+right.what, tryOpen(t, o), "user grid_sink has no right "+right.want)
		if _, err := p.PSQL(t.Context(), "GRANT "+right.what+" TO grid_sink"); err != nil {
			t.Fatal(err)
		}
	}
	executions := o
	executions.Executions = true
	if err := tryOpen(t, executions); err != nil {
		t.Errorf("with executions: %v", err)
	}
	if _, err := p.PSQL(t.Context(), "REVOKE INSERT ON ordergrid.executions FROM grid_sink"); err != nil {
		t.Fatal(err)
	}
	permanent(t, "without INSERT ON ordergrid.executions", tryOpen(t, executions), "user grid_sink has no right INSERT on ordergrid.executions")
	if err := tryOpen(t, o); err != nil {
		t.Errorf("orders only, without the right to executions: %v", err)
	}
	w = open(t, o)
	if _, err := p.PSQL(t.Context(), "REVOKE INSERT ON ordergrid.orders FROM grid_sink"); err != nil {
		t.Fatal(err)
	}
	permanent(t, "INSERT taken while it writes", w.Write(t.Context(), s.next(100)), "permission denied", "42501", "grant it")
	if _, _, err := postgres.Migrate(t.Context(), owner); err != nil {
		t.Errorf("migrating again: %v", err)
	}
	o.Schema = "elsewhere"
	_, _, err := postgres.Migrate(t.Context(), o)
	permanent(t, "migration without CREATE", err, "permission denied")
}

// TestMigrate: several at once make one schema, and tables of others are left alone.
func TestMigrate(t *testing.T) {
	p := server(t, downstream.PostgresOptions{})
	o := options(t, p)
	var made int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			from, to, err := postgres.Migrate(t.Context(), o)
			if err != nil || to != postgres.SchemaVersion() {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if from == 0 {
				made++
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d made the schema, want 1", made)
	}
	if _, err := p.PSQL(t.Context(), "CREATE SCHEMA desk; CREATE TABLE desk.orders (n int)"); err != nil {
		t.Fatal(err)
	}
	o.Schema = "desk"
	_, _, err := postgres.Migrate(t.Context(), o)
	permanent(t, "tables of others", err, "schema desk has tables of another origin", "schema of its own")
	if left, err := p.PSQL(t.Context(), "SELECT count(*) FROM pg_class WHERE relnamespace = 'desk'::regnamespace"); left != "1" || err != nil {
		t.Errorf("a refused migration leaves %s relations (%v), want the one of before", left, err)
	}
}

// TestTLS: verify-full is what a connection string without sslmode means.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.Load(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Save(dir, "server", pki.Identity{User: "postgres", Names: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.Load(t.TempDir(), "other")
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.pem")
	if err := os.WriteFile(foreign, other.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	p := server(t, downstream.PostgresOptions{Cert: files.Cert, Key: files.Key})
	o := options(t, p)
	if _, _, err := postgres.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	at := func(host, parameters string) postgres.Options {
		url := strings.Replace(p.URL("postgres", p.Password, "postgres", parameters), "127.0.0.1", host, 1)
		return postgres.Options{Grid: grid, Connection: postgres.Connection{URLFile: file(t, url)}}
	}
	if err := tryOpen(t, at("localhost", "sslrootcert="+files.CA)); err != nil {
		t.Errorf("with the authority and the name: %v", err)
	}
	for name, text := range map[string]string{"a URL": strings.Replace(p.URL("postgres", p.Password, "postgres"), "127.0.0.1", "localhost", 1),
		"key and value": fmt.Sprintf("host=localhost port=%d user=postgres dbname=postgres password=%s", p.Port, p.Password)} {
		apart := postgres.Options{Grid: grid, Connection: postgres.Connection{URLFile: file(t, text), SSLRootCert: files.CA}}
		if err := tryOpen(t, apart); err != nil {
			t.Errorf("with the authority beside %s: %v", name, err)
		}
		apart.Connection.SSLRootCert = foreign
		permanent(t, name+" beside another authority", tryOpen(t, apart), "sslrootcert")
	}
	flags := postgres.Options{Grid: grid, Connection: postgres.Connection{Host: "localhost", Port: p.Port, Database: "postgres", User: "postgres", PasswordFile: file(t, p.Password), SSLRootCert: files.CA}}
	if err := tryOpen(t, flags); err != nil {
		t.Errorf("by single parameters: %v", err)
	}
	permanent(t, "another name", tryOpen(t, at("127.0.0.1", "sslrootcert="+files.CA)), "127.0.0.1", "use a host name")
	permanent(t, "another authority", tryOpen(t, at("localhost", "sslrootcert="+foreign)), "unknown authority", "sslrootcert")
}

// TestRotation: a password that was changed is read from the file at the next connection.
func TestRotation(t *testing.T) {
	p, o := migrated(t)
	o.Connection = postgres.Connection{Host: p.Host, Port: p.Port, Database: "postgres", User: "postgres", PasswordFile: file(t, p.Password), SSLMode: "disable"}
	target, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.PSQL(t.Context(), "ALTER USER postgres PASSWORD 'it''s \\ new'"); err != nil {
		t.Fatal(err)
	}
	_, err = target.Open(t.Context(), 0)
	permanent(t, "the old password", err, "28P01")
	if err := os.WriteFile(o.Connection.PasswordFile, []byte("it's \\ new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := target.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestOptions: what New refuses.
func TestOptions(t *testing.T) {
	good := postgres.Options{Grid: grid, Connection: postgres.Connection{URLFile: "url"}}
	for want, change := range map[string]func(*postgres.Options){
		"the grid has no name":  func(o *postgres.Options) { o.Grid = "" },
		`schema is "Orders"`:    func(o *postgres.Options) { o.Schema = "Orders" },
		`schema is "pg_orders"`: func(o *postgres.Options) { o.Schema = "pg_orders" },
		"days ahead are 1000":   func(o *postgres.Options) { o.DaysAhead = 1000 },
		"write time-out is 1ms": func(o *postgres.Options) { o.WriteTimeout = time.Millisecond },
		"one of both":           func(o *postgres.Options) { o.Connection.Host = "db" },
		`user ""`:               func(o *postgres.Options) { o.Connection = postgres.Connection{Host: "db", Database: "x"} },
		"allowed: verify-full": func(o *postgres.Options) {
			o.Connection = postgres.Connection{Host: "db", Database: "x", User: "y", SSLMode: "on"}
		},
		"port is 70000, allowed: ": func(o *postgres.Options) {
			o.Connection = postgres.Connection{Host: "db", Database: "x", User: "y", Port: 70000}
		},
	} {
		o := good
		change(&o)
		if _, err := postgres.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := postgres.New(good); err != nil {
		t.Error(err)
	}
}
