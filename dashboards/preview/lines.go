package preview

import (
	"math"
	"time"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/internal/plot"
)

const legendLine = 16.0

// lines draws values over time, with a legend below or, as a table, at the right.
func (pg *page) lines(p *grafana.Panel, all []shownSeries, in box) {
	beside := false
	if l, ok := p.Options["legend"].(map[string]any); ok && l["displayMode"] == "table" {
		beside = true
	}
	stacked := false
	if st, ok := p.FieldConfig.Defaults.Custom["stacking"].(map[string]any); ok {
		stacked = st["mode"] == "normal"
	}
	frameBox := in.inner(52, 4, 4, 20)
	if beside {
		frameBox.w -= pg.legendTable(p, all, in)
	} else {
		frameBox.h -= pg.legend(all, in)
	}
	if stacked {
		sums := stack(all)
		f := pg.over(p, sums, frameBox, false)
		for i := len(sums) - 1; i >= 0; i-- { // the lower ones are drawn over the upper
			pg.areaUnder(f, sums[i])
		}
		return
	}
	f := pg.over(p, all, frameBox, logarithmic(p))
	for _, s := range all {
		pg.line(f, s, p.FieldConfig.Defaults.Custom["lineInterpolation"] == "stepAfter")
	}
}

func logarithmic(p *grafana.Panel) bool {
	d, ok := p.FieldConfig.Defaults.Custom["scaleDistribution"].(map[string]any)
	return ok && d["type"] == "log"
}

// over lays the scales for the values, with the axes and the annotations.
func (pg *page) over(p *grafana.Panel, all []shownSeries, b box, log bool) *plot.Frame {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, v := range s.Samples {
			if !number(v.Value) || log && v.Value <= 0 {
				continue
			}
			lo, hi = min(lo, v.Value), max(hi, v.Value)
		}
	}
	if hi < lo { // no number at all
		lo, hi = 0, 1
	}
	y := plot.Scale{Lo: lo, Hi: hi, Log: log}
	d := &p.FieldConfig.Defaults
	switch {
	case log:
		y.Lo, y.Hi = plot.LogBounds(lo, hi)
	default:
		if d.Min != nil {
			y.Lo = min(*d.Min, lo)
		}
		if d.Max != nil {
			y.Hi = max(*d.Max, hi)
		} else {
			y.Hi += (y.Hi - y.Lo) * 0.05
		}
		if y.Hi <= y.Lo {
			y.Hi = y.Lo + 1
		}
	}
	return pg.frame(b, y, func(v float64) string { return inUnit(d.Unit, nil, v) })
}

// frame has the axes of a panel over time. The time before the first scrape is included.
func (pg *page) frame(b box, y plot.Scale, label func(float64) string) *plot.Frame {
	from, to := float64(pg.window.From.Unix()), float64(pg.window.To.Unix())
	f := pg.Frame(b.x, b.y, b.x+b.w, b.y+b.h, plot.Scale{Lo: from, Hi: to}, y)
	f.AxisY(y.Ticks(max(2, int(b.h/40))), label)
	step := plot.Step((to - from) / max(2, b.w/90))
	for _, nice := range []float64{5, 10, 15, 30, 60, 120, 300} {
		if nice >= step {
			step = nice
			break
		}
	}
	var ticks []float64
	for t := math.Ceil(from/step) * step; t <= to; t += step {
		ticks = append(ticks, t)
	}
	f.AxisX(ticks, func(v float64) string { return time.Unix(int64(v), 0).UTC().Format("15:04:05") })
	for _, a := range pg.marks {
		for _, s := range a.Series {
			if len(s.Samples) > 0 {
				x := f.X.At(float64(s.Samples[0].At.Unix()))
				f.Line(plot.Stroke{Role: plot.Kind(1), Width: 1.2, Dash: []float64{3, 3}}, plot.Point{X: x, Y: f.Top}, plot.Point{X: x, Y: f.Bottom})
			}
		}
	}
	return f
}

// line leaves out NaN.
func (pg *page) line(f *plot.Frame, s shownSeries, steps bool) {
	var points []plot.Point
	flush := func() {
		if len(points) == 1 {
			f.Mark(plot.Mark{Shape: plot.Circle, Role: s.role, Radius: 1.6}, s.name, points[0])
		} else if len(points) > 1 {
			f.Line(plot.Stroke{Role: s.role, Width: 1.5, Dash: s.dash}, points...)
		}
		points = nil
	}
	var last time.Time
	for _, v := range s.Samples {
		if !number(v.Value) || f.Y.Log && v.Value <= 0 {
			flush()
			continue
		}
		if len(points) > 0 && v.At.Sub(last) > 3*pg.window.Step {
			flush() // a gap in the series
		}
		at := f.At(float64(v.At.UnixMilli())/1000, v.Value)
		if steps && len(points) > 0 {
			points = append(points, plot.Point{X: at.X, Y: points[len(points)-1].Y})
		}
		points, last = append(points, at), v.At
	}
	flush()
}

// areaUnder fills from the base line up to the series.
func (pg *page) areaUnder(f *plot.Frame, s shownSeries) {
	var points []plot.Point
	for _, v := range s.Samples {
		if number(v.Value) {
			points = append(points, f.At(float64(v.At.UnixMilli())/1000, v.Value))
		}
	}
	if len(points) < 2 {
		return
	}
	area := append([]plot.Point{{X: points[0].X, Y: f.Bottom}}, points...)
	pg.Area(s.role, s.name, append(area, plot.Point{X: points[len(points)-1].X, Y: f.Bottom})...)
}

// stack adds each series to those before it, time by time.
func stack(all []shownSeries) []shownSeries {
	sum := map[time.Time]float64{}
	out := make([]shownSeries, len(all))
	for i, s := range all {
		out[i] = s
		out[i].Samples = nil
		for _, v := range s.Samples {
			if number(v.Value) {
				sum[v.At] += v.Value
				v.Value = sum[v.At]
			}
			out[i].Samples = append(out[i].Samples, v)
		}
	}
	return out
}

// legend writes the names below and returns how high it is.
func (pg *page) legend(all []shownSeries, in box) float64 {
	const size, key = 11.0, 18.0
	x, lines := in.x, 1
	type place struct {
		x    float64
		line int
	}
	var at []place
	for _, s := range all {
		w := key + plot.TextWidth(s.name, size) + 14
		if x+w > in.x+in.w && x > in.x {
			x, lines = in.x, lines+1
		}
		if lines > 2 {
			lines = 2
			break
		}
		at = append(at, place{x, lines})
		x += w
	}
	top := in.y + in.h - float64(lines)*legendLine
	for i, p := range at {
		y := top + float64(p.line)*legendLine - 3
		pg.Line(plot.Stroke{Role: all[i].role, Width: 2.5, Dash: all[i].dash}, plot.Point{X: p.x, Y: y - 4}, plot.Point{X: p.x + 13, Y: y - 4})
		pg.Text(plot.Text{At: plot.Point{X: p.x + key, Y: y}, Words: all[i].name, Role: plot.Muted, Size: size})
	}
	return float64(lines)*legendLine + 2
}

// legendTable writes the names with their last and greatest values at the right, and returns how wide it is.
func (pg *page) legendTable(p *grafana.Panel, all []shownSeries, in box) float64 {
	const size, line, figures = 11.0, 17.0, 118.0
	widest := 0.0
	for _, s := range all {
		widest = max(widest, plot.TextWidth(s.name, size))
	}
	width := min(widest+22+figures, in.w*0.5)
	x, right := in.x+in.w-width+8, in.x+in.w
	pg.Text(plot.Text{At: plot.Point{X: right - 60, Y: in.y + 8}, Words: "last", Role: plot.Muted, Size: size, Anchor: plot.End})
	pg.Text(plot.Text{At: plot.Point{X: right, Y: in.y + 8}, Words: "max", Role: plot.Muted, Size: size, Anchor: plot.End})
	for i, s := range all {
		y := in.y + 8 + float64(i+1)*line
		last, most := math.NaN(), math.NaN()
		for _, v := range s.Samples {
			if number(v.Value) {
				last = v.Value
				if math.IsNaN(most) || v.Value > most {
					most = v.Value
				}
			}
		}
		pg.Line(plot.Stroke{Role: s.role, Width: 2.5, Dash: s.dash}, plot.Point{X: x, Y: y - 4}, plot.Point{X: x + 12, Y: y - 4})
		pg.Text(plot.Text{At: plot.Point{X: x + 17, Y: y}, Words: fit(s.name, width-22-figures, size), Size: size})
		pg.Text(plot.Text{At: plot.Point{X: right - 60, Y: y}, Words: text(p, last), Size: size, Anchor: plot.End})
		pg.Text(plot.Text{At: plot.Point{X: right, Y: y}, Words: text(p, most), Size: size, Anchor: plot.End})
	}
	return width
}
