package htmlreport

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
)

// point of a curve over rates.
type point struct {
	rate, us float64
	valid    bool
}

// curve is one statistic over rates.
type curve struct {
	name   string
	role   plot.Role
	dash   []float64
	mark   plot.Mark
	bold   bool
	points []point
}

// rates is latency against the rate, published and measured: the tables as a picture.
func rates(v *view) (Figure, bool) {
	if v.r.Scenario == published.TimeplotScenario { // its rates are of grids of several sizes
		return Figure{}, false
	}
	f := Figure{
		Name:    "rates",
		Title:   "Latency against the rate",
		Caption: "Create-to-end, mean and median; filled marks and solid lines are measured here, hollow marks and dashed lines are published. Both axes are logarithmic.",
	}
	var curves []curve
	if ways := v.arrivals(); len(ways) > 1 {
		by := "the kind of arrival"
		if v.r.Scenario == published.WriteScenario {
			by = "what was written, and to how many copies"
		}
		f.Caption = "Create-to-end, mean (solid) and p99 (dashed), by " + by + ". Both axes are logarithmic."
		curves = v.byArrival(ways)
	} else {
		curves = v.besidePublished()
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing { return drawCurves(f, width, curves, "orders/s in total") }
	return f, len(v.rates()) > 1
}

// besidePublished are mean and median, measured and published.
func (v *view) besidePublished() (curves []curve) {
	for i, m := range []struct{ metric, name string }{{"c2e mean", "mean"}, {"c2e p50", "median"}} {
		shape := plot.ShapeOf(i)
		here := curve{name: m.name + " here", role: plot.Here, mark: plot.Mark{Shape: shape, Role: plot.Here, Radius: 4}, bold: true}
		pub := curve{name: m.name + " published", role: plot.Published, dash: plot.Dash(1), mark: plot.Mark{Shape: shape, Role: plot.Published, Radius: 4, Hollow: true}}
		for _, g := range v.main {
			if us, ok := v.here(g, m.metric); ok {
				here.points = append(here.points, point{float64(g.TotalRate), us, valid(g)})
			}
			if us, ok := v.published(g, m.metric); ok {
				pub.points = append(pub.points, point{float64(g.TotalRate), us, true})
			}
		}
		curves = append(curves, here, pub)
	}
	return curves
}

// byArrival are mean and p99 of each kind of arrival.
func (v *view) byArrival(ways []string) (curves []curve) {
	for i, way := range ways {
		for j, m := range []string{"mean", "p99"} {
			c := curve{name: m + ", " + cut(way, longestWay), role: plot.Kind(i), dash: plot.Dash(j), mark: plot.Mark{Shape: plot.ShapeOf(i), Role: plot.Kind(i), Radius: 4}, bold: j == 0}
			for _, g := range v.main {
				if us, ok := v.here(g, "c2e "+m); ok && g.Arrival == way {
					c.points = append(c.points, point{float64(g.TotalRate), us, valid(g)})
				}
			}
			curves = append(curves, c)
		}
	}
	return curves
}

// longestWay is how much of a group's Arrival is drawn, in characters: "8 fields, 2 copies".
const longestWay = 18

// arrivals are the kinds of arrival.
func (v *view) arrivals() (out []string) {
	for _, g := range v.main {
		if !slices.Contains(out, g.Arrival) {
			out = append(out, g.Arrival)
		}
	}
	return out
}

// rates are the rates of the main groups.
func (v *view) rates() (out []float64) {
	for _, g := range v.main {
		out = append(out, float64(g.TotalRate))
	}
	return unique(out)
}

// scaling is the mean of one, two and three pairs over the rate of a probe: where pairs do not slow
// each other down, the lines coincide.
func scaling(v *view) (Figure, bool) {
	f := Figure{
		Name:    "scaling",
		Title:   "One pair beside several",
		Caption: "Create-to-end mean over the rate of one probe. Where pairs of servers do not slow each other down, the lines coincide. Solid: here; dashed: published.",
	}
	var curves []curve
	for i, pairs := 0, 1; pairs <= 3; i, pairs = i+2, pairs+1 {
		shape := plot.ShapeOf(pairs - 1)
		name := fmt.Sprintf("%d pairs", pairs)
		if pairs == 1 {
			name = "1 pair"
		}
		here := curve{name: name + " here", role: plot.Kind(pairs - 1), mark: plot.Mark{Shape: shape, Role: plot.Kind(pairs - 1), Radius: 4}, bold: true}
		pub := curve{name: name + " published", role: plot.Published, dash: plot.Dash(pairs), mark: plot.Mark{Shape: shape, Role: plot.Published, Radius: 4, Hollow: true}}
		for _, g := range v.groups {
			if g.Pairs != pairs {
				continue
			}
			if us, ok := v.here(g, "c2e mean"); ok {
				here.points = append(here.points, point{float64(g.Rate), us, valid(g)})
			}
			if us, ok := v.published(g, "c2e mean"); ok {
				pub.points = append(pub.points, point{float64(g.Rate), us, true})
			}
		}
		if len(here.points) > 0 {
			curves = append(curves, here, pub)
		}
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing {
		return drawCurves(f, width, curves, "orders/s of each probe")
	}
	return f, len(curves) > 2
}

func drawCurves(f *Figure, width float64, curves []curve, xName string) *plot.Drawing {
	var names []string
	for _, c := range curves {
		names = append(names, lineName(c.name, width))
	}
	height, left, right := 340.0, 62.0, width-plot.LabelRoom(names...)
	if width < Wide {
		height, left = 300, 52
	}
	d := plot.New(width, height, f.Title)
	var xs, ys []float64
	doubtful := false
	for _, c := range curves {
		for _, p := range c.points {
			xs, ys = append(xs, p.rate), append(ys, p.us)
			doubtful = doubtful || !p.valid
		}
	}
	if len(xs) == 0 {
		return d
	}
	lo, hi := plot.LogBounds(least(ys), most(ys))
	x := plot.Scale{Lo: least(xs) / 1.08, Hi: most(xs) * 1.08, Log: true}
	fr := d.Frame(left, 22, right, height-44, x, plot.Scale{Lo: lo, Hi: hi, Log: true})
	fr.AxisY(fr.Y.Ticks(8), numtext.Micros)
	fr.AxisX(unique(xs), numtext.Thousands)
	below(fr, xName)
	var labels []plot.Label
	for _, c := range curves {
		var line []plot.Point
		for _, p := range c.points {
			line = append(line, fr.At(p.rate, p.us))
		}
		d.Line(plot.Stroke{Role: c.role, Width: 2, Dash: c.dash}, line...)
		for i, p := range c.points {
			hint := fmt.Sprintf("%s at %s orders/s: %s", c.name, numtext.Thousands(p.rate), latencyText(p.us))
			if !p.valid {
				d.Mark(plot.Mark{Shape: plot.Cross, Role: plot.Doubt, Radius: 6}, "", line[i])
				hint += ", not valid"
			}
			d.Mark(c.mark, hint, line[i])
		}
		if n := len(line); n > 0 {
			labels = append(labels, plot.Label{Words: lineName(c.name, width), Role: c.role, Y: line[n-1].Y, Bold: c.bold})
		}
	}
	fr.Labels(right+4, labels)
	if doubtful {
		d.Text(plot.Text{At: plot.Point{X: left, Y: 12}, Words: "× not valid, see the verdict", Role: plot.Doubt})
	}
	return d
}
