package cli

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/system"
)

// A scenario about a system leaves its table in all forms.
func TestSaveSystem(t *testing.T) {
	dir := t.TempDir()
	rep := &system.Report{Schema: system.Schema, Scenario: "sol-fanout", Mode: "quick", Shows: "fan-out, two <presets>", Columns: []string{"step", "clients"}, Rows: [][]string{{"high", "9,000"}},
		Control: "one was found", Verdict: system.Fail, Reasons: []string{"FAIL: too slow"}, Differences: []string{"orders in place of quotes"}, Machine: "two cores"}
	if err := saveSystem(dir, rep); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"table.txt":    {"9,000", "one was found", "FAIL"},
		"results.json": {`"9,000"`, system.Schema},
		"report.html":  {"<td", "9,000", "too slow", "orders in place of quotes", "one was found", "fan-out, two &lt;presets&gt;", "--scenario sol-fanout --dev --quick", "two cores"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s has no %q:\n%s", name, w, b)
			}
		}
	}
	f, err := os.Open(filepath.Join(dir, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	if rows, err := csv.NewReader(f).ReadAll(); err != nil || len(rows) != 2 || rows[1][1] != "9,000" {
		t.Errorf("%v, %v", rows, err)
	}
}
