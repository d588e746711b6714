package system

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
)

// chart says which columns of a report are drawn.
type chart struct {
	title, unit string
	x           string
	y           []string
	by          []string // columns that distinguish curves
	log         bool     // the y axis
}

// charts are those of scenarios whose figures grow with something.
var charts = map[string][]chart{
	published.AsyncScenario:  {{title: "Speed-up by workers", unit: "times as fast as one worker", x: "workers", y: []string{"speed-up", "published speed-up"}}},
	published.LoadScenario:   {{title: "Rows a second by the length of the file", unit: "rows/s", x: "rows", y: []string{"rows/s"}, by: []string{"loader", "traffic"}}},
	published.ThinScenario:   {{title: "Orders that all users are told of", unit: "orders/s", x: "users", y: []string{"orders/s all are told of", "published TPS"}, by: []string{"design"}}},
	published.FanoutScenario: {{title: "Latency by the number of clients", unit: "us", x: "clients", y: []string{"p50 us", "p99 us"}, by: []string{"step"}, log: true}},
	published.WANScenario:    {{title: "Orders a second by batch", unit: "orders/s", x: "batch", y: []string{"orders/s", "published/s"}, by: []string{"delay ms"}, log: true}},
}

// Series is a curve that is not in the table: points in time.
type Series struct {
	Name string    `json:"name"`
	Unit string    `json:"unit"`    // of Y
	X    []float64 `json:"seconds"` // rising
	Y    []float64 `json:"values"`
}

// Charts are what a page shows of the report beside its table.
func (r *Report) Charts() (out []*plot.Lines) {
	if len(r.Series) > 0 {
		l := &plot.Lines{Title: r.SeriesTitle, Unit: r.Series[0].Unit, Grows: "seconds", Log: true, Linear: true, Number: numtext.Thousands}
		for _, s := range r.Series {
			c := plot.Curve{Name: s.Name}
			for i := range min(len(s.X), len(s.Y)) {
				c.Points = append(c.Points, plot.XY{X: s.X[i], Y: s.Y[i], Lower: s.Y[i], Upper: s.Y[i]})
			}
			if len(c.Points) > 1 {
				l.Curves = append(l.Curves, c)
			}
		}
		if len(l.Curves) > 0 {
			out = append(out, l)
		}
	}
	for _, c := range charts[r.Scenario] {
		if l := c.draw(r); len(l.Curves) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// draw makes the curves of a chart; rows without a number have no point.
func (c *chart) draw(r *Report) *plot.Lines {
	l := &plot.Lines{Title: c.title, Unit: c.unit, Grows: c.x, Log: c.log, Number: numtext.Thousands}
	x := slices.Index(r.Columns, c.x)
	for _, name := range c.y {
		y := slices.Index(r.Columns, name)
		for _, row := range r.Rows {
			if x < 0 || y < 0 || len(row) != len(r.Columns) {
				continue
			}
			at, okX := number64(row[x])
			v, okY := number64(row[y])
			if !okX || !okY || at <= 0 || v <= 0 {
				continue
			}
			of := name
			for _, column := range c.by {
				if i := slices.Index(r.Columns, column); i >= 0 {
					of += ", " + column + " " + row[i]
				}
			}
			i := slices.IndexFunc(l.Curves, func(c plot.Curve) bool { return c.Name == of })
			if i < 0 {
				i = len(l.Curves)
				l.Curves = append(l.Curves, plot.Curve{Name: of})
			}
			l.Curves[i].Points = append(l.Curves[i].Points, plot.XY{X: at, Y: v, Lower: v, Upper: v})
		}
	}
	// A curve of one point is none.
	l.Curves = slices.DeleteFunc(l.Curves, func(c plot.Curve) bool { return len(c.Points) < 2 })
	for _, c := range l.Curves {
		slices.SortFunc(c.Points, func(a, b plot.XY) int { return cmp.Compare(a.X, b.X) })
	}
	return l
}

func number64(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
	return v, err == nil
}
