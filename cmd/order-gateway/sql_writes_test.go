package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

var sqlServedAt = regexp.MustCompile(`SQL is served" address=(\S+)`)

// startSQL starts the program with the listener for SQL alone; its address.
func startSQL(t *testing.T, g *testgrid.Grid, more ...string) string {
	t.Helper()
	args := append([]string{"--endpoint", strings.Join(g.Endpoints, ","), "--postgresql", "127.0.0.1:0", "--postgresql-insecure-plain"}, more...)
	return startProcess(t, sqlServedAt, args...).addr
}

// Without TLS a listener takes no changes of regions, unless --postgresql-insecure-writes says so; clients are told which
// it is when they connect.
func TestInsecureWritesAreAskedFor(t *testing.T) {
	regions := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(regions, []byte("memory: 64Mi\nregions: [{name: work}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Run(t, "--", "--regions", regions)
	for _, c := range []struct {
		flags    []string
		readOnly string
		want     string
	}{
		{nil, "on", "25006"},
		{[]string{"--postgresql-insecure-writes"}, "off", "INSERT 0 1"},
		{[]string{"--postgresql-insecure-writes=false"}, "on", "25006"},
	} {
		db, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://desk@%s/grid?sslmode=disable", startSQL(t, g, c.flags...)))
		if err != nil {
			t.Fatal(err)
		}
		if got := db.ParameterStatus("default_transaction_read_only"); got != c.readOnly {
			t.Errorf("%v: default_transaction_read_only is %q, want %q", c.flags, got, c.readOnly)
		}
		a := db.ExecParams(t.Context(), "insert into regions.work values ('a', '1')", nil, nil, nil, nil).Read()
		got := a.CommandTag.String()
		var e *pgconn.PgError
		if errors.As(a.Err, &e) {
			got = e.Code
		}
		if got != c.want {
			t.Errorf("%v: %s (%v), want %s", c.flags, got, a.Err, c.want)
		}
		_ = db.Close(context.Background()) // its gateway ends with the test
	}
}
