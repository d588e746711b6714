package published

import (
	"fmt"
	"strings"
)

// noteRule ties a discrepancy, which is prose, to its cells.
type noteRule struct {
	finding    string // how the finding begins; must match exactly one
	table      string
	row        string // "" is every row
	columns    []string
	doNotJudge bool
}

// The two contradictions of the STAC report that touch single cells. The
// others are about units and prose and are applied where the rows are built.
var noteRules = []noteRule{
	{
		finding: "Send-to-end at 200 total", table: "A-2srv-S2E", row: "200",
		columns: []string{"mean_us", "median_us", "p90_us", "p95_us"}, doNotJudge: true,
	},
	{
		finding: "Table 3-3, rate 100", table: "3-3", row: "100",
		columns: []string{"diff_2_to_4_pct", "diff_2_to_6_pct"}, doNotJudge: true,
	},
}

func (d *Data) notesFor(c Cell) (notes []Discrepancy, doNotJudge bool) {
	if c.Report != "stac" {
		return nil, false
	}
	for _, r := range noteRules {
		if r.table != c.Table || (r.row != "" && r.row != c.Row) || !contains(r.columns, c.Column) {
			continue
		}
		if n, ok := d.discrepancy(r.finding); ok {
			notes = append(notes, n)
			doNotJudge = doNotJudge || r.doNotJudge
		}
	}
	return notes, doNotJudge
}

func (d *Data) discrepancy(prefix string) (Discrepancy, bool) {
	for _, n := range d.Discrepancies {
		if n.Seed == "STAC" && strings.HasPrefix(n.Finding, prefix) {
			return n, true
		}
	}
	return Discrepancy{}, false
}

func (d *Data) checkNotes() error {
	for _, n := range d.Discrepancies {
		if n.Seed == "" || n.Finding == "" || n.Action == "" {
			return fmt.Errorf("discrepancies.json: %q needs seed, finding and action", n.Finding)
		}
	}
	for _, r := range noteRules {
		if _, ok := d.discrepancy(r.finding); !ok {
			return fmt.Errorf("discrepancies.json: no STAC finding begins with %q", r.finding)
		}
		t, ok := d.Table("stac", r.table)
		if !ok {
			return fmt.Errorf("published.json: no table %q, which a discrepancy names", r.table)
		}
		for _, c := range r.columns {
			if !contains(t.Columns, c) {
				return fmt.Errorf("published.json: table %q has no column %q, which a discrepancy names", r.table, c)
			}
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
