package htmlreport

import (
	"fmt"
	"math"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/report"
)

// maxNines is the last percentile of the curves: p99.99.
const maxNines = 4

// nines is the position of a percentile on the axis: 90 at 1, 99 at 2 ...
func nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

// percentiles is the whole distribution at up to five rates.
func percentiles(v *view) (Figure, bool) {
	groups := spaced(v.main, 5)
	f := Figure{
		Name:  "percentiles",
		Title: "Create-to-end by percentile",
		Caption: "A line is one rate: the share of orders that took at most a time. A line ends where fewer than ten orders are beyond it. " +
			"Hollow marks on dashed lines are the published percentiles of the same rate.",
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing {
		var lines []distribution
		for i, g := range groups {
			l := distribution{name: rateText(g), doubtful: !valid(g), role: plot.Rank(i, len(groups)), dash: plot.Dash(len(groups) - 1 - i), h: g.CreateToEnd}
			for _, p := range []float64{50, 90, 95} {
				if us, ok := v.published(g, fmt.Sprintf("c2e p%g", p)); ok {
					l.published = append(l.published, plot.Point{X: nines(p), Y: us})
				}
			}
			lines = append(lines, l)
		}
		return drawDistributions(f, width, lines)
	}
	return f, len(groups) > 0
}

// stages shows the parts of the latency at the highest rate.
func stages(v *view) (Figure, bool) {
	if len(v.main) == 0 {
		return Figure{}, false
	}
	g := v.main[len(v.main)-1]
	f := Figure{
		Name:  "stages",
		Title: "Where the time goes at " + rateText(g),
		Caption: "The grid alone (send-to-end), with the wait for a sender (create-to-end), with the creator's own lateness (intended-to-end), and that lateness by itself. " +
			"Where send-to-end stays low and the others rise, orders waited behind a stall.",
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing {
		return drawDistributions(f, width, []distribution{
			{name: "intended-to-end", role: plot.Kind(3), dash: plot.Dash(2), h: g.IntendedToEnd},
			{name: "create-to-end", role: plot.Kind(0), h: g.CreateToEnd},
			{name: "send-to-end", role: plot.Kind(2), dash: plot.Dash(1), h: g.SendToEnd},
			{name: "created late", role: plot.Muted, dash: plot.Dash(3), h: g.Lag},
		})
	}
	return f, g.SendToEnd.Count() > 0
}

// distribution is one line over percentiles.
type distribution struct {
	name      string
	doubtful  bool
	role      plot.Role
	dash      []float64
	h         report.Histogram
	published []plot.Point // nines, microseconds
}

func (l distribution) label() string {
	if l.doubtful {
		return l.name + " ×"
	}
	return l.name
}

// end is the last position with ten samples beyond.
func (l distribution) end() float64 {
	return min(maxNines, math.Log10(max(float64(l.h.Count())/10, 1)))
}

func drawDistributions(f *Figure, width float64, lines []distribution) *plot.Drawing {
	var names []string
	for i := range lines {
		names = append(names, lineName(lines[i].label(), width))
	}
	height, left, right := 340.0, 62.0, width-plot.LabelRoom(names...)
	if width < Wide {
		height, left = 300, 52
	}
	d := plot.New(width, height, f.Title)
	lo, hi, end := math.Inf(1), 0.0, 1.5
	for _, l := range lines {
		if l.h.Count() == 0 {
			continue
		}
		end = max(end, l.end())
		lo = min(lo, max(float64(l.h.Percentile(1))/1e3, 0.1))
		hi = max(hi, float64(l.h.Percentile(100*(1-math.Pow(10, -l.end()))))/1e3)
		for _, p := range l.published {
			lo, hi = min(lo, p.Y), max(hi, p.Y)
		}
	}
	if hi == 0 {
		return d
	}
	lo, hi = plot.LogBounds(lo, hi)
	fr := d.Frame(left, 14, right, height-44, plot.Scale{Lo: 0, Hi: end}, plot.Scale{Lo: lo, Hi: hi, Log: true})
	fr.AxisY(fr.Y.Ticks(8), numtext.Micros)
	at := map[float64]string{0: "0"}
	ticks := []float64{0}
	for _, p := range []string{"50", "90", "95", "99", "99.9", "99.99"} {
		var percent float64
		_, _ = fmt.Sscan(p, &percent) // the list above
		if n := nines(percent); n <= end+1e-9 {
			at[n], ticks = p, append(ticks, n)
		}
	}
	fr.AxisX(ticks, func(v float64) string { return at[v] })
	below(fr, "per cent of the orders took at most")
	var labels []plot.Label
	for _, l := range lines {
		if l.h.Count() == 0 {
			continue
		}
		points := l.points(fr)
		d.Line(plot.Stroke{Role: l.role, Width: 2, Dash: l.dash}, points...)
		role := l.role
		if l.doubtful {
			role = plot.Doubt
		}
		last := points[len(points)-1]
		if last.X < right-1 { // a short line has its end marked
			d.Mark(plot.Mark{Role: l.role, Radius: 2.5}, "", last)
		}
		labels = append(labels, plot.Label{Words: lineName(l.label(), width), Role: role, Y: last.Y, Bold: true})
	}
	drawPublished(fr, lines)
	fr.Labels(right+4, labels)
	return d
}

func (l distribution) points(fr *plot.Frame) (out []plot.Point) {
	const steps = 160
	end := l.end()
	for i := range steps + 1 {
		n := end * float64(i) / steps
		us := max(float64(l.h.Percentile(100*(1-math.Pow(10, -n))))/1e3, fr.Y.Lo)
		p := fr.At(n, us)
		if k := len(out); k > 1 && out[k-1].Y == p.Y && out[k-2].Y == p.Y {
			out[k-1] = p // level: one piece
			continue
		}
		out = append(out, p)
	}
	return out
}

// drawPublished draws the published points of all lines with their names, one
// below the other.
func drawPublished(fr *plot.Frame, lines []distribution) {
	var ends []plot.Label
	x := 0.0
	for _, l := range lines {
		var line []plot.Point
		for _, p := range l.published {
			line = append(line, fr.At(p.X, p.Y))
		}
		fr.Line(plot.Stroke{Role: plot.Published, Width: 1.2, Dash: plot.Dash(1)}, line...)
		for i, at := range line {
			hint := fmt.Sprintf("published, %s, p%.0f: %s", l.name, 100*(1-math.Pow(10, -l.published[i].X)), latencyText(l.published[i].Y))
			fr.Mark(plot.Mark{Shape: plot.Square, Role: plot.Published, Radius: 3.5, Hollow: true}, hint, at)
		}
		if n := len(line); n > 0 {
			x = max(x, line[n-1].X)
			ends = append(ends, plot.Label{Words: "published " + strings.TrimSuffix(l.name, " orders/s"), Role: plot.Published, Y: line[n-1].Y})
		}
	}
	for i := range ends {
		ends[i].Words = plot.Fit(ends[i].Words, 12, fr.Width-x-20)
	}
	fr.Labels(x+4, ends)
}
