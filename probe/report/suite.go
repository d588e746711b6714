package report

import (
	"cmp"
	"fmt"
	"maps"
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
	// Runs are the scenarios that ran, by name.
	Runs []SuiteRun `json:"runs,omitempty"`
	// Prose are the figures that the reports have in their text.
	Prose    []Comparison `json:"prose,omitempty"`
	Manifest []Manifest   `json:"manifest,omitempty"` // of the first scenario that ran
	Notes    []string     `json:"notes"`              // contradictions of the reports themselves
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
	// Figures are all that the scenario has beside figures of the table.
	Figures []Comparison `json:"figures,omitempty"`
}

// Verdicts of a SuiteRow besides those of judgements.
const (
	NotRun   = "not run"
	NotBuilt = "not built"
)

// NewSuite makes the rows of all published tables from the outcomes of the scenarios that ran, by name. skipped has the
// reason why a scenario did not.
func NewSuite(d *published.Data, outcomes map[string]*Outcome, skipped map[string]string) *Suite {
	s := &Suite{Schema: SuiteSchema}
	for i := range d.Tables {
		s.Rows = append(s.Rows, suiteRow(d, &d.Tables[i], outcomes, skipped))
	}
	for i := range d.Tables {
		s.summarise(&d.Tables[i], &s.Rows[i])
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		o := outcomes[name]
		s.Runs = append(s.Runs, o.Run)
		for _, c := range o.Figures {
			if strings.HasPrefix(c.Table, ProsePrefix) {
				s.Prose = append(s.Prose, c)
			}
		}
	}
	for _, x := range d.Discrepancies {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s (here: %s)", x.Seed, x.Finding, x.Action))
	}
	return s
}

func suiteRow(d *published.Data, t *published.Table, outcomes map[string]*Outcome, skipped map[string]string) SuiteRow {
	row := SuiteRow{Report: t.Report, Table: t.Name, Title: t.Title, Verdict: NotBuilt, Reason: "no scenario reproduces it"}
	for i, s := range d.ScenariosOf(t) {
		if o := outcomes[s.Name]; o != nil {
			row.of(o)
			return row
		}
		switch {
		case i > 0: // the first one is named
		case s.IsRun() || s.IsSystemScenario():
			row.Scenario, row.Verdict, row.Reason = s.Name, NotRun, cmp.Or(skipped[s.Name], "it was not part of this run")
		default:
			row.Scenario, row.Reason = s.Name, "order-probe has no such scenario yet: "+s.Reproduces
		}
	}
	return row
}

// of fills in what an outcome has of the row's table.
func (row *SuiteRow) of(o *Outcome) {
	row.Scenario, row.Mode, row.Verdict, row.Reason = o.Run.Scenario, o.Run.Mode, o.Run.Verdict, o.Run.Reason
	if n := len(o.Run.Earlier); n > 0 {
		row.Reason += fmt.Sprintf(" (run %d; those before it were INVALID)", n+1)
	}
	for _, c := range o.Figures {
		if c.Table == row.Table {
			row.Figures = append(row.Figures, c)
		}
	}
	best := headline(row.Figures)
	if best == nil {
		return
	}
	row.Figure, row.Unit = best.Metric, best.Unit
	if best.TotalRate > 0 {
		row.Figure += fmt.Sprintf(" at %s/s", thousands(float64(best.TotalRate)))
	}
	row.Published, row.Here, row.Disturbed = &best.Published, best.Here, best.Invalid != "" || row.Verdict == Incorrect
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

// headline is the figure that stands for a published table: compared rather than not, a mean rather than another one, the
// highest rate, the first.
func headline(figures []Comparison) (best *Comparison) {
	rank := func(c *Comparison) (n int) {
		for i, better := range []bool{strings.Contains(c.Metric, "mean"), c.Ratio != nil, c.Invalid == ""} {
			if better {
				n |= 1 << i
			}
		}
		return n
	}
	for i := range figures {
		c := &figures[i]
		if c.Here == nil {
			continue
		}
		if best == nil || rank(c) > rank(best) || rank(c) == rank(best) && c.TotalRate > best.TotalRate {
			best = c
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
