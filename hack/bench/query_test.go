package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/results"
)

// asked runs the command about few orders.
func asked(t *testing.T, more ...string) (*results.Queries, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user of PostgreSQL has to enter it
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	var out bytes.Buffer
	args := append([]string{"query", "--orders", "2000", "--warmup", "0s", "--duration", "0s", "--gate", "off", "--out", filepath.Join(dir, "out")}, more...)
	// A busy machine is no failure here: figures are not tested.
	if err := command(t.Context(), args, &out); err != nil && !errors.Is(err, errEnvironment) {
		t.Fatalf("%v\n%s", err, &out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out", "query.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table results.Queries
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ordergrid-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left := descendants(os.Getpid()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	md, err := os.ReadFile(filepath.Join(dir, "out", "query.md"))
	if err != nil || !strings.Contains(string(md), "| point get | ") {
		t.Errorf("%v\n%s", err, md)
	}
	return &table, out.String()
}

// The grid is asked by its own client and through SQL, changed, and ended.
func TestQuery(t *testing.T) {
	table, text := asked(t, "--systems", "^grid$")
	if len(table.Rows) != 13 || table.Orders != 2000 || len(table.Goals) != 9 {
		t.Errorf("%+v\n%s", table, text)
	}
	for _, want := range []string{"memory: grid: at most ", "goal of the grid", "grid-sql"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Every peer answers every question as the grid does.
func TestQueryPeers(t *testing.T) {
	asks, err := peers.Choose(peers.All, "")
	if err != nil {
		t.Fatal(err)
	}
	if m := asks[0].Missing(); m != "" || os.Getenv("ORDERGRID_PEERS") == "" {
		t.Skipf("set ORDERGRID_PEERS=1 to have Maven install the peers: %s", m)
	}
	table, text := asked(t)
	if want := 13 + 8*(4-len(table.Skipped)); len(table.Rows) != want {
		t.Errorf("%d rows, wanted %d\n%s", len(table.Rows), want, text)
	}
	if table.Failed() != nil {
		t.Errorf("%v\n%s", table.Failed(), text)
	}
}
