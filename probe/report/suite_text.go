package report

import (
	"encoding/csv"
	"fmt"
	"io"
)

// Text writes the suite for a terminal: a screen with a row for each table, and below it the reasons.
func (s *Suite) Text(w io.Writer, color bool) error {
	p := paint(plain)
	if color {
		p = coloured
	}
	t := s.Overview()
	if _, err := fmt.Fprintln(w, p("head", t.Title)); err != nil {
		return err
	}
	if err := t.write(w, p); err != nil {
		return err
	}
	for _, r := range s.Reasons() {
		if _, err := fmt.Fprintf(w, "\n%s\n  %s\n", p("head", r.head()), r.Reason); err != nil {
			return err
		}
	}
	return nil
}

func (r SuiteReason) head() string {
	name := r.Scenario
	if name == "" {
		name = "no scenario"
	}
	return fmt.Sprintf("%s: %s (%s)", name, r.Verdict, r.Tables)
}

// JSON writes the suite as one value of SuiteSchema.
func (s *Suite) JSON(w io.Writer) error { return WriteJSON(w, s) }

// CSV writes a line for each row, without Manifest and Notes.
func (s *Suite) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"report", "table", "title", "scenario", "mode", "figure", "unit", "published", "here", "ratio", "verdict", "reason"}) // Flush has the error
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%g", *v)
	}
	for _, r := range s.Rows {
		_ = c.Write([]string{r.Report, r.Table, r.Title, r.Scenario, r.Mode, r.Figure, r.Unit, number(r.Published), number(r.Here), number(r.Ratio), r.Verdict, r.Reason})
	}
	c.Flush()
	return c.Error()
}
