package system

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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

// Report of one run.
type Report struct {
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

// WriteText prints the report.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s): %s\n%s\n\n", r.Scenario, r.Mode, r.Shows, r.Machine)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(r.Columns, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ncontrol  %s\nverdict  %s\n", r.Control, r.Verdict)
	for _, list := range []struct {
		title string
		lines []string
	}{{"reasons", r.Reasons}, {"differences from the published run", r.Differences}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(w, "%s:\n  %s\n", list.title, strings.Join(list.lines, "\n  "))
		}
	}
	return nil
}

// WriteJSON prints it as an object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
