package operations

import (
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
)

// Sizes of the drawing, in pixels.
const (
	width  = 920.0
	left   = 62.0
	right  = width - 14
	head   = 40.0 // names of what was done
	body   = 200.0
	strip  = 30.0 // failed orders
	axis   = 34.0
	legend = 22.0
)

// Draw is the p99 of the orders over time: a step line, up to the worst order of each moment as an area, the median dashed;
// what was done is a stretch of time with its name, changes of primary and members are lines in it.
func Draw(c *Course) *plot.Drawing {
	height := head + body + axis + legend
	if c.Failed > 0 {
		height += strip
	}
	d := plot.New(width, height, c.Title)
	d.Desc = "Latency of orders, from their creation to the acknowledgement, over the time they were created: the line is the 99th percentile of each stretch of time, the area reaches up to its worst order, dashed is the median."
	x := plot.Scale{Lo: 0, Hi: 1}
	lo, hi := 1.0, 10.0
	if n := len(c.Moments); n > 0 {
		x.Hi = (c.Moments[n-1].At + c.Step).Seconds()
		lo, hi = bounds(c.Moments)
	}
	f := d.Frame(left, head, right, head+body, x, plot.Scale{Lo: lo, Hi: hi, Log: true})
	drawActs(f, c.Acts)
	f.AxisY(f.Y.Ticks(6), numtext.Micros)
	drawMoments(f, c)
	bottom := f.Bottom
	if c.Failed > 0 {
		drawFailed(d.Frame(left, bottom+6, right, bottom+strip, x, plot.Scale{}), c)
		bottom += strip
	}
	low := d.Frame(left, bottom, right, bottom, x, plot.Scale{})
	low.AxisX(low.X.Ticks(10), func(s float64) string { return fmt.Sprintf("%.4g s", s) })
	below := fmt.Sprintf("p99 (line), median (dashed) and worst (area) of the orders created in each %s; vertical lines: primary or members changed; %s orders, %s failed",
		c.Step, numtext.Thousands(float64(c.Created)), numtext.Thousands(float64(c.Failed)))
	d.Text(plot.Text{At: plot.Point{X: left, Y: height - 8}, Words: below, Role: plot.Muted, Size: 11.5})
	return d
}

// bounds of the latencies, in microseconds.
func bounds(moments []Moment) (lo, hi float64) {
	lo, hi = micros(moments[0].P50), 0
	for i := range moments {
		if moments[i].N > 0 {
			lo, hi = min(lo, micros(moments[i].P50)), max(hi, micros(moments[i].Max))
		}
	}
	return plot.LogBounds(max(lo, 1), max(hi, 1))
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func drawActs(f *plot.Frame, acts []Act) {
	end := f.Left
	for i := range acts {
		a := &acts[i]
		from, to := f.X.At(a.From.Seconds()), f.X.At(max(a.To, a.Redundant, a.From).Seconds())
		f.Rect(plot.Pause, a.What, from, f.Top, max(to-from, 1), f.Bottom-f.Top)
		for _, at := range a.Changes {
			x := f.X.At(at.Seconds())
			f.Line(plot.Stroke{Role: plot.Muted, Width: 1, Dash: plot.Dash(2)}, plot.Point{X: x, Y: f.Top}, plot.Point{X: x, Y: f.Bottom})
		}
		for _, x := range []float64{from, max(to, from+1)} {
			f.Line(plot.Stroke{Role: plot.Muted, Width: 1.2}, plot.Point{X: x, Y: f.Top - 6}, plot.Point{X: x, Y: f.Bottom})
		}
		words := fmt.Sprintf("%s (%.1f s)", a.What, (max(a.To, a.Redundant) - a.From).Seconds())
		y := f.Top - 10
		if from < end {
			y -= 14 // beside the name before there is no room
		}
		at := min(from, max(f.Left, f.Right-plot.TextWidth(words, 12)))
		end = at + plot.TextWidth(words, 12) + 8
		f.Text(plot.Text{At: plot.Point{X: at, Y: y}, Words: plot.Fit(words, 12, f.Right-f.Left), Size: 12, Bold: true})
	}
}

func drawMoments(f *plot.Frame, c *Course) {
	var worst, p99, median []plot.Point
	for i := range c.Moments {
		m := &c.Moments[i]
		if m.N == 0 {
			continue
		}
		// Each moment is a step, so that one bad moment is seen at its width.
		for _, at := range []time.Duration{m.At, m.At + c.Step} {
			x := at.Seconds()
			worst = append(worst, f.At(x, micros(m.Max)))
			p99 = append(p99, f.At(x, micros(m.P99)))
			median = append(median, f.At(x, micros(m.P50)))
		}
	}
	area := slices.Clone(worst)
	for i := len(p99) - 1; i >= 0; i-- {
		area = append(area, p99[i])
	}
	f.Area(plot.Soft, "", area...)
	f.Line(plot.Stroke{Role: plot.Kind(2), Width: 1.3, Dash: plot.Dash(2)}, median...)
	f.Line(plot.Stroke{Role: plot.Here, Width: 1.8}, p99...)
}

func drawFailed(f *plot.Frame, c *Course) {
	top := int64(1)
	for i := range c.Moments {
		top = max(top, c.Moments[i].Failed)
	}
	f.Y = plot.Scale{Lo: 0, Hi: float64(top), From: f.Bottom, To: f.Top}
	for i := range c.Moments {
		if m := &c.Moments[i]; m.Failed > 0 {
			x, y := f.X.At(m.At.Seconds()), f.Y.At(float64(m.Failed))
			f.Rect(plot.Bad, fmt.Sprintf("%d orders failed", m.Failed), x, y, max(f.X.At((m.At+c.Step).Seconds())-x, 1), f.Bottom-y)
		}
	}
	f.Text(plot.Text{At: plot.Point{X: f.Left - 7, Y: f.Top + 10}, Words: "failed", Role: plot.Bad, Size: 10.5, Anchor: plot.End})
	f.Text(plot.Text{At: plot.Point{X: f.Left - 7, Y: f.Bottom}, Words: fmt.Sprint(top), Role: plot.Muted, Size: 10.5, Anchor: plot.End})
}
