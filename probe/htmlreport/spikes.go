package htmlreport

import (
	"fmt"
	"math"
	"slices"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/report"
)

// spike is the worst one of a rate.
type spike struct {
	g     report.Group
	probe string
	run   int
	report.Spike
	sources []report.PauseSource
}

// spikes are the worst moments in detail, as in Figure 3-4 of the report: the stall, and how each
// thread worked off its backlog.
func spikes(v *view) (Figure, bool) {
	var all []spike
	groups := v.chosen(3)
	for _, g := range groups {
		if s, ok := worstSpike(g); ok {
			all = append(all, s)
		}
	}
	f := Figure{
		Name:  "spikes",
		Title: "The worst moment " + v.of(groups),
		Caption: "Every mark is an order at the time it was created; its shape and colour are the thread that published it. The bracket is the time without an acknowledgement, " +
			"shaded stretches are pauses of a runtime. After a stall each thread works off its orders: one descent a thread.",
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing { return drawSpikes(f, width, all) }
	return f, len(all) > 0
}

func worstSpike(g report.Group) (worst spike, ok bool) {
	for _, run := range g.Runs {
		if !run.Valid && valid(g) {
			continue
		}
		for _, p := range run.Probes {
			for _, s := range p.Spikes {
				if !drawable(s) || ok && s.CreateToEndUs <= worst.CreateToEndUs {
					continue
				}
				worst, ok = spike{g: g, probe: p.Probe, run: run.Run, Spike: s}, true
				for _, c := range run.Conditions {
					worst.sources = append(worst.sources, c.PauseSources...)
				}
			}
		}
	}
	return worst, ok
}

// maxSpikeOrders bounds the orders drawn of one spike; the probe keeps at most 120.
const maxSpikeOrders = 2000

func drawable(s report.Spike) bool {
	if len(s.Orders) < 2 || len(s.Orders) > maxSpikeOrders || !plain(s.AtMs, s.CreateToEndUs) {
		return false
	}
	for _, o := range s.Orders {
		if !plain(o.AtMs, o.CreateToEndUs) || o.Thread < 0 {
			return false
		}
	}
	return true
}

func drawSpikes(f *Figure, width float64, all []spike) *plot.Drawing {
	panel, left, right := 286.0, 62.0, width-20
	if width < Wide {
		panel, left = 302, 52
	}
	d := plot.New(width, panel*float64(len(all)), f.Title)
	for i := range all {
		s := &all[i]
		y0 := panel * float64(i)
		heading := fmt.Sprintf("%s, probe %s", rateText(s.g), cut(s.probe, 8))
		words := s.describe()
		at, anchor, room := plot.Point{X: right, Y: y0 + 15}, plot.End, (right-left)/2
		if width < Wide {
			at, anchor, room = plot.Point{X: left, Y: y0 + 31}, plot.Start, right-left
		}
		d.Text(plot.Text{At: plot.Point{X: left, Y: y0 + 15}, Words: plot.Fit(heading, 14*boldWider, room), Size: 14, Bold: true})
		d.Text(plot.Text{At: at, Words: words, Role: plot.Muted, Size: 11.5, Anchor: anchor})
		lo, hi, top := math.Inf(1), 0.0, 0.0
		for _, o := range s.Orders {
			lo, hi, top = min(lo, o.AtMs), max(hi, o.AtMs), max(top, o.CreateToEndUs)
		}
		margin := max((hi-lo)*0.03, 0.01)
		fr := d.Frame(left, y0+64, right, y0+250-16, plot.Scale{Lo: lo - margin, Hi: hi + margin}, plot.Scale{Lo: 0, Hi: top * 1.06})
		s.draw(fr)
	}
	return d
}

func (s *spike) describe() string {
	words := fmt.Sprintf("%s at %.2f s of run %d", latencyText(s.CreateToEndUs), s.AtMs/1000, s.run)
	if s.Queued > 1 {
		words += fmt.Sprintf(", %s orders waited", numtext.Thousands(float64(s.Queued)))
	}
	return words
}

func (s *spike) draw(fr *plot.Frame) {
	s.pauses(fr)
	fr.AxisY(fr.Y.Ticks(5), numtext.Micros)
	fr.AxisX(fr.X.Ticks(6), func(ms float64) string { return fmt.Sprintf("%.6g ms", ms) })
	s.stall(fr)
	threads := map[int]bool{}
	for _, o := range s.Orders {
		threads[o.Thread] = true
	}
	for _, t := range s.Descents {
		// Level stretches are not descents worth a line.
		if plain(t.FromMs, t.ToMs, t.FromUs, t.ToUs) && t.Thread >= 0 && t.FromUs-t.ToUs > fr.Y.Hi/20 {
			fr.Line(plot.Stroke{Role: plot.Kind(t.Thread), Width: 1.2, Dash: plot.Dash(1)}, fr.At(t.FromMs, t.FromUs), fr.At(t.ToMs, t.ToUs))
		}
	}
	for _, o := range s.Orders {
		hint := fmt.Sprintf("thread %d: create-to-end %s, send-to-end %s", o.Thread, latencyText(o.CreateToEndUs), latencyText(o.SendToEndUs))
		fr.Mark(plot.Mark{Shape: plot.ShapeOf(o.Thread), Role: plot.Kind(o.Thread), Radius: 2.8}, hint, fr.At(o.AtMs, o.CreateToEndUs))
	}
	s.legend(fr, threads)
}

// legend names the threads that have orders here.
func (s *spike) legend(fr *plot.Frame, threads map[int]bool) {
	y := fr.Bottom + 39
	fr.Text(plot.Text{At: plot.Point{X: fr.Left, Y: y}, Words: "thread", Role: plot.Muted, Size: 11.5})
	x := fr.Left + 56
	for t := range 64 {
		if !threads[t] || x > fr.Right-30 {
			continue
		}
		fr.Mark(plot.Mark{Shape: plot.ShapeOf(t), Role: plot.Kind(t), Radius: 3.5}, "", plot.Point{X: x, Y: y - 4})
		words := fmt.Sprint(t)
		fr.Text(plot.Text{At: plot.Point{X: x + 7, Y: y}, Words: words, Role: plot.Kind(t), Size: 11.5, Bold: true})
		x += plot.TextWidth(words, 11.5) + 24
	}
}

// stall brackets the time in which nothing was acknowledged.
func (s *spike) stall(fr *plot.Frame) {
	if !plain(s.StallFromMs, s.StallToMs) || s.StallToMs <= s.StallFromMs || s.StallFromMs >= fr.X.Hi || s.StallToMs <= fr.X.Lo {
		return
	}
	a, b, y := fr.X.At(s.StallFromMs), fr.X.At(s.StallToMs), fr.Top-6
	fr.Line(plot.Stroke{Role: plot.Ink, Width: 1.2}, plot.Point{X: a, Y: y + 4}, plot.Point{X: a, Y: y}, plot.Point{X: b, Y: y}, plot.Point{X: b, Y: y + 4})
	words := "nothing acknowledged for " + numtext.Micros(1000*(s.StallToMs-s.StallFromMs))
	t := plot.Text{At: plot.Point{X: (a + b) / 2, Y: y - 5}, Words: words, Size: 11, Anchor: plot.Middle}
	half := plot.TextWidth(words, 11) / 2
	t.At.X = min(max(t.At.X, fr.Left+half), fr.Right-half)
	fr.Text(t)
}

func (s *spike) pauses(fr *plot.Frame) {
	for _, p := range s.Pauses {
		if !plain(p.AtMs, p.Us) || p.AtMs+p.Us/1000 < fr.X.Lo || p.AtMs > fr.X.Hi {
			continue
		}
		a, b := fr.X.At(p.AtMs), fr.X.At(p.AtMs+p.Us/1000)
		words := fmt.Sprintf("%s pause of %s, %s", cut(p.Cause, 16), cut(p.Of, 32), latencyText(p.Us))
		fr.Rect(plot.Pause, words, a, fr.Top, max(b-a, 1.5), fr.Bottom-fr.Top)
	}
	t := plot.Text{At: plot.Point{X: fr.Right, Y: fr.Bottom + 39}, Words: plot.Fit(s.pauseWords(), 11.5, 420), Role: plot.Muted, Size: 11.5, Anchor: plot.End}
	if fr.Width < Wide { // below the threads
		t.At, t.Anchor, t.Words = plot.Point{X: fr.Left, Y: fr.Bottom + 56}, plot.Start, plot.Fit(t.Words, 11.5, fr.Right-fr.Left)
	}
	fr.Text(t)
}

// pauseWords describes whether pauses explain the spike, and whether they could be observed.
func (s *spike) pauseWords() string {
	if n := len(s.Pauses); n > 0 {
		p := slices.MaxFunc(s.Pauses, func(a, b report.Pause) int {
			if a.Us < b.Us {
				return -1
			}
			return 1
		})
		return fmt.Sprintf("shaded: %s of %s, %s", cut(p.Cause, 16), cut(p.Of, 32), latencyText(p.Us))
	}
	known := 0
	for _, src := range s.sources {
		if src.Times == report.TimesExact {
			known++
		}
	}
	if known == 0 {
		return "pauses of runtimes not known"
	}
	return "no runtime paused near it"
}

// cut shortens text from a result, which may be of any length.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
