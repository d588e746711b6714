package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and review the difference\ngot:\n%s", path, got)
	}
}

func TestGoldens(t *testing.T) {
	noisy := func(r *Result) {
		r.Conditions[0].ForeignPct = 31          // one of two runs: the other is valid
		r.Probes[0].Steps[1].CreatedRate = 200   // both runs of 250/s
		r.Probes[1].Steps[6].LateCreated = 1_000 // ...
		r.Probes[1].Steps[4].AckedRate = 1500
		r.Probes[1].Steps[9].AckedRate = 1500
	}
	broken := func(r *Result) {
		r.Probes[0].Steps[1].Ledger.Lost = 2
		r.Probes[0].Steps[1].Notes = []string{"order 17 was acknowledged at 30 and is not in the log"}
	}
	for name, c := range map[string]struct {
		scenario string
		o        scenario.Options
		change   func(*Result)
		text     TextOptions
	}{
		"single":          {scenario: "stac-single", o: scenario.Options{}},
		"pair-quick":      {scenario: "stac-pair", o: scenario.Options{Mode: scenario.Quick}, text: TextOptions{PerRun: true}},
		"pair-noisy":      {scenario: "stac-pair", change: noisy},
		"pair-incorrect":  {scenario: "stac-pair", o: scenario.Options{Mode: scenario.Quick}, change: broken},
		"scale":           {scenario: "stac-scale"},
		"scale-contended": {scenario: "stac-scale", change: func(r *Result) { busy(r, 95) }},
		"write":           {scenario: "gs-write", o: scenario.Options{Mode: scenario.Quick}},
		"write-half":      {scenario: "gs-write", o: scenario.Options{Mode: scenario.Quick, Replicas: 1}, change: noisyWrites},
		"pair-color":      {scenario: "stac-pair", o: scenario.Options{Mode: scenario.Quick}, text: TextOptions{Color: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, c.scenario, c.o)
			if c.change != nil {
				c.change(r)
			}
			rep := build(t, clone(t, r))
			var text bytes.Buffer
			if err := rep.Text(&text, c.text); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", text.Bytes())
			var table bytes.Buffer
			if err := rep.CSV(&table); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".csv", table.Bytes())
		})
	}
}

// noisyWrites leaves one of two rates without a valid run of eight fields.
func noisyWrites(r *Result) { r.Conditions[1].ForeignPct = 31 }

func busy(r *Result, pct float64) {
	for i := range r.Conditions {
		if r.Plan.Steps[r.Conditions[i].Step].Pairs > 1 {
			r.Conditions[i].BusyPct = pct
		}
	}
}

func TestReplicationCostGolden(t *testing.T) {
	single := build(t, fixture(t, "stac-single", scenario.Options{Mode: scenario.Quick}))
	pair := build(t, fixture(t, "stac-pair", scenario.Options{Mode: scenario.Quick}))
	var b bytes.Buffer
	if err := CostText(&b, ReplicationCost(single, pair), false); err != nil {
		t.Fatal(err)
	}
	golden(t, "cost.txt", b.Bytes())
}

// The same numbers in text, CSV and JSON.
func TestFormatsAgree(t *testing.T) {
	rep := build(t, fixture(t, "stac-pair", scenario.Options{Mode: scenario.Quick}))
	var text, table, js bytes.Buffer
	if err := rep.Text(&text, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := rep.CSV(&table); err != nil {
		t.Fatal(err)
	}
	if err := rep.JSON(&js); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(lines) != len(rep.Rows)+1 {
		t.Fatalf("%d CSV lines for %d rows: %v", len(lines), len(rep.Rows), err)
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || len(back.Rows) != len(rep.Rows) {
		t.Fatalf("JSON has %d rows of %d: %v", len(back.Rows), len(rep.Rows), err)
	}
	again := build(t, back.Result)
	for i, row := range rep.Rows {
		if row.Metric == "c2e mean" && row.Run == 0 && !strings.Contains(text.String(), short(*row.Here)) {
			t.Errorf("%s at %d is not in the text", row.Metric, row.Rate)
		}
		if row.Here != nil && *again.Rows[i].Here != *row.Here {
			t.Errorf("row %d: %v, after a trip through JSON %v", i, *row.Here, *again.Rows[i].Here)
		}
	}
}
