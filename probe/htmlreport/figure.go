package htmlreport

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Widths of figures in pixels: a page and a telephone.
const (
	Wide   = 920.0
	Narrow = 360.0
)

// Figure is one plot of a report. It is drawn for each width separately: text keeps its size.
type Figure struct {
	Name    string // stable, a file name: rates, histograms ...
	Title   string
	Caption string // how to read it
	draw    func(f *Figure, width float64) *plot.Drawing
}

// Draw draws the figure for a width, Wide or Narrow.
func (f *Figure) Draw(width float64) *plot.Drawing {
	d := f.draw(f, width)
	d.Desc = f.Caption
	return d
}

// File is the figure as a separate picture: with its title and run.
func (f *Figure) File(r *report.Report) *plot.Drawing {
	return f.Draw(Wide).Titled(f.Title, fmt.Sprintf("%s, %s, run %s, %s", r.Scenario, strings.ToLower(r.Verdict), cut(r.Result.RunID, 16), cut(started(r.Result.StartedAt), 32)))
}

// Figures of a report: those with data.
func Figures(r *report.Report) []Figure {
	v := newView(r)
	var out []Figure
	for _, make := range []func(*view) (Figure, bool){rates, scaling, histograms, percentiles, stages, firstSeconds, wholeRun, spikes, processors} {
		if f, ok := make(v); ok {
			out = append(out, f)
		}
	}
	return out
}

// view is the input of figures.
type view struct {
	r      *report.Report
	groups []report.Group
	// main are the groups with the most pairs that have samples, by rate.
	main []report.Group
}

func newView(r *report.Report) *view {
	v := &view{r: r, groups: r.Groups()}
	pairs := 0
	for _, g := range v.groups {
		pairs = max(pairs, g.Pairs)
	}
	for _, g := range v.groups {
		if g.Pairs == pairs && g.CreateToEnd.Count() > 0 {
			v.main = append(v.main, g)
		}
	}
	return v
}

// chosen are at most n of the main groups: the kinds of arrival at the highest rate if there are
// several, else the lowest and the highest rate and some between.
func (v *view) chosen(n int) []report.Group {
	if v.r.Scenario == published.TimeplotScenario { // it has these alone
		return v.main
	}
	if same := v.highest(); len(same) > 1 {
		return spaced(same, n)
	}
	return spaced(v.main, n)
}

// highest are the main groups of the highest rate: several if there were several kinds of arrival.
func (v *view) highest() (out []report.Group) {
	for _, g := range v.main {
		if g.Rate == v.main[len(v.main)-1].Rate {
			out = append(out, g)
		}
	}
	return out
}

func spaced[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	var out []T
	for i := range n {
		out = append(out, all[i*(len(all)-1)/(n-1)])
	}
	return out
}

// published is a figure of the report at the same rate; not ok if there is none.
func (v *view) published(g report.Group, metric string) (us float64, ok bool) {
	row, found := v.r.Figure(g, metric)
	if !found || row.Published == nil || !row.Published.SameRate {
		return 0, false
	}
	return row.Published.Value, true
}

// here is a measured figure; not ok without enough samples.
func (v *view) here(g report.Group, metric string) (us float64, ok bool) {
	row, found := v.r.Figure(g, metric)
	if !found || row.Here == nil {
		return 0, false
	}
	return *row.Here, true
}

// rateText names a group: 6,000 orders/s.
func rateText(g report.Group) string {
	s := numtext.Thousands(float64(g.TotalRate)) + " orders/s"
	if g.Arrival != "" {
		s += ", " + cut(g.Arrival, longestWay)
	}
	return s
}

// boldWider is the relative width of bold text.
const boldWider = 1.13

// lineName is a name beside a line, limited to a third of the drawing.
func lineName(words string, width float64) string { return plot.Fit(words, 12*boldWider, 0.36*width) }

// below writes the name of the x axis under a frame.
func below(fr *plot.Frame, words string) {
	x := max((fr.Left+fr.Right)/2, plot.TextWidth(words, 12)/2+2)
	fr.Text(plot.Text{At: plot.Point{X: x, Y: fr.Bottom + 36}, Words: words, Role: plot.Muted, Anchor: plot.Middle})
}

func valid(g report.Group) bool { return g.Verdict == report.OK }

// latencyText formats a measured latency, given in microseconds.
func latencyText(us float64) string { return numtext.Short(us) + " µs" }
