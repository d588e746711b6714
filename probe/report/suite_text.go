package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
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
func (s *Suite) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

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

// Markdown writes the suite as a page.
func (s *Suite) Markdown(w io.Writer) error {
	var b strings.Builder
	cell := func(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
	fmt.Fprintf(&b, "# Every published table, beside what was measured here\n\nMade by `%s`, %s.\n", s.Command, s.StartedAt)
	for _, m := range s.Manifest {
		fmt.Fprintf(&b, "Machine: %s, %d cores, %d MiB, %s %s.\n", m.CPU, m.Cores, m.MemoryMiB, m.OS, m.Kernel)
	}
	fmt.Fprintf(&b, "\n%s. A ratio below 1 is faster here. A verdict is on the shape that a report claims, not on absolute time: the\nreports are of other hardware.\n\n", strings.Join(s.Counts(), ", "))
	t := s.Overview()
	for i, c := range t.Columns {
		fmt.Fprintf(&b, "| %s ", c.Name)
		if i == len(t.Columns)-1 {
			b.WriteString("|\n")
		}
	}
	for i, c := range t.Columns {
		rule := "---:"
		if c.Left {
			rule = "---"
		}
		fmt.Fprintf(&b, "|%s", rule)
		if i == len(t.Columns)-1 {
			b.WriteString("|\n")
		}
	}
	for _, row := range t.Rows {
		for _, c := range row {
			fmt.Fprintf(&b, "| %s ", cell(c.Text))
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n## Verdicts\n\n| scenario | tables | verdict | reason |\n|---|---|---|---|\n")
	for _, r := range s.Reasons() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(r.Scenario), cell(r.Tables), r.Verdict, cell(r.Reason))
	}
	b.WriteString("\n## Contradictions of the reports themselves\n\n")
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
