package results

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestMarkdown(t *testing.T) {
	_, tables, _ := sample(t)
	rows := append(tables[0], tables[1]...)
	c := find(t, "^tls/pingpong$")
	for i, name := range []string{"grid", "grid-net", "grid-tls"} {
		rows = append(rows, NewRow(c, name, []Round{measured(int64(60+30*i), 5000, 300*time.Millisecond, false)}, 1, false))
	}
	rows = append(rows, Row{Case: "growth/held-10k-get", System: "grid"})
	run := Run{Machine: "a CPU, 2 cores", Date: "2026-11-21T13:40:00Z", Command: "go run ./hack/bench --cases '^lo/'", Before: 0.07}
	var out bytes.Buffer
	if err := Markdown(&out, &run, rows); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/bench.md", out.Bytes())
	for l := range strings.Lines(out.String()) { // all lines of a table have its columns
		if strings.HasPrefix(l, "|") && strings.Count(l, "|") != 13 {
			t.Errorf("%d columns: %s", strings.Count(l, "|")-1, l)
		}
	}
	if err := Markdown(&out, &run, []Row{{Case: "nosuch", System: "grid"}}); err == nil {
		t.Error("a case of another version was accepted")
	}
	dir := t.TempDir()
	if _, err := ReadRun(filepath.Join(dir, "bench.json")); err == nil || !strings.Contains(err.Error(), RunFile) {
		t.Errorf("no run.json: %v", err)
	}
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRun(filepath.Join(dir, "bench.json")); err != nil || got != run {
		t.Errorf("%+v, %v", got, err)
	}
}
