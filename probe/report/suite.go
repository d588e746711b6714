package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/published"
)

// SuiteSchema names the version of the Suite encoding.
const SuiteSchema = "ordergrid.dev/probe-suite/v1"

// Suite is one row for each published table.
type Suite struct {
	Schema    string     `json:"schema"`
	StartedAt string     `json:"startedAt"` // RFC 3339
	Command   string     `json:"command"`
	Rows      []SuiteRow `json:"rows"`
	Manifest  []Manifest `json:"manifest,omitempty"` // of the first scenario that ran
	Notes     []string   `json:"notes"`              // contradictions of the reports themselves
}

// SuiteRow is a published table beside what was measured here.
type SuiteRow struct {
	Report   string `json:"report"`
	Table    string `json:"table"`
	Title    string `json:"title"`
	Scenario string `json:"scenario,omitempty"`
	Mode     string `json:"mode,omitempty"` // exact, scaled or quick
	// Figure names the figure that stands for the table: the highest rate that both have.
	Figure    string   `json:"figure,omitempty"`
	Unit      string   `json:"unit,omitempty"`
	Published *float64 `json:"published,omitempty"`
	Here      *float64 `json:"here,omitempty"`
	Ratio     *float64 `json:"ratio,omitempty"` // here / published, at the same rate, of a figure that counts
	// Disturbed marks a figure of a run that was not valid: it counts for nothing.
	Disturbed bool `json:"disturbed,omitempty"`
	// Verdict is on the shape that the report claims, not on absolute time.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

// Verdicts of a SuiteRow besides those of judgements.
const (
	NotRun   = "not run"
	NotBuilt = "not built"
)

// NewSuite makes the rows of all published tables from the reports of the scenarios that ran. skipped has the reason why
// a scenario did not.
func NewSuite(d *published.Data, reports map[string]*Report, skipped map[string]string) *Suite {
	s := &Suite{Schema: SuiteSchema}
	for i := range d.Tables {
		s.Rows = append(s.Rows, suiteRow(d, &d.Tables[i], reports, skipped))
	}
	for _, x := range d.Discrepancies {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s (here: %s)", x.Seed, x.Finding, x.Action))
	}
	return s
}

func suiteRow(d *published.Data, t *published.Table, reports map[string]*Report, skipped map[string]string) SuiteRow {
	row := SuiteRow{Report: t.Report, Table: t.Name, Title: t.Title, Verdict: NotBuilt, Reason: "no scenario reproduces it: it sums up other tables"}
	for _, s := range d.ScenariosOf(t) {
		if s.IsSystemScenario() {
			row.Scenario, row.Verdict = s.Name, NotRun
			row.Reason = "it is no part of the suite yet; run order-probe run --scenario " + s.Name + " --dev"
			continue
		}
		if !s.IsRun() {
			row.Scenario, row.Reason = s.Name, "order-probe has no such scenario yet: "+s.Reproduces
			continue
		}
		rep := reports[s.Name]
		if rep == nil {
			row.Scenario, row.Verdict, row.Reason = s.Name, NotRun, skipped[s.Name]
			continue
		}
		row.of(rep)
		break
	}
	return row
}

// of fills in what a report has of the row's table.
func (row *SuiteRow) of(rep *Report) {
	row.Scenario, row.Mode = rep.Scenario, string(rep.Result.Plan.Mode)
	row.Verdict, row.Reason = rep.shape()
	best := rep.headline(row.Table)
	if best == nil {
		return
	}
	row.Figure, row.Unit = best.Metric, best.Unit
	if l := best.label(); l != "" {
		row.Figure += ", " + l
	}
	if best.TotalRate > 0 {
		row.Figure += fmt.Sprintf(" at %s/s", thousands(float64(best.TotalRate)))
	}
	if best.Published.Table != row.Table {
		row.Figure += ", table " + best.Published.Table
	}
	row.Published, row.Here, row.Disturbed = &best.Published.Value, best.Here, best.Verdict != OK || row.Verdict == Incorrect
	if !row.Disturbed {
		row.Ratio = best.Ratio
	}
}

// shape is the verdict on what the scenario claims, without LAB-ABS, which compares absolute times of other hardware.
func (r *Report) shape() (verdict, reason string) {
	switch r.Verdict {
	case ReportIncorrect:
		return Incorrect, r.Reason
	case ReportInvalid:
		return Invalid, r.Reason
	}
	verdict, reason = NotJudged, "the scenario judges nothing but correctness"
	for _, j := range r.Judgements {
		switch {
		case j.Name == "CORRECT" || j.Name == "VALID" || j.Name == "LAB-ABS":
		case j.Status == Fail || verdict == NotJudged:
			verdict, reason = j.Status, j.Name+": "+j.Detail
		}
		if verdict == Fail {
			break
		}
	}
	return verdict, reason
}

// headline is the row that stands for a published table: of the table itself rather than of another, compared rather
// than not, a mean rather than another figure, the highest rate.
func (r *Report) headline(table string) (best *Row) {
	rank := func(x *Row) (n int) {
		for i, better := range []bool{strings.Contains(x.Metric, "mean"), x.Ratio != nil, x.Published.Table == table, x.Verdict == OK} {
			if better {
				n |= 1 << i
			}
		}
		return n
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Published == nil || x.Here == nil {
			continue
		}
		if best == nil || rank(x) > rank(best) || rank(x) == rank(best) && x.TotalRate > best.TotalRate {
			best = x
		}
	}
	return best
}

// Counts returns how many rows have each verdict, in the order in which a reader asks.
func (s *Suite) Counts() (out []string) {
	for _, v := range []string{Pass, Fail, Incorrect, Invalid, Contended, NotJudged, NotRun, NotBuilt} {
		n := 0
		for _, r := range s.Rows {
			if r.Verdict == v {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, v))
		}
	}
	return out
}

// Overview is the first screen: a row for each published table.
func (s *Suite) Overview() *Table {
	t := &Table{Name: "suite", Title: fmt.Sprintf("%d published tables: %s", len(s.Rows), strings.Join(s.Counts(), ", ")), Columns: []Column{
		{Name: "report", Left: true}, {Name: "table", Left: true}, {Name: "scenario", Left: true}, {Name: "figure", Left: true},
		{Name: "published"}, {Name: "here"}, {Name: "ratio"}, {Name: "verdict", Left: true},
	}}
	for _, r := range s.Rows {
		figure := r.Figure
		if r.Unit != "" {
			figure += ", " + r.Unit
		}
		scenario := Cell{Text: r.Scenario}
		if r.Mode != "" {
			scenario.Link = r.Scenario + "/report.html"
		}
		t.add(Cell{Text: r.Report}, Cell{Text: r.Table}, scenario, Cell{Text: figure},
			number(r.Published, numtext.Short, "pub"), here(r),
			number(r.Ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) }, ""), Cell{Text: r.Verdict, Style: suiteStyle(r.Verdict)})
	}
	return t
}

func here(r SuiteRow) Cell {
	c := number(r.Here, numtext.Short, "")
	if r.Here != nil && r.Disturbed {
		c.Text, c.Style = notCounted+c.Text, "dim"
	}
	return c
}

func number(v *float64, text func(float64) string, style string) Cell {
	if v == nil {
		return Cell{Text: "-", Style: "dim"}
	}
	return Cell{Text: text(*v), Style: style}
}

func suiteStyle(verdict string) string {
	switch verdict {
	case Pass:
		return "good"
	case Fail, Incorrect:
		return "bad"
	case Invalid, Contended:
		return "doubt"
	}
	return "dim"
}

// SuiteReason is why rows of one scenario have the verdict that they have.
type SuiteReason struct {
	Scenario, Tables, Verdict, Reason string
}

// Reasons are those of all rows, one for the rows of a scenario that share it.
func (s *Suite) Reasons() (out []SuiteReason) {
	for _, r := range s.Rows {
		i := slices.IndexFunc(out, func(o SuiteReason) bool {
			return o.Scenario == r.Scenario && o.Verdict == r.Verdict && o.Reason == r.Reason
		})
		if i >= 0 {
			out[i].Tables += ", " + r.Table
			continue
		}
		out = append(out, SuiteReason{r.Scenario, r.Report + " " + r.Table, r.Verdict, r.Reason})
	}
	return out
}

// Style of the verdict, as of a Cell.
func (r SuiteReason) Style() string { return suiteStyle(r.Verdict) }
