package published

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func load(t *testing.T) *Data {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The best-known figures, from the reports' summaries.
func TestCellsKnownByHeart(t *testing.T) {
	d := load(t)
	for _, c := range []struct {
		table  string
		row    float64
		column string
		want   float64
	}{
		{"3-1", 6000, "mean_us", 987},
		{"3-2", 6000, "mean_us", 519},
		{"3-4", 18000, "mean_us", 1017},
		{"3-5", 12000, "p95_us", 19706},
		{"A-2srv-S2E", 6000, "median_us", 275},
		{"A-2srv-C2E-AB", 100, "B_run2_mean_us", 294},
		{"3-3", 6000, "mean_6srv_us", 4125},
	} {
		got, ok := d.Cell("stac", c.table, c.row, c.column)
		if !ok || got.Value != c.want || got.Unit != "us" {
			t.Errorf("table %s row %v column %s: got %+v, want %v us", c.table, c.row, c.column, got, c.want)
		}
	}
}

func TestCellAbsent(t *testing.T) {
	d := load(t)
	for _, c := range []struct {
		report, table string
		row           float64
		column        string
	}{
		{"stac", "3-2", 500, "mean_us"}, {"stac", "3-2", 2000, "p99_us"}, {"stac", "9-9", 1, "x"}, {"unknown", "3-1", 200, "mean_us"},
	} {
		if got, ok := d.Cell(c.report, c.table, c.row, c.column); ok {
			t.Errorf("%+v: got %+v, want none", c, got)
		}
	}
}

func TestDiscrepanciesReachTheirCells(t *testing.T) {
	d := load(t)
	c, _ := d.Cell("stac", "A-2srv-S2E", 200, "mean_us")
	if !c.DoNotJudge || len(c.Notes) != 1 {
		t.Errorf("send-to-end at 200 must carry its note and not be judged: %+v", c)
	}
	for _, row := range []float64{500, 6000} {
		if c, _ := d.Cell("stac", "A-2srv-S2E", row, "mean_us"); c.DoNotJudge || c.Notes != nil {
			t.Errorf("row %v is not in dispute: %+v", row, c)
		}
	}
}

func TestScenarioParams(t *testing.T) {
	d := load(t)
	s, ok := d.Scenario("stac-pair")
	if !ok {
		t.Fatal("no stac-pair")
	}
	exact, scaled, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	if exact.Probes != 2 || exact.WarmupS != 30 || exact.MeasureS != 600 || len(exact.RatesPerProbe) != 9 {
		t.Errorf("exact: %+v", exact)
	}
	if scaled.Probes != 2 || scaled.Threads != 4 || scaled.MeasureS != 8 || fmt.Sprint(scaled.RatesPerProbe) != "[100 250 500 1000 2000]" {
		t.Errorf("scaled inherits wrongly: %+v", scaled)
	}
	if other, _ := d.Scenario("bar-load"); other.IsOrderScenario() {
		t.Error("bar-load is not an order scenario")
	} else if _, _, err := other.Params(); err == nil {
		t.Error("Params of bar-load must fail")
	}
}

func TestParseRefusesDamage(t *testing.T) {
	read := func(name string) []byte {
		b, err := files.ReadFile("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tables, scenarios, notes := read("published.json"), read("scenarios.json"), read("discrepancies.json")
	replace := func(b []byte, old, repl string) []byte {
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("test is stale: %q not in the data", old)
		}
		return bytes.Replace(b, []byte(old), []byte(repl), 1)
	}
	for name, c := range map[string]struct {
		tables, scenarios, notes []byte
		want                     string
	}{
		"truncated":              {tables[:len(tables)/2], scenarios, notes, "published.json"},
		"second document":        {append(bytes.Clone(tables), "{}"...), scenarios, notes, "after the end"},
		"unknown field":          {replace(tables, `"title":`, `"titel":`), scenarios, notes, "titel"},
		"boolean cell":           {replace(tables, `"mean_us": 285`, `"mean_us": true`), scenarios, notes, "want a number"},
		"renamed column":         {replace(tables, `"mean_us": 285`, `"mean_ms": 285`), scenarios, notes, "mean_us"},
		"repeated row":           {replace(tables, `"total_rate_ops": 500`, `"total_rate_ops": 200`), scenarios, notes, "repeated"},
		"unknown report":         {replace(tables, `"report": "stac"`, `"report": "stack"`), scenarios, notes, "stack"},
		"falling rates":          {tables, replace(scenarios, "2000,", "9000,"), notes, "rising"},
		"missing table":          {tables, replace(scenarios, `"3-2"`, `"3-9"`), notes, "3-9"},
		"unknown scenario key":   {tables, replace(scenarios, `"warmup_s"`, `"warmup"`), notes, "warmup"},
		"write without a figure": {replace(tables, `"replication": "sync",`, `"replication": "async",`), scenarios, notes, "no latency of a write"},
		"another share of best":  {tables, replace(scenarios, `"best_share": 0.8`, `"best_share": 0.9`), notes, "best_share 0.8"},
		"another record":         {tables, replace(scenarios, `"8field"`, `"9field"`), notes, "needs objects 8field and empty"},
		"lost overhead":          {tables, scenarios, replace(notes, `\"overhead of 130%\"`, "Something else"), "no GigaSpaces finding"},
		"lost discrepancy":       {tables, scenarios, replace(notes, "Send-to-end at 200 total", "Something else"), "no STAC finding"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(c.tables, c.scenarios, c.notes)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{"1", "-0.5", `"x"`, "null", "true", "[1]", "1e999", "{}", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		var v Value
		if v.UnmarshalJSON(b) == nil {
			_ = v.String()
		}
	})
}
