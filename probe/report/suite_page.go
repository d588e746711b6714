package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/published"
)

// ParseSuite reads a suite that JSON wrote.
func ParseSuite(b []byte) (*Suite, error) {
	if len(b) > maxResult {
		return nil, fmt.Errorf("suite: %d bytes, at most %d are read", len(b), maxResult)
	}
	s := &Suite{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("suite: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("suite: text after its end")
	}
	if s.Schema != SuiteSchema {
		return nil, fmt.Errorf("suite: schema %q, this program reads %s; run the suite again", s.Schema, SuiteSchema)
	}
	return s, nil
}

// Markdown writes the suite as a page: one screen with a row for each published table, the verdicts, every figure beside
// the published one, and what was not reproduced.
func (s *Suite) Markdown(w io.Writer, d *published.Data) error {
	p := &mdPage{}
	p.say("# Every published table, beside what was measured here")
	p.say("Made by `%s`, %s.", s.Command, s.StartedAt)
	for i := range s.Manifest {
		p.say("Machine: %s.", s.Manifest[i].Machine())
	}
	p.say("%s. A ratio is the figure here divided by the published one: below 1 a time is shorter here, above 1 a rate is higher. A verdict is on the shape that a report claims, not on absolute time: the reports are of other hardware. `%s` marks a figure of a disturbed run, which has no ratio.", strings.Join(s.Counts(), ", "), notCounted)
	o := s.Overview()
	o.NoLinks() // the pages of scenarios are not beside this one
	p.table(o)
	p.say("## Verdicts")
	p.table(s.reasonTable(func(r SuiteReason) bool { return r.Verdict != NotRun && r.Verdict != NotBuilt }))
	p.say("## Figures")
	for i := range s.Rows {
		if r := &s.Rows[i]; len(r.Figures) > 0 {
			s.figures(p, d, r)
		}
	}
	if len(s.Prose) > 0 {
		p.say("### From the text of the reports")
		p.table(figureTable(s.Prose, true))
	}
	p.say("## How they were measured")
	p.table(s.runTable())
	for _, r := range s.Runs {
		for i, text := range r.Earlier {
			if i == 0 {
				p.say("Runs of %s before, which count for nothing:", r.Scenario)
			}
			p.item(text)
		}
		for i, text := range r.Differences {
			if i == 0 {
				p.say("Not as published in %s:", r.Scenario)
			}
			p.item(text)
		}
	}
	p.say("## Not reproduced")
	p.table(s.missingTable())
	p.say("## Contradictions of the reports themselves")
	for _, n := range s.Notes {
		p.item(n)
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

// figures writes the section of one published table.
func (s *Suite) figures(p *mdPage, d *published.Data, r *SuiteRow) {
	p.say("### %s %s: %s", r.Report, r.Table, r.Title)
	source := d.Reports[r.Report]
	if t, ok := d.Table(r.Report, r.Table); ok && t.Configuration != "" {
		source += "; " + t.Configuration
	}
	p.say("Published: %s.", source)
	for _, run := range s.Runs {
		if run.Scenario == r.Scenario {
			p.say("Here: `%s`, %s, on %s. Verdict %s.", run.Command, run.StartedAt, run.Machine, run.Verdict)
		}
	}
	p.table(figureTable(r.Figures, false))
}

// figureTable has a line for each figure; with named, also the place of the published one.
func figureTable(figures []Comparison, named bool) *Table {
	t := &Table{Name: "figures", Columns: []Column{{Name: "row", Left: true}, {Name: "figure", Left: true}, {Name: "published"}, {Name: "here"}, {Name: "ratio"}, {Name: "", Left: true}}}
	for i := range figures {
		c := &figures[i]
		row, figure, remark := c.Row, c.Metric, c.At
		if named {
			row = strings.TrimPrefix(c.Table, ProsePrefix)
		}
		if c.Unit != "" {
			figure += ", " + c.Unit
		}
		if c.Derived {
			remark = joined(remark, "published figure computed from others")
		}
		value := number(c.Here, numtext.Short, "")
		if c.Invalid != "" {
			remark = joined("INVALID: "+c.Invalid, remark)
			if c.Here != nil {
				value.Text = notCounted + value.Text
			}
		}
		t.add(Cell{Text: row}, Cell{Text: figure}, Cell{Text: numtext.Short(c.Published)}, value,
			number(c.Ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) }, ""), Cell{Text: joined(remark, c.Reason)})
	}
	return t
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func (s *Suite) reasonTable(is func(SuiteReason) bool) *Table {
	t := &Table{Name: "reasons", Columns: []Column{{Name: "scenario", Left: true}, {Name: "tables", Left: true}, {Name: "verdict", Left: true}, {Name: "reason", Left: true}}}
	for _, r := range s.Reasons() {
		if is(r) {
			t.add(Cell{Text: r.Scenario}, Cell{Text: r.Tables}, Cell{Text: r.Verdict}, Cell{Text: r.Reason})
		}
	}
	return t
}

// runTable has every scenario that ran, with or without published tables.
func (s *Suite) runTable() *Table {
	t := &Table{Name: "runs", Columns: []Column{{Name: "scenario", Left: true}, {Name: "command", Left: true}, {Name: "started", Left: true}, {Name: "version", Left: true}, {Name: "verdict", Left: true}, {Name: "control", Left: true}}}
	for _, r := range s.Runs {
		t.add(Cell{Text: r.Scenario}, Cell{Text: "`" + r.Command + "`"}, Cell{Text: r.StartedAt}, Cell{Text: r.Version}, Cell{Text: r.Verdict}, Cell{Text: r.Control})
	}
	return t
}

// missingTable has the published tables without any figure, with the reason.
func (s *Suite) missingTable() *Table {
	t := &Table{Name: "missing", Columns: []Column{{Name: "table", Left: true}, {Name: "what", Left: true}, {Name: "scenario", Left: true}, {Name: "why", Left: true}}}
	for i := range s.Rows {
		if r := &s.Rows[i]; len(r.Figures) == 0 {
			t.add(Cell{Text: r.Report + " " + r.Table}, Cell{Text: r.Title}, Cell{Text: r.Scenario}, Cell{Text: r.Verdict + ": " + r.Reason})
		}
	}
	return t
}

// mdPage is a page of Markdown, with lines of at most mdWidth characters outside of tables.
type mdPage struct {
	b    bytes.Buffer
	list bool // the last line is of a list
}

const mdWidth = 120

// say writes a paragraph or a heading.
func (p *mdPage) say(format string, args ...any) {
	if p.b.Len() > 0 {
		p.b.WriteByte('\n')
	}
	p.list = false
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "#") {
		p.b.WriteString(text + "\n")
		return
	}
	p.fill(text, "")
}

// item writes an item of a list.
func (p *mdPage) item(text string) {
	if !p.list {
		p.b.WriteByte('\n')
	}
	p.list = true
	p.b.WriteString("- ")
	p.fill(text, "  ")
}

func (p *mdPage) fill(text, indent string) {
	n := len(indent)
	for i, word := range strings.Fields(text) {
		length := len([]rune(word))
		switch {
		case i == 0:
		case n+1+length > mdWidth:
			p.b.WriteString("\n" + indent)
			n = len(indent)
		default:
			p.b.WriteByte(' ')
			n++
		}
		p.b.WriteString(word)
		n += length
	}
	p.b.WriteByte('\n')
}

func (p *mdPage) table(t *Table) {
	p.list = false
	p.b.WriteByte('\n')
	_ = t.Markdown(&p.b) // a buffer takes everything
}
