package htmlreport

import (
	"fmt"
	"math"
	"slices"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// moment is one interval over all probes of a run.
type moment struct {
	atMs           float64
	orders         int64
	c2e, s2e, most float64 // means of create- and send-to-end, the worst create-to-end, microseconds
}

// track is a run's latency over time.
type track struct {
	g       report.Group
	run     int
	bucket  float64 // ms
	moments []moment
}

// firstSeconds is the beginning of a rate, as in Figures 3-2, 3-3 and 3-5 of the report.
func firstSeconds(v *view) (Figure, bool) {
	return overTime(v, Figure{
		Name:    "first-seconds",
		Title:   "The first three seconds",
		Caption: "Create-to-end over the time at which orders were due: the line is the mean of each stretch of time, the area reaches up to its worst order; dashed is the mean send-to-end.",
	}, func(s *report.Series) (float64, []report.Bucket) { return s.FirstBucketMs, s.First })
}

// wholeRun is the same over all of the measured part.
func wholeRun(v *view) (Figure, bool) {
	if v.r.Scenario == published.TimeplotScenario { // it is the first seconds
		return Figure{}, false
	}
	return overTime(v, Figure{
		Name:    "whole-run",
		Title:   "The whole run",
		Caption: "The same over all of the measured part. Where the rate varies, the strip below each panel has the orders of each stretch of time.",
	}, func(s *report.Series) (float64, []report.Bucket) { return s.WholeBucketMs, s.Whole })
}

func overTime(v *view, f Figure, pick func(*report.Series) (float64, []report.Bucket)) (Figure, bool) {
	var tracks []track
	for _, g := range v.chosen(3) {
		if t, ok := newTrack(g, pick); ok {
			tracks = append(tracks, t)
		}
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing { return drawTracks(f, width, tracks) }
	return f, len(tracks) > 0
}

// newTrack merges the probes of the first valid run, or of the first if none is.
func newTrack(g report.Group, pick func(*report.Series) (float64, []report.Bucket)) (track, bool) {
	if len(g.Runs) == 0 {
		return track{}, false
	}
	i := max(slices.IndexFunc(g.Runs, func(r report.GroupRun) bool { return r.Valid }), 0)
	t := track{g: g, run: g.Runs[i].Run}
	at := map[float64]*moment{}
	for _, p := range g.Runs[i].Probes {
		if p.Series == nil {
			continue
		}
		width, buckets := pick(p.Series)
		t.bucket = max(t.bucket, width)
		for _, b := range buckets {
			if b.Orders < 1 || !plain(b.AtMs, b.CreateToEnd.MeanUs, b.CreateToEnd.MaxUs, b.SendToEnd.MeanUs) {
				continue
			}
			m := at[b.AtMs]
			if m == nil {
				m = &moment{atMs: b.AtMs}
				at[b.AtMs] = m
			}
			before, n := float64(m.orders), float64(b.Orders)
			m.c2e = (m.c2e*before + b.CreateToEnd.MeanUs*n) / (before + n)
			m.s2e = (m.s2e*before + b.SendToEnd.MeanUs*n) / (before + n)
			m.most = max(m.most, b.CreateToEnd.MaxUs)
			m.orders += b.Orders
		}
	}
	for _, m := range at {
		t.moments = append(t.moments, *m)
	}
	slices.SortFunc(t.moments, func(a, b moment) int {
		if a.atMs < b.atMs {
			return -1
		}
		return 1
	})
	return t, len(t.moments) > 1 && t.bucket > 0
}

// plain numbers can be drawn: finite and not negative. A result may come from anywhere.
func plain(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || v < 0 || v > 1e12 {
			return false
		}
	}
	return true
}

// uneven reports that orders did not arrive at a steady rate.
func (t *track) uneven() bool {
	// The first and the last stretch may be cut.
	inner := t.moments[1 : len(t.moments)-1]
	if len(inner) < 3 {
		return false
	}
	lo, hi := inner[0].orders, inner[0].orders
	for _, m := range inner {
		lo, hi = min(lo, m.orders), max(hi, m.orders)
	}
	return float64(hi-lo) > 0.2*float64(hi) && hi-lo > 5
}

func drawTracks(f *Figure, width float64, tracks []track) *plot.Drawing {
	const head, body, axis, strip = 26.0, 128.0, 34.0, 36.0
	left, right := 62.0, width-14
	if width < Wide {
		left = 52
	}
	height, lo, hi, from, to := 0.0, math.Inf(1), 0.0, math.Inf(1), 0.0
	for i := range tracks {
		t := &tracks[i]
		if height += head + body + axis; t.uneven() {
			height += strip
		}
		for _, m := range t.moments {
			lo, hi = min(lo, m.c2e, max(m.s2e, 1)), max(hi, m.most)
			from, to = min(from, m.atMs), max(to, m.atMs+t.bucket)
		}
	}
	lo, hi = plot.LogBounds(max(lo, 0.1), hi)
	d := plot.New(width, height, f.Title)
	y := 0.0
	for i := range tracks {
		t := &tracks[i]
		heading := rateText(t.g)
		d.Text(plot.Text{At: plot.Point{X: left, Y: y + 15}, Words: heading, Size: 14, Bold: true})
		note, role := fmt.Sprintf("run %d, in steps of %s", t.run, numtext.Micros(1000*t.bucket)), plot.Muted
		if !valid(t.g) {
			note, role = "not valid, "+note, plot.Doubt
		}
		d.Text(plot.Text{At: plot.Point{X: right, Y: y + 15}, Words: note, Role: role, Size: 11.5, Anchor: plot.End})
		y += head
		x := plot.Scale{Lo: from, Hi: to}
		fr := d.Frame(left, y, right, y+body, x, plot.Scale{Lo: lo, Hi: hi, Log: true})
		drawTrack(fr, t)
		y += body
		if t.uneven() {
			drawArrivals(d.Frame(left, y+6, right, y+strip, x, plot.Scale{}), t)
			y += strip
		}
		low := d.Frame(left, y, right, y, x, plot.Scale{})
		low.AxisX(low.X.Ticks(6), func(ms float64) string { return fmt.Sprintf("%.4g s", ms/1000) })
		y += axis
	}
	return d
}

func drawTrack(fr *plot.Frame, t *track) {
	fr.AxisY(fr.Y.Ticks(4), numtext.Micros)
	var worst, mean, send []plot.Point
	for _, m := range t.moments {
		// Each interval is a step, so that one bad moment is visible at its width.
		for _, at := range []float64{m.atMs, m.atMs + t.bucket} {
			worst = append(worst, fr.At(at, m.most))
			mean = append(mean, fr.At(at, m.c2e))
			send = append(send, fr.At(at, max(m.s2e, fr.Y.Lo)))
		}
	}
	area := slices.Clone(worst)
	for i := len(mean) - 1; i >= 0; i-- {
		area = append(area, mean[i])
	}
	fr.Area(plot.Soft, "", area...)
	fr.Line(plot.Stroke{Role: plot.Here, Width: 1.6}, mean...)
	fr.Line(plot.Stroke{Role: plot.Kind(2), Width: 1.3, Dash: plot.Dash(2)}, send...)
	w := slices.MaxFunc(t.moments, func(a, b moment) int {
		switch {
		case a.most < b.most:
			return -1
		case a.most > b.most:
			return 1
		}
		return 0
	})
	words := "worst " + latencyText(w.most)
	tag := plot.Text{At: plot.Point{X: fr.X.At(w.atMs+t.bucket) + 4, Y: max(fr.Y.At(w.most)+4, fr.Top+10)}, Words: words, Size: 11, Halo: true}
	if tag.At.X+plot.TextWidth(words, 11) > fr.Right {
		tag.At.X, tag.Anchor = fr.X.At(w.atMs)-4, plot.End
	}
	fr.Text(tag)
}

// drawArrivals is how many orders were due in each stretch of time.
func drawArrivals(fr *plot.Frame, t *track) {
	top := int64(0)
	for _, m := range t.moments {
		top = max(top, m.orders)
	}
	fr.Y = plot.Scale{Lo: 0, Hi: float64(top), From: fr.Bottom, To: fr.Top}
	perSecond := func(n int64) string { return numtext.Thousands(float64(n) * 1000 / t.bucket) }
	for _, m := range t.moments {
		x, y := fr.X.At(m.atMs), fr.Y.At(float64(m.orders))
		fr.Rect(plot.Muted, perSecond(m.orders)+" orders/s", x, y, max(fr.X.At(m.atMs+t.bucket)-x-0.4, 0.3), fr.Bottom-y)
	}
	fr.Text(plot.Text{At: plot.Point{X: fr.Left - 7, Y: fr.Top + 8}, Words: perSecond(top), Role: plot.Muted, Size: 10.5, Anchor: plot.End})
	fr.Text(plot.Text{At: plot.Point{X: fr.Left - 7, Y: fr.Top + 20}, Words: "orders/s", Role: plot.Muted, Size: 10.5, Anchor: plot.End})
}
