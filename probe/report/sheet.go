package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// NewTable returns a table without a title whose columns are figures, aligned to the right, in the text.
func NewTable(names ...string) *Table {
	t := &Table{}
	for _, name := range names {
		t.Columns = append(t.Columns, Column{Name: name})
	}
	return t
}

// NewList is NewTable with columns of text, aligned to the left.
func NewList(names ...string) *Table {
	t := NewTable(names...)
	for i := range t.Columns {
		t.Columns[i].Left = true
	}
	t.Columns[0].gap = noGap
	return t
}

// Add adds a row: each value is a Cell, or anything that can be printed. Columns without a value are empty.
func (g *Table) Add(values ...any) {
	row := make([]Cell, len(g.Columns))
	for i, v := range values {
		if c, ok := v.(Cell); ok {
			row[i] = c
		} else {
			row[i].Text = fmt.Sprint(v)
		}
	}
	g.Rows = append(g.Rows, row)
}

// Text writes the table for a terminal without colours, without its title.
func (g *Table) Text(w io.Writer) error { return g.write(w, plain) }

// CSV writes the names of the columns and the rows.
func (g *Table) CSV(w io.Writer) error {
	names := make([]string, 0, len(g.Columns))
	for _, c := range g.Columns {
		names = append(names, c.Name)
	}
	all := [][]string{names}
	for _, row := range g.Rows {
		line := make([]string, 0, len(row))
		for _, c := range row {
			line = append(line, c.Text)
		}
		all = append(all, line)
	}
	return csv.NewWriter(w).WriteAll(all)
}

// Markdown writes the table in Markdown.
func (g *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	cell := func(text string) {
		if text != "" {
			text += " "
		}
		b.WriteString("| " + strings.ReplaceAll(text, "|", "\\|"))
	}
	for _, c := range g.Columns {
		cell(c.Name)
	}
	b.WriteString("|\n")
	for _, c := range g.Columns {
		if c.Left {
			b.WriteString("|---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
	for _, row := range g.Rows {
		for _, c := range row {
			cell(c.Text)
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes v as one indented value.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Page is a text of lines, lists and tables. It keeps the first error of its writer.
type Page struct {
	w   io.Writer
	err error
}

// NewPage begins one.
func NewPage(w io.Writer) *Page { return &Page{w: w} }

// Say writes text as fmt.Printf does.
func (p *Page) Say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Table writes an empty line, the title where there is one, and the table.
func (p *Page) Table(t *Table) {
	p.Say("\n")
	if t.Title != "" {
		p.Say("%s\n", t.Title)
	}
	p.Rows(t)
}

// Rows writes the table alone.
func (p *Page) Rows(t *Table) {
	if p.err == nil {
		p.err = t.Text(p.w)
	}
}

// List writes at most so many lines below a name; nothing if there is none. most 0: all.
func (p *Page) List(name string, lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	p.Say("\n")
	if name != "" {
		p.Say("%s\n", name)
	}
	for i, l := range lines {
		if i == most && most > 0 {
			p.Say("  and %d more\n", len(lines)-i)
			return
		}
		p.Say("  %s\n", l)
	}
}

// Err is the first error of the writer.
func (p *Page) Err() error { return p.err }
