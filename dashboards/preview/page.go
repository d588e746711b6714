package preview

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/internal/plot"
)

// Sizes in pixels. A row of Grafana's page is 30 high and 8 from the next.
const (
	column, rowHeight = 62.0, 38.0
	gap, margin       = 8.0, 16.0
	head              = 56.0
)

// box is where something is drawn.
type box struct{ x, y, w, h float64 }

func (b box) inner(left, top, right, bottom float64) box {
	return box{b.x + left, b.y + top, b.w - left - right, b.h - top - bottom}
}

// page is one dashboard being drawn.
type page struct {
	*plot.Drawing
	window Window
	marks  []Answer // annotations
}

// Page draws a dashboard. Answers are those of its panels and annotations.
func Page(d *grafana.Dashboard, answers []Answer, w Window) *plot.Drawing {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	out := plot.New(24*column+2*margin-gap, head+float64(rows)*rowHeight+margin, d.Title)
	out.Desc = d.Description
	pg := &page{Drawing: out, window: w}
	of := map[int][]Answer{}
	for _, a := range answers {
		if a.Panel == nil {
			pg.marks = append(pg.marks, a)
		} else {
			of[a.Panel.ID] = append(of[a.Panel.ID], a)
		}
	}
	pg.Text(plot.Text{At: plot.Point{X: margin, Y: 26}, Words: d.Title, Size: 19, Bold: true})
	pg.Text(plot.Text{At: plot.Point{X: margin, Y: 45}, Words: fmt.Sprintf("%s  %s to %s UTC", d.Description, w.From.UTC().Format("2006-01-02 15:04:05"), w.To.UTC().Format("15:04:05")), Role: plot.Muted, Size: 12})
	for i := range d.Panels {
		p := &d.Panels[i]
		b := box{margin + float64(p.GridPos.X)*column, head + float64(p.GridPos.Y)*rowHeight, float64(p.GridPos.W)*column - gap, float64(p.GridPos.H)*rowHeight - gap}
		if p.Type == "row" {
			pg.Text(plot.Text{At: plot.Point{X: b.x, Y: b.y + 22}, Words: p.Title, Size: 14, Bold: true})
			continue
		}
		pg.panel(p, of[p.ID], b)
	}
	return out
}

func (pg *page) panel(p *grafana.Panel, answers []Answer, b box) {
	pg.outline(b)
	pg.Text(plot.Text{At: plot.Point{X: b.x + 10, Y: b.y + 19}, Words: fit(p.Title, b.w-20, 12.5), Size: 12.5, Bold: true})
	in := b.inner(10, 28, 10, 8)
	shown := series(p, answers)
	if len(shown) == 0 {
		pg.Text(plot.Text{At: plot.Point{X: b.x + b.w/2, Y: b.y + b.h/2 + 6}, Words: p.FieldConfig.Defaults.NoValue, Role: plot.Muted, Size: 13, Anchor: plot.Middle})
		return
	}
	switch p.Type {
	case "stat":
		pg.figure(p, shown, b, in)
	case "heatmap":
		pg.heatmap(p, shown, in)
	case "state-timeline":
		pg.states(p, shown, in)
	case "table":
		pg.table(p, answers, in)
	case "bargauge":
		pg.bars(p, shown, in)
	default:
		pg.lines(p, shown, in)
	}
}

func (pg *page) outline(b box) {
	corner := []plot.Point{{X: b.x, Y: b.y}, {X: b.x + b.w, Y: b.y}, {X: b.x + b.w, Y: b.y + b.h}, {X: b.x, Y: b.y + b.h}, {X: b.x, Y: b.y}}
	pg.Line(plot.Stroke{Role: plot.Rule, Width: 1.5}, corner...)
}

// shownSeries is a series with its name and look.
type shownSeries struct {
	Series
	name string
	role plot.Role
	dash []float64
}

// series of all answers of a panel, named and coloured as its overrides say.
func series(p *grafana.Panel, answers []Answer) (out []shownSeries) {
	for _, a := range answers {
		for _, s := range a.Series {
			i := len(out)
			n := shownSeries{Series: s, name: a.Name(s), role: plot.Kind(i), dash: plot.Dash(i / plot.Kinds)}
			for _, o := range p.FieldConfig.Overrides {
				n.override(o)
			}
			out = append(out, n)
		}
	}
	return out
}

func (s *shownSeries) override(o grafana.Override) {
	if ok, err := regexp.MatchString(o.Matcher.Options, s.name); err != nil || !ok {
		return
	}
	for _, set := range o.Properties {
		switch v := set.Value.(type) {
		case string:
			if set.ID == "displayName" {
				s.name = v
			}
		case map[string]any:
			if c, ok := v["fixedColor"].(string); ok && set.ID == "color" {
				s.role = role(c)
			}
			if set.ID == "custom.lineStyle" && v["fill"] == "dash" {
				s.role, s.dash = plot.Published, []float64{8, 6}
			}
		}
	}
}

// role of one of Grafana's colours.
func role(colour string) plot.Role {
	switch {
	case strings.HasSuffix(colour, "green"):
		return plot.Good
	case strings.HasSuffix(colour, "red"):
		return plot.Bad
	case strings.HasSuffix(colour, "orange"):
		return plot.Kind(1)
	case strings.HasSuffix(colour, "yellow"):
		return plot.Doubt
	case strings.HasSuffix(colour, "blue"):
		return plot.Here
	case strings.HasSuffix(colour, "text"):
		return plot.Ink
	}
	return plot.Muted
}

// threshold is the colour that the panel's thresholds give to a value.
func threshold(p *grafana.Panel, v float64) plot.Role {
	out := plot.Ink
	if t := p.FieldConfig.Defaults.Thresholds; t != nil {
		for _, s := range t.Steps {
			if s.Value == nil || v >= *s.Value {
				out = role(s.Color)
			}
		}
	}
	return out
}

// fit cuts words to a width.
func fit(words string, width, size float64) string {
	for r := []rune(words); plot.TextWidth(words, size) > width && len(r) > 1; words = string(r) + "…" {
		r = r[:len(r)-1]
		if plot.TextWidth(string(r)+"…", size) <= width {
			return string(r) + "…"
		}
	}
	return words
}
