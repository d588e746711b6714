package growth

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ordergrid/ordergrid/internal/plot"
)

// Size of a plot, in pixels.
const width, height = 720, 400

// SVG writes the curve as a plot: a logarithmic x axis, a y axis from 0, the range
// over the rounds as a bar at each point.
func (c *Curve) SVG(w io.Writer) error {
	lo, hi, most := math.Inf(1), 0.0, 0.0
	names := make([]string, 0, len(c.Series))
	for _, s := range c.Series {
		names = append(names, s.System)
		for i := range s.Points {
			lo, hi = min(lo, s.Points[i].X), max(hi, s.Points[i].X)
			_, upper := c.span(&s.Points[i])
			most = max(most, upper, c.Value(&s.Points[i]))
		}
	}
	if hi == 0 {
		return fmt.Errorf("growth/%s has no point", c.Name)
	}
	d := plot.New(width, height, c.Title)
	d.Desc = c.Unit() + " over " + c.Grows
	f := d.Frame(64, 48, width-plot.LabelRoom(names...)-6, height-50, plot.Scale{Lo: lo, Hi: hi, Log: true}, plot.Scale{Lo: 0, Hi: ceiling(most)})
	d.Text(plot.Text{At: plot.Point{X: f.Left, Y: 18}, Words: c.Title, Size: 14, Bold: true})
	d.Text(plot.Text{At: plot.Point{X: f.Left, Y: 38}, Words: c.Unit(), Role: plot.Muted})
	d.Text(plot.Text{At: plot.Point{X: (f.Left + f.Right) / 2, Y: height - 10}, Words: c.Grows, Role: plot.Muted, Anchor: plot.Middle})
	f.AxisY([]float64{0, f.Y.Hi / 4, f.Y.Hi / 2, f.Y.Hi * 3 / 4, f.Y.Hi}, short)
	f.AxisX(c.xs(), short)
	labels := make([]plot.Label, 0, len(c.Series))
	for n, s := range c.Series {
		labels = append(labels, c.line(f, n, &s))
	}
	f.Labels(f.Right+4, labels)
	return d.SVG(w)
}

func (c *Curve) line(f *plot.Frame, n int, s *Series) plot.Label {
	role := plot.Kind(n)
	var path []plot.Point
	for i := range s.Points {
		p := &s.Points[i]
		at := f.At(p.X, c.Value(p))
		lower, upper := c.span(p)
		path = append(path, at)
		f.Line(plot.Stroke{Role: role, Width: 1}, f.At(p.X, lower), f.At(p.X, upper))
		f.Mark(plot.Mark{Shape: plot.ShapeOf(n), Role: role, Radius: 3}, fmt.Sprintf("%s at %s: %s %s", s.System, short(p.X), short(c.Value(p)), c.Unit()), at)
	}
	f.Line(plot.Stroke{Role: role, Width: 2, Dash: plot.Dash(n)}, path...)
	return plot.Label{Words: s.System, Role: role, Y: path[len(path)-1].Y, Bold: true}
}

// span of a point over the rounds.
func (c *Curve) span(p *Point) (lower, upper float64) {
	if c.Unit() == "orders/s" {
		return p.Row.Min.OrdersPerS, p.Row.Max.OrdersPerS
	}
	return p.Row.Min.P50, p.Row.Max.P50
}

// xs are all values on the x axis, rising, once each.
func (c *Curve) xs() (out []float64) {
	for _, s := range c.Series {
		for i := range s.Points {
			out = append(out, s.Points[i].X)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ceiling is the next number of 1, 2, 4, 6, 8 times a power of ten.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 6, 8} {
		if v <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}
