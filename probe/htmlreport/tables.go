package htmlreport

import (
	"strings"

	"github.com/ordergrid/ordergrid/probe/report"
)

// table is a report's table with additional data for HTML.
type table struct {
	Title   string
	Groups  []columnGroup // empty if no column has one
	Columns []column
	Rows    [][]cell
}

type columnGroup struct {
	Name string
	Span int
	Edge bool // a line before it
}

type column struct{ Name, Class string }

type cell struct {
	Text, Notes string // 287 and [a]
	Head        bool
	Class       string
	Of          *report.Row
	Part        string
	Link        string
}

func newTable(t *report.Table) *table {
	out := &table{Title: upperFirst(t.Title)}
	grouped := false
	edges := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		grouped = grouped || c.Group != ""
		edges[i] = i > 0 && c.Group != t.Columns[i-1].Group
		if n := len(out.Groups); n > 0 && c.Group == t.Columns[i-1].Group {
			out.Groups[n-1].Span++
		} else {
			out.Groups = append(out.Groups, columnGroup{Name: c.Group, Span: 1, Edge: edges[i]})
		}
		out.Columns = append(out.Columns, column{c.Name, classes(edges[i], c, report.Cell{})})
	}
	if !grouped {
		out.Groups = nil
	}
	for _, row := range t.Rows {
		var cells []cell
		for i, c := range row {
			x := cell{Text: c.Text, Head: i == 0, Class: classes(edges[i], t.Columns[i], c), Part: c.Part, Link: c.Link}
			if at := strings.IndexByte(c.Text, '['); at > 0 && c.Part == "published" {
				x.Text, x.Notes = c.Text[:at], c.Text[at:]
			}
			if c.Of != nil && c.Of.Metric != "" {
				x.Of = c.Of
			}
			cells = append(cells, x)
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

func classes(edge bool, c report.Column, cell report.Cell) string {
	var out []string
	if edge {
		out = append(out, "edge")
	}
	if c.Left {
		out = append(out, "left")
	}
	switch {
	case cell.Style != "":
		out = append(out, cell.Style)
	case cell.Part == "published":
		out = append(out, "pub")
	}
	if cell.Part == "here" && cell.Style == "" && cell.Of != nil && cell.Of.Published != nil { // beside a published one
		out = append(out, "here")
	}
	return strings.Join(out, " ")
}

func upperFirst(s string) string {
	if s == "" || s[0] >= 0x80 {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
