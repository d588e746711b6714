package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Lines is a chart of figures over a growing quantity: an x axis that is logarithmic or, with Linear,
// not; a y axis from 0 or, with Log, logarithmic.
type Lines struct {
	Title  string
	Unit   string // of y
	Grows  string // quantity of the x axis
	Log    bool
	Linear bool
	Curves []Curve
	// Number formats values at the axes.
	Number func(float64) string
}

// Curve is one line.
type Curve struct {
	Name   string
	Points []XY // by X
}

// XY is a measured value, with its range over several rounds as a bar; without one Lower and Upper
// are Y.
type XY struct{ X, Y, Lower, Upper float64 }

// Size of a chart of lines, in pixels.
const (
	LinesWidth  = 720
	LinesHeight = 400
)

// maxMarks is how many points of a curve are marked.
const maxMarks = 50

// SVG writes the chart as a file of its own.
func (l *Lines) SVG(w io.Writer) error {
	d, err := l.Draw()
	if err != nil {
		return err
	}
	return d.SVG(w)
}

// Draw draws the chart.
func (l *Lines) Draw() (*Drawing, error) {
	lo, hi, least, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	names := make([]string, 0, len(l.Curves))
	var xs []float64
	for _, c := range l.Curves {
		names = append(names, c.Name)
		for _, p := range c.Points {
			xs = append(xs, p.X)
			lo, hi = min(lo, p.X), max(hi, p.X)
			least, most = min(least, p.Y, p.Lower), max(most, p.Y, p.Upper)
		}
	}
	if hi == 0 {
		return nil, fmt.Errorf("%s: there are no points to draw", l.Title)
	}
	slices.Sort(xs)
	y := Scale{Hi: ceiling(most)}
	ticks := []float64{0, y.Hi / 4, y.Hi / 2, y.Hi * 3 / 4, y.Hi}
	if l.Log {
		y = Scale{Log: true}
		y.Lo, y.Hi = LogBounds(least, most)
		ticks = y.Ticks(8)
	}
	d := New(LinesWidth, LinesHeight, l.Title)
	d.Desc = l.Unit + " over " + l.Grows
	f := d.Frame(64, 48, LinesWidth-LabelRoom(names...)-6, LinesHeight-50, Scale{Lo: lo, Hi: hi, Log: !l.Linear}, y)
	d.Text(Text{At: Point{X: f.Left, Y: 18}, Words: l.Title, Size: 14, Bold: true})
	d.Text(Text{At: Point{X: f.Left, Y: 38}, Words: l.Unit, Role: Muted})
	d.Text(Text{At: Point{X: (f.Left + f.Right) / 2, Y: LinesHeight - 10}, Words: l.Grows, Role: Muted, Anchor: Middle})
	f.AxisY(ticks, l.Number)
	if xs = slices.Compact(xs); l.Linear {
		xs = f.X.Ticks(6)
	}
	f.AxisX(xs, l.Number)
	labels := make([]Label, 0, len(l.Curves))
	for n := range l.Curves {
		if len(l.Curves[n].Points) > 0 {
			labels = append(labels, l.line(f, n))
		}
	}
	f.Labels(f.Right+4, labels)
	return d, nil
}

func (l *Lines) line(f *Frame, n int) Label {
	c, role := &l.Curves[n], Kind(n)
	var path []Point
	for _, p := range c.Points {
		at := f.At(p.X, p.Y)
		if path = append(path, at); len(c.Points) > maxMarks {
			continue
		}
		f.Line(Stroke{Role: role, Width: 1}, f.At(p.X, p.Lower), f.At(p.X, p.Upper))
		f.Mark(Mark{Shape: ShapeOf(n), Role: role, Radius: 3}, fmt.Sprintf("%s at %s: %s %s", c.Name, l.Number(p.X), l.Number(p.Y), l.Unit), at)
	}
	f.Line(Stroke{Role: role, Width: 2, Dash: Dash(n)}, path...)
	return Label{Words: c.Name, Role: role, Y: path[len(path)-1].Y, Bold: true}
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
