package certificate

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"time"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
)

//go:embed page.gohtml
var pageText string

var page = template.Must(template.New("certificate").Funcs(template.FuncMap{
	"ms":     ms,
	"at":     func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/1e6) },
	"colors": func() template.CSS { return template.CSS(plot.CSS()) }, //nolint:gosec // our own
	"lost":   lostLines,
	"n":      func(n int64) string { return numtext.Thousands(float64(n)) },
}).Parse(pageText))

// WritePage writes a self-contained page of HTML.
func (c *Certificate) page() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		*Certificate
		Plot template.HTML
	}{c, template.HTML(c.plotOutages())}) //nolint:gosec // package plot escapes its text
	return b.Bytes(), err
}

// Class of the verdict, for its colour.
func (v Verdict) Class() string {
	return map[Verdict]string{Pass: "good", Missed: "doubt", Invalid: "doubt", Violated: "bad"}[v]
}

// plotOutages is the outage and the time to redundancy of every step, on a
// logarithmic scale.
func (c *Certificate) plotOutages() string {
	if len(c.Steps) == 0 {
		return ""
	}
	const width, height, left, top, bottom = 920.0, 300.0, 64.0, 24.0, 262.0
	d := plot.New(width, height, "Outage of each step")
	d.Desc = "Milliseconds without an acknowledgement of the worst session, for each step; and until redundant again. Logarithmic."
	lo, hi := 1e9, 0.0
	for i := range c.Steps {
		for _, v := range []time.Duration{c.Steps[i].Outage, c.Steps[i].RedundantAfter} {
			if v > 0 {
				lo, hi = min(lo, float64(v)/1e6), max(hi, float64(v)/1e6)
			}
		}
	}
	if hi == 0 {
		return ""
	}
	lo, hi = plot.LogBounds(lo, hi)
	f := d.Frame(left, top, width-150, bottom, plot.Scale{Lo: -0.5, Hi: float64(len(c.Steps)) - 0.5}, plot.Scale{Lo: lo, Hi: hi, Log: true})
	f.AxisY(f.Y.Ticks(6), func(v float64) string { return fmt.Sprintf("%g ms", v) })
	var at []float64
	for i := range c.Steps {
		at = append(at, float64(i))
	}
	f.AxisX(at, func(v float64) string { return fmt.Sprint(c.Steps[int(v)].Index) })
	for k, series := range []struct {
		name  string
		value func(*Step) time.Duration
	}{{"outage", func(s *Step) time.Duration { return s.Outage }}, {"redundant after", func(s *Step) time.Duration { return s.RedundantAfter }}} {
		m := plot.Mark{Shape: plot.ShapeOf(k), Role: plot.Kind(k), Radius: 4}
		for i := range c.Steps {
			if v := series.value(&c.Steps[i]); v > 0 {
				f.Mark(m, fmt.Sprintf("step %d, %s: %s %s ms", c.Steps[i].Index, c.Steps[i].Type, series.name, ms(v)), f.At(float64(i), float64(v)/1e6))
			}
		}
		y := top + 10 + 20*float64(k)
		f.Mark(m, "", plot.Point{X: width - 136, Y: y - 4})
		f.Text(plot.Text{At: plot.Point{X: width - 124, Y: y}, Words: series.name})
	}
	return d.Inline()
}
