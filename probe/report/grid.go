package report

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// paint colours a word on a terminal; plain returns it as it is.
type paint func(style, s string) string

func plain(_, s string) string { return s }

var ansi = map[string]string{"good": "\x1b[32m", "bad": "\x1b[31;1m", "doubt": "\x1b[33m", "head": "\x1b[1m", "dim": "\x1b[2m"}

func coloured(style, s string) string {
	if code := ansi[style]; code != "" && s != "" {
		return code + s + "\x1b[0m"
	}
	return s
}

// write prints the table as aligned columns under one or two lines of headings.
// Widths are counted without colour codes.
func (g *Table) write(w io.Writer, p paint) error {
	width := make([]int, len(g.Columns))
	for i, c := range g.Columns {
		width[i] = utf8.RuneCountInString(c.Name)
		for _, r := range g.Rows {
			width[i] = max(width[i], utf8.RuneCountInString(r[i].Text))
		}
	}
	g.widenForGroups(width)
	var b strings.Builder
	if line := g.groupLine(width); strings.TrimSpace(line) != "" {
		b.WriteString(p("head", line) + "\n")
	}
	var names []Cell
	for _, c := range g.Columns {
		names = append(names, Cell{Text: c.Name, Style: "head"})
	}
	for n, r := range append([][]Cell{names}, g.Rows...) {
		if n == 0 && !slices.ContainsFunc(g.Columns, func(c Column) bool { return c.Name != "" }) {
			continue
		}
		var line strings.Builder
		for i, c := range g.Columns {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(r[i].Text))
			line.WriteString(strings.Repeat(" ", c.space()))
			if c.Left {
				line.WriteString(p(r[i].Style, r[i].Text) + pad)
			} else {
				line.WriteString(pad + p(r[i].Style, r[i].Text))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// noGap is the gap of a column that begins the line.
const noGap = -1

func (c Column) space() int {
	switch {
	case c.gap == noGap:
		return 0
	case c.gap > 0:
		return c.gap
	}
	return 2
}

// spans calls fn for every run of columns under one heading.
func (g *Table) spans(width []int, fn func(first, last, chars int, group string)) {
	for i := 0; i < len(g.Columns); {
		last, chars := i, width[i]
		for last+1 < len(g.Columns) && g.Columns[i].Group != "" && g.Columns[last+1].Group == g.Columns[i].Group {
			last++
			chars += g.Columns[last].space() + width[last]
		}
		fn(i, last, chars, g.Columns[i].Group)
		i = last + 1
	}
}

func (g *Table) widenForGroups(width []int) {
	g.spans(width, func(_, last, chars int, group string) {
		if more := utf8.RuneCountInString(group) - chars; more > 0 {
			width[last] += more
		}
	})
}

// groupLine centres every heading over its columns.
func (g *Table) groupLine(width []int) string {
	var b strings.Builder
	g.spans(width, func(first, _, chars int, group string) {
		b.WriteString(strings.Repeat(" ", g.Columns[first].space()))
		left := (chars - utf8.RuneCountInString(group)) / 2
		b.WriteString(strings.Repeat(" ", left) + group + strings.Repeat(" ", chars-left-utf8.RuneCountInString(group)))
	})
	return strings.TrimRight(b.String(), " ")
}
