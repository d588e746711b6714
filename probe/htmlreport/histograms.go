package htmlreport

import (
	"fmt"
	"math"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/report"
)

// binsPerDecade is the resolution of histograms: on a logarithmic axis bars of equal width, each 7
// % wider in time than the previous one.
const binsPerDecade = 32

// histograms are the distributions at three rates, as in Figure 3-1 of the report.
func histograms(v *view) (Figure, bool) {
	groups := v.chosen(3)
	f := Figure{
		Name:  "histograms",
		Title: "Create-to-end latency " + v.of(groups),
		Caption: "Distribution of latencies on a logarithmic time axis; all panels have the same axes. " +
			"Solid lines mark measured figures, dashed ones published figures at the same rate.",
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing { return drawHistograms(f, v, groups, width) }
	return f, len(groups) > 0
}

// of describes the difference between chosen groups.
func (v *view) of(groups []report.Group) string {
	if len(groups) > 1 && groups[0].TotalRate == groups[1].TotalRate {
		return "at " + numtext.Thousands(float64(groups[0].TotalRate)) + " orders/s"
	}
	return "at " + countText(len(groups), "rate")
}

func countText(n int, what string) string {
	words := []string{"no", "one", "two", "three", "four", "five"}
	if n == 1 {
		return "one " + what
	}
	if n < len(words) {
		return words[n] + " " + what + "s"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// bins are shares of all orders by logarithmic bins of microseconds.
type bins struct {
	first  int // the first bin's index
	shares []float64
}

func binOf(us float64) int { return int(math.Floor(math.Log10(us) * binsPerDecade)) }

func edge(i int) float64 { return math.Pow(10, float64(i)/binsPerDecade) }

func newBins(h report.Histogram) (b bins) {
	counts := map[int]int64{}
	lo, hi := math.MaxInt, math.MinInt
	h.Each(func(from, to, n int64) {
		i := binOf(max(float64(from+to)/2e3, 0.001))
		counts[i] += n
		lo, hi = min(lo, i), max(hi, i)
	})
	if len(counts) == 0 {
		return b
	}
	b.first = lo
	for i := lo; i <= hi; i++ {
		b.shares = append(b.shares, 100*float64(counts[i])/float64(h.Count()))
	}
	return b
}

func drawHistograms(f *Figure, v *view, groups []report.Group, width float64) *plot.Drawing {
	all := make([]bins, len(groups))
	loUs, hiUs, top := math.Inf(1), 0.0, 0.0
	for i, g := range groups {
		all[i] = newBins(g.CreateToEnd)
		loUs, hiUs = min(loUs, edge(all[i].first)), max(hiUs, edge(all[i].first+len(all[i].shares)))
		top = max(top, most(all[i].shares))
		for _, m := range []string{"c2e mean", "c2e p50"} {
			if us, ok := v.published(g, m); ok {
				loUs, hiUs = min(loUs, us/1.1), max(hiUs, us*1.1)
			}
		}
	}
	loUs, hiUs = plot.LogBounds(loUs, hiUs)
	columns := len(groups)
	if width < Wide {
		columns = 1
	}
	const panel, gap, left = 280.0, 26.0, 44.0
	rows := (len(groups) + columns - 1) / columns
	d := plot.New(width, float64(rows)*panel+4, f.Title)
	wide := (width - left - 12 - gap*float64(columns-1)) / float64(columns)
	for i, g := range groups {
		x0 := left + float64(i%columns)*(wide+gap)
		y0 := float64(i/columns) * panel
		fr := d.Frame(x0, y0+88, x0+wide, y0+panel-26, plot.Scale{Lo: loUs, Hi: hiUs, Log: true}, plot.Scale{Lo: 0, Hi: top * 1.02})
		label := percentText
		if i%columns > 0 {
			label = func(float64) string { return "" }
		}
		fr.AxisY(fr.Y.Ticks(4), label)
		histogramPanel(fr, v, g, all[i], y0)
		fr.AxisX(fr.X.Ticks(4), numtext.Micros)
	}
	return d
}

func percentText(v float64) string { return fmt.Sprintf("%.3g %%", v) }

func histogramPanel(fr *plot.Frame, v *view, g report.Group, b bins, y0 float64) {
	heading := rateText(g)
	fr.Text(plot.Text{At: plot.Point{X: fr.Left, Y: y0 + 16}, Words: heading, Size: 14, Bold: true})
	samples := numtext.Thousands(float64(g.CreateToEnd.Count())) + " orders"
	role := plot.Muted
	if !valid(g) {
		samples, role = "not valid, "+samples, plot.Doubt
	}
	fr.Text(plot.Text{At: plot.Point{X: fr.Right, Y: y0 + 16}, Words: samples, Role: role, Size: 11.5, Anchor: plot.End})
	for i, share := range b.shares {
		if share == 0 {
			continue
		}
		from, to := fr.X.At(edge(b.first+i)), fr.X.At(edge(b.first+i+1))
		y := min(fr.Y.At(share), fr.Bottom-1) // one order is still visible
		hint := fmt.Sprintf("%s to %s: %.3g %% of the orders", numtext.Micros(edge(b.first+i)), numtext.Micros(edge(b.first+i+1)), share)
		fr.Rect(plot.Here, hint, from+0.25, y, max(to-from-0.5, 0.5), fr.Bottom-y)
	}
	line := 0
	for _, m := range []struct {
		metric, name string
		published    bool
	}{{"c2e p50", "median", false}, {"c2e mean", "mean", false}, {"c2e p50", "median", true}, {"c2e mean", "mean", true}} {
		value, get, role, dash, suffix := 0.0, v.here, plot.Ink, plot.Dash(0), ""
		if m.published {
			get, role, dash, suffix = v.published, plot.Published, plot.Dash(1), " published"
		}
		value, ok := get(g, m.metric)
		if !ok {
			continue
		}
		x, y := fr.X.At(value), y0+36+14*float64(line)
		line++
		words := fmt.Sprintf("%s%s %s", m.name, suffix, latencyText(value))
		fr.Line(plot.Stroke{Role: role, Width: 1.5, Dash: dash}, plot.Point{X: x, Y: y + 3}, plot.Point{X: x, Y: fr.Bottom})
		t := plot.Text{At: plot.Point{X: x + 4, Y: y + 4}, Words: words, Role: role, Halo: true}
		if x+4+plot.TextWidth(words, 12) > fr.Right+8 {
			t.At.X, t.Anchor = x-4, plot.End
		}
		fr.Text(t)
	}
}
