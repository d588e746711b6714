package preview

import (
	"math"
	"slices"
	"strconv"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/internal/plot"
)

func number(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// last number of a series.
func last(s Series) float64 {
	for i := len(s.Samples) - 1; i >= 0; i-- {
		if v := s.Samples[i].Value; number(v) {
			return v
		}
	}
	return math.NaN()
}

// figure is one large number: on its colour, or over the line of its history.
func (pg *page) figure(p *grafana.Panel, all []shownSeries, whole, in box) {
	v := last(all[0].Series)
	words, size := text(p, v), 32.0
	colour := threshold(p, v)
	if p.Options["colorMode"] == "background" {
		b := whole.inner(1, 28, 1, 1)
		pg.Rect(colour, words, b.x, b.y, b.w, b.h)
		pg.Text(plot.Text{At: plot.Point{X: b.x + b.w/2, Y: b.y + b.h/2 + 12}, Words: words, Role: plot.Surface, Size: size, Bold: true, Anchor: plot.Middle})
		return
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range all[0].Samples {
		if number(s.Value) {
			lo, hi = min(lo, s.Value), max(hi, s.Value)
		}
	}
	if hi < lo {
		lo, hi = 0, 1
	}
	base := whole.y + whole.h
	f := pg.Frame(whole.x+1, base-26, whole.x+whole.w-1, base-2, plot.Scale{Lo: float64(pg.window.From.Unix()), Hi: float64(pg.window.To.Unix())}, plot.Scale{Lo: lo, Hi: max(hi, lo*1.0001+1e-12)})
	pg.line(f, shownSeries{Series: all[0].Series, role: plot.Soft}, false)
	pg.Text(plot.Text{At: plot.Point{X: in.x + in.w/2, Y: in.y + in.h/2 + 4}, Words: words, Role: colour, Size: size, Bold: true, Anchor: plot.Middle})
}

// heatmap draws the buckets of native histograms over time; the y axis is logarithmic.
func (pg *page) heatmap(p *grafana.Panel, all []shownSeries, in box) {
	lo, hi, most := math.Inf(1), 0.0, 0.0
	for _, v := range all[0].Samples {
		for _, b := range v.Histogram {
			if b.Count > 0 && b.Low > 0 {
				lo, hi, most = min(lo, b.Low), max(hi, b.High), max(most, b.Count)
			}
		}
	}
	if hi == 0 {
		return
	}
	y := plot.Scale{Log: true}
	y.Lo, y.Hi = plot.LogBounds(lo, hi)
	f := pg.frame(in.inner(52, 4, 4, 38), y, func(v float64) string { return inUnit(p.FieldConfig.Defaults.Unit, nil, v) })
	step := pg.window.Step.Seconds()
	for _, v := range all[0].Samples {
		x := float64(v.At.UnixMilli()) / 1000
		left, right := f.X.At(x-step/2), f.X.At(x+step/2)
		for _, b := range v.Histogram {
			if b.Count <= 0 || b.Low <= 0 {
				continue
			}
			top, bottom := f.Y.At(b.High), f.Y.At(b.Low)
			pg.Rect(shade(b.Count/most), inUnit("s", nil, b.High)+": "+significant(b.Count)+"/s", left, top, right-left, bottom-top)
		}
	}
	// The key: from few to many.
	x := in.x + 52
	pg.Text(plot.Text{At: plot.Point{X: x, Y: in.y + in.h - 2}, Words: "few", Role: plot.Muted, Size: 11})
	for i := range plot.Ranks {
		pg.Rect(plot.Rank(i, plot.Ranks), "", x+28+float64(i)*22, in.y+in.h-11, 22, 10)
	}
	pg.Text(plot.Text{At: plot.Point{X: x + 34 + plot.Ranks*22, Y: in.y + in.h - 2}, Words: "many, up to " + significant(most) + "/s", Role: plot.Muted, Size: 11})
}

// shade of a share of the greatest count; the square root keeps single orders visible beside thousands.
func shade(share float64) plot.Role {
	return plot.Rank(int(math.Sqrt(share)*(plot.Ranks-1)+0.5), plot.Ranks)
}

// states draws a bar over time per series, in the colours of its values.
func (pg *page) states(p *grafana.Panel, all []shownSeries, in box) {
	slices.SortFunc(all, func(a, b shownSeries) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	names := 0.0
	for _, s := range all {
		names = max(names, plot.TextWidth(s.name, 11.5))
	}
	names = min(names, in.w*0.35)
	b := in.inner(names+8, 2, 4, 20+legendLine)
	f := pg.frame(b, plot.Scale{Lo: 0, Hi: float64(len(all))}, func(float64) string { return "" })
	height := b.h / float64(len(all))
	half := pg.window.Step.Seconds() / 2
	for i, s := range all {
		y := b.y + float64(i)*height
		pg.Text(plot.Text{At: plot.Point{X: b.x - 8, Y: y + height/2 + 4}, Words: fit(s.name, names, 11.5), Size: 11.5, Anchor: plot.End})
		for _, v := range s.Samples {
			m, ok := mapped(p, v.Value)
			if !ok {
				continue
			}
			x := float64(v.At.UnixMilli()) / 1000
			left, right := f.X.At(x-half), f.X.At(x+half)
			pg.Rect(role(m.Color), m.Text, left, y+2, right-left+0.4, height-4)
		}
	}
	words := map[int]grafana.Mapped{}
	for _, m := range p.FieldConfig.Defaults.Mappings {
		for _, w := range m.Options {
			words[w.Index] = w
		}
	}
	x, y := in.x, in.y+in.h-2
	for i := range len(words) {
		w := words[i]
		pg.Rect(role(w.Color), "", x, y-9, 12, 10)
		pg.Text(plot.Text{At: plot.Point{X: x + 17, Y: y}, Words: w.Text, Role: plot.Muted, Size: 11})
		x += 17 + plot.TextWidth(w.Text, 11) + 14
	}
}

func mapped(p *grafana.Panel, v float64) (grafana.Mapped, bool) {
	for _, m := range p.FieldConfig.Defaults.Mappings {
		if w, ok := m.Options[strconv.FormatFloat(v, 'f', -1, 64)]; ok {
			return w, true
		}
	}
	return grafana.Mapped{}, false
}

// bars are horizontal, one per series, in the colour of its threshold.
func (pg *page) bars(p *grafana.Panel, all []shownSeries, in box) {
	names, most := 0.0, 0.0
	for _, s := range all {
		names = max(names, plot.TextWidth(s.name, 12))
		if v := last(s.Series); number(v) {
			most = max(most, v)
		}
	}
	line := min(30, in.h/float64(len(all)))
	full := in.w - names - 80
	length := func(v float64) float64 {
		if !number(v) || most == 0 {
			return 0
		}
		return full * max(v, 0) / most
	}
	for i, s := range all {
		v, y := last(s.Series), in.y+float64(i)*line
		pg.Text(plot.Text{At: plot.Point{X: in.x + names, Y: y + line/2 + 4}, Words: s.name, Size: 12, Anchor: plot.End})
		pg.Rect(threshold(p, v), text(p, v), in.x+names+10, y+4, length(v), line-8)
		pg.Text(plot.Text{At: plot.Point{X: in.x + names + 16 + length(v), Y: y + line/2 + 4}, Words: text(p, v), Role: threshold(p, v), Size: 12, Bold: true})
	}
}
