package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// A report's page of highlights repeats figures of its other tables. It is reproduced by what
// stands beside those, and its verdict is the worst of theirs.

// summarised returns the tables that a page of highlights is made of, by the name of the test; nil for every other table.
func summarised(t *published.Table) map[string]string {
	if t.Report != "jade" || t.Name != "Summary" {
		return nil
	}
	return map[string]string{"TradeEm tcp": "TradeEm-TCP", "TradeEm thin": "TradeEm-thin", "SkiDemo": "SkiDemo", "TPC-A": "TPC-A", "Async": "AsyncMethodCalls"}
}

// bySeverity lists the verdicts from the one that decides to the one that needs all others to agree.
var bySeverity = []string{Incorrect, Fail, Invalid, Contended, NotBuilt, NotRun, NotJudged, Pass}

// summarise fills in the row of a table of highlights from the other rows.
func (s *Suite) summarise(t *published.Table, row *SuiteRow) {
	names := summarised(t)
	if names == nil {
		return
	}
	row.Verdict = Pass
	var parts []string
	for _, highlight := range t.Rows {
		test := highlight["test"].Text
		i := slices.IndexFunc(s.Rows, func(r SuiteRow) bool { return r.Report == t.Report && r.Table == names[test] })
		if i < 0 {
			continue
		}
		of := &s.Rows[i]
		row.Figures = append(row.Figures, highlighted(t.Name, of, highlight))
		if part := of.Table + " " + of.Verdict; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
		if slices.Index(bySeverity, of.Verdict) < slices.Index(bySeverity, row.Verdict) {
			row.Verdict = of.Verdict
		}
	}
	row.Reason = "the worst of what it sums up: " + strings.Join(parts, ", ")
}

// highlighted is a published highlight beside the figure of its table that was published with the same value.
func highlighted(table string, of *SuiteRow, highlight published.Row) Comparison {
	value := highlight["value"].Number
	c := Comparison{Table: table, Row: highlight["test"].Text, Metric: highlight["unit"].Text, Published: value}
	if users := highlight["users"]; users.IsNumber() {
		c.Row += fmt.Sprintf(", %s users", users)
	}
	i := slices.IndexFunc(of.Figures, func(f Comparison) bool { return f.Published == value && f.Here != nil })
	switch {
	case i >= 0:
		f := &of.Figures[i]
		c.At, c.Here, c.Ratio, c.Invalid = joined(f.Metric, f.At), f.Here, f.Ratio, f.Invalid
	case len(of.Figures) > 0:
		c.Reason = "no figure here has this one beside it: see " + of.Table
	default:
		c.Reason = of.Table + ": " + of.Verdict
	}
	return c
}
