package system

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/probe/report"
)

// Verdict of a scenario.
type Verdict string

// Verdicts, from good to bad.
const (
	Pass    Verdict = "PASS"
	Fail    Verdict = "FAIL"    // every order right, and the shape is not the published one
	Invalid Verdict = "INVALID" // nothing is shown
	Wrong   Verdict = "WRONG"   // orders are lost, doubled or miscounted
)

var rank = map[Verdict]int{Pass: 0, Fail: 1, Invalid: 2, Wrong: 3}

// Schema names the version of the Report encoding.
const Schema = "ordergrid.dev/probe-system/v1"

// Report of one run.
type Report struct {
	Schema    string `json:"schema"`
	Version   string `json:"version"`   // of order-probe
	StartedAt string `json:"startedAt"` // RFC 3339

	Scenario string     `json:"scenario"`
	Mode     string     `json:"mode"`
	Shows    string     `json:"shows"` // what it reproduces
	Columns  []string   `json:"columns"`
	Rows     [][]string `json:"rows"`
	// Control is the negative control, in words; every report has one.
	Control     string   `json:"control"`
	Verdict     Verdict  `json:"verdict"`
	Reasons     []string `json:"reasons"`
	Differences []string `json:"differences"` // from the published run
	Machine     string   `json:"machine"`
	// Disturbed is what else the machine did; no figure counts then. Empty: nothing.
	Disturbed string `json:"disturbed,omitempty"`
	// Figures stand beside published ones.
	Figures []report.Comparison `json:"figures,omitempty"`
	// Series are drawn under SeriesTitle.
	Series      []Series `json:"series,omitempty"`
	SeriesTitle string   `json:"seriesTitle,omitempty"`
}

// judge makes the verdict worse, never better.
func (r *Report) judge(v Verdict, format string, args ...any) {
	if rank[v] > rank[r.Verdict] {
		r.Verdict = v
	}
	r.Reasons = append(r.Reasons, string(v)+": "+fmt.Sprintf(format, args...))
}

func (r *Report) row(cells ...any) {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = fmt.Sprint(c)
	}
	r.Rows = append(r.Rows, line)
}

// figure adds a figure beside a published one of the same kind.
func (r *Report) figure(c report.Comparison, here float64) {
	if c.Published > 0 {
		ratio := here / c.Published
		c.Ratio = &ratio
	}
	r.beside(c, here)
}

// beside adds a figure beside a published one that it cannot be divided by.
func (r *Report) beside(c report.Comparison, here float64) {
	c.Here = &here
	r.Figures = append(r.Figures, c)
}

// missing adds a published figure that has none here.
func (r *Report) missing(c report.Comparison, reason string) {
	c.Reason = reason
	r.Figures = append(r.Figures, c)
}

// Read reads what WriteJSON wrote.
func Read(b []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("result: schema %q, this program reads %s; run the scenario again", r.Schema, Schema)
	}
	return r, nil
}

// Outcome is the report as a part of a suite.
func (r *Report) Outcome() *report.Outcome {
	o := &report.Outcome{Run: report.SuiteRun{
		Scenario: r.Scenario, Mode: r.Mode, StartedAt: r.StartedAt, Version: r.Version, Machine: r.Machine, Control: r.Control, Differences: r.Differences,
		Command: fmt.Sprintf("order-probe run --scenario %s --dev --%s", r.Scenario, r.Mode),
		Verdict: map[Verdict]string{Pass: report.Pass, Fail: report.Fail, Invalid: report.Invalid, Wrong: report.Incorrect}[r.Verdict],
		Reason:  strings.Join(r.Reasons, "; "),
	}}
	if len(r.Reasons) == 0 {
		o.Run.Reason = "every order is right, and the control was found"
	}
	why := r.Disturbed
	if r.Verdict == Wrong || r.Verdict == Invalid {
		why = o.Run.Reason
	}
	for _, c := range r.Figures {
		if why != "" && c.Here != nil {
			c.Ratio, c.Invalid = nil, why
		}
		o.Figures = append(o.Figures, c)
	}
	return o
}

// Table is what was measured, as of other reports.
func (r *Report) Table() *report.Table {
	t := report.NewList(r.Columns...)
	t.Name, t.Title = "system", r.Shows
	for i := range t.Columns {
		t.Columns[i].Left = i == 0
	}
	for _, row := range r.Rows {
		cells := make([]any, 0, len(row))
		for _, text := range row {
			cells = append(cells, text)
		}
		t.Add(cells...)
	}
	return t
}

// WriteCSV prints the rows, with the names of their columns.
func (r *Report) WriteCSV(w io.Writer) error { return r.Table().CSV(w) }

// WriteText prints the report.
func (r *Report) WriteText(w io.Writer) error {
	p := report.NewPage(w)
	p.Say("%s (%s): %s\n%s\n", r.Scenario, r.Mode, r.Shows, r.Machine)
	t := r.Table()
	t.Title = "" // it stands above
	p.Table(t)
	p.Say("\ncontrol  %s\nverdict  %s\n", r.Control, r.Verdict)
	p.List("reasons:", r.Reasons, 0)
	p.List("differences from the published run:", r.Differences, 0)
	return p.Err()
}

// WriteJSON prints it as an object.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }
