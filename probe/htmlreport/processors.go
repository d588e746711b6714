package htmlreport

import (
	"fmt"

	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/report"
)

// coresUsed is how many cores each server was busy with at one rate.
type coresUsed struct {
	g     report.Group
	nodes []float64 // one for each server of each run
}

func (u *coresUsed) mean() (mean float64) {
	for _, n := range u.nodes {
		mean += n / float64(len(u.nodes))
	}
	return mean
}

// processors is how many cores each server used at each rate.
func processors(v *view) (Figure, bool) {
	all, top := coresByRate(v)
	f := Figure{
		Name:    "cpu",
		Title:   "Cores busy in a server",
		Caption: "The bar is the mean over servers and runs, each mark one server in one run; in cores.",
	}
	var pub *report.Row
	for _, u := range all {
		if row, ok := v.r.Figure(u.g, "server cpu"); ok && row.Published != nil {
			pub = &row
			top = max(top, row.Published.Value)
			f.Caption += fmt.Sprintf(" The dashed line is the published figure at %s.", rateText(u.g))
		}
	}
	f.draw = func(f *Figure, width float64) *plot.Drawing {
		const row = 30.0
		left, right := 0.0, width-118 // room for text on the right
		for _, u := range all {
			left = max(left, plot.TextWidth(rateText(u.g)+" ×", 12)+10)
		}
		d := plot.New(width, float64(len(all))*row+44, f.Title)
		fr := d.Frame(left, 6, right, float64(len(all))*row+14, plot.Scale{Lo: 0, Hi: max(top*1.05, 0.01)}, plot.Scale{Lo: 0, Hi: 1})
		ticks := fr.X.Ticks(5)
		for _, t := range ticks {
			x := fr.X.At(t)
			d.Line(plot.Stroke{Role: plot.Rule, Width: 1}, plot.Point{X: x, Y: fr.Top}, plot.Point{X: x, Y: fr.Bottom})
		}
		fr.AxisX(ticks, func(v float64) string { return fmt.Sprintf("%.3g", v) })
		for i := range all {
			drawCores(d, fr, &all[i], pub, fr.Top+row*float64(i)+row/2)
		}
		return d
	}
	return f, len(all) > 0
}

// coresByRate also returns the maximum.
func coresByRate(v *view) (all []coresUsed, top float64) {
	for _, g := range v.main {
		u := coresUsed{g: g}
		for _, run := range g.Runs {
			if !run.Valid && valid(g) {
				continue
			}
			seen := map[string]bool{}
			for _, c := range run.Conditions {
				for _, n := range c.Nodes {
					if !seen[n.Name] { // several pods of probes may report one node
						seen[n.Name] = true
						u.nodes = append(u.nodes, n.CPUCores)
						top = max(top, n.CPUCores)
					}
				}
			}
		}
		if len(u.nodes) > 0 {
			all = append(all, u)
		}
	}
	return all, top
}

// drawCores is one row of the figure, at y.
func drawCores(d *plot.Drawing, fr *plot.Frame, u *coresUsed, pub *report.Row, y float64) {
	role, suffix := plot.Ink, ""
	if !valid(u.g) {
		role, suffix = plot.Doubt, " ×"
	}
	mean := u.mean()
	d.Text(plot.Text{At: plot.Point{X: fr.Left - 8, Y: y + 4}, Words: rateText(u.g) + suffix, Role: role, Anchor: plot.End})
	d.Rect(plot.Soft, "", fr.Left, y-8, fr.X.At(mean)-fr.Left, 16)
	furthest := fr.X.At(mean)
	for _, n := range u.nodes {
		at := plot.Point{X: fr.X.At(n), Y: y}
		furthest = max(furthest, at.X)
		d.Mark(plot.Mark{Shape: plot.Circle, Role: plot.Here, Radius: 3.5}, fmt.Sprintf("%.3f cores", n), at)
	}
	d.Text(plot.Text{At: plot.Point{X: furthest + 9, Y: y + 4}, Words: fmt.Sprintf("%.2f", mean), Bold: true, Halo: true})
	if pub != nil && pub.TotalRate == u.g.TotalRate {
		x := fr.X.At(pub.Published.Value)
		d.Line(plot.Stroke{Role: plot.Published, Width: 2, Dash: plot.Dash(1)}, plot.Point{X: x, Y: y - 13}, plot.Point{X: x, Y: y + 13})
		d.Text(plot.Text{At: plot.Point{X: x + 7, Y: y + 4}, Words: fmt.Sprintf("published %.2f", pub.Published.Value), Role: plot.Published})
	}
}
