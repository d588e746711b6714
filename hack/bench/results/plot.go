package results

import (
	"io"

	"github.com/ordergrid/ordergrid/internal/plot"
)

// SVG writes the curve as a plot: a logarithmic x axis, a y axis from 0, the range
// over the rounds as a bar at each point.
func (c *Curve) SVG(w io.Writer) error {
	l := plot.Lines{Title: c.Title, Unit: c.Unit(), Grows: c.Grows, Number: short}
	for _, s := range c.Series {
		line := plot.Curve{Name: s.System}
		for i := range s.Points {
			p := &s.Points[i]
			lower, upper := c.span(p)
			line.Points = append(line.Points, plot.XY{X: p.X, Y: c.Value(p), Lower: lower, Upper: upper})
		}
		l.Curves = append(l.Curves, line)
	}
	return l.SVG(w)
}

// span of a point over the rounds.
func (c *Curve) span(p *Point) (lower, upper float64) {
	if c.Unit() == "orders/s" {
		return p.Row.Min.OrdersPerS, p.Row.Max.OrdersPerS
	}
	return p.Row.Min.P50, p.Row.Max.P50
}
