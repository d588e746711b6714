package report

import (
	"io"
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

// column of a grid. Columns with the same group stand under one heading.
type column struct {
	group string
	name  string
	left  bool
	gap   int // spaces before it; 0 is two
}

type cell struct{ text, style string }

// grid writes aligned columns under one or two lines of headings. Widths are
// counted without colour codes.
type grid struct {
	columns []column
	rows    [][]cell
}

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

func (g *grid) write(w io.Writer, p paint) error {
	width := make([]int, len(g.columns))
	for i, c := range g.columns {
		width[i] = utf8.RuneCountInString(c.name)
		for _, r := range g.rows {
			width[i] = max(width[i], utf8.RuneCountInString(r[i].text))
		}
	}
	g.widenForGroups(width)
	var b strings.Builder
	if line := g.groupLine(width); strings.TrimSpace(line) != "" {
		b.WriteString(p("head", line) + "\n")
	}
	var names []cell
	for _, c := range g.columns {
		names = append(names, cell{c.name, "head"})
	}
	for _, r := range append([][]cell{names}, g.rows...) {
		var line strings.Builder
		for i, c := range g.columns {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(r[i].text))
			line.WriteString(strings.Repeat(" ", c.space()))
			if c.left {
				line.WriteString(p(r[i].style, r[i].text) + pad)
			} else {
				line.WriteString(pad + p(r[i].style, r[i].text))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c column) space() int {
	if c.gap > 0 {
		return c.gap
	}
	return 2
}

// spans calls fn for every run of columns under one heading.
func (g *grid) spans(width []int, fn func(first, last, chars int, group string)) {
	for i := 0; i < len(g.columns); {
		last, chars := i, width[i]
		for last+1 < len(g.columns) && g.columns[i].group != "" && g.columns[last+1].group == g.columns[i].group {
			last++
			chars += g.columns[last].space() + width[last]
		}
		fn(i, last, chars, g.columns[i].group)
		i = last + 1
	}
}

func (g *grid) widenForGroups(width []int) {
	g.spans(width, func(_, last, chars int, group string) {
		if more := utf8.RuneCountInString(group) - chars; more > 0 {
			width[last] += more
		}
	})
}

// groupLine centres every heading over its columns.
func (g *grid) groupLine(width []int) string {
	var b strings.Builder
	g.spans(width, func(first, _, chars int, group string) {
		b.WriteString(strings.Repeat(" ", g.columns[first].space()))
		left := (chars - utf8.RuneCountInString(group)) / 2
		b.WriteString(strings.Repeat(" ", left) + group + strings.Repeat(" ", chars-left-utf8.RuneCountInString(group)))
	})
	return strings.TrimRight(b.String(), " ")
}
