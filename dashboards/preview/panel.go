package preview

import (
	"fmt"
	"math"
	"regexp"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

// Answer is the result of one query of a panel, or of an annotation.
type Answer struct {
	Dashboard *grafana.Dashboard
	Panel     *grafana.Panel // nil: an annotation
	Title     string
	RefID     string
	Legend    string
	Expr      string // expanded
	Series    []Series
	Err       error // also for an empty answer
}

// AskBoard runs all queries of a dashboard. values are the choices of its variables.
func AskBoard(c *Client, d *grafana.Dashboard, values map[string]string, w Window) []Answer {
	var out []Answer
	for i := range d.Panels {
		p := &d.Panels[i]
		for _, q := range p.Targets {
			out = append(out, one(c, Answer{Dashboard: d, Panel: p, Title: p.Title, RefID: q.RefID, Legend: q.LegendFormat}, q.Expr, q.Instant, values, w))
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			out = append(out, one(c, Answer{Dashboard: d, Title: "annotation: " + a.Name, RefID: "-", Legend: a.TitleFormat}, a.Expr, false, values, w))
		}
	}
	return out
}

func one(c *Client, a Answer, expr string, instant bool, values map[string]string, w Window) Answer {
	if a.Expr, a.Err = expand(expr, values); a.Err != nil {
		return a
	}
	if instant {
		a.Series, a.Err = c.Instant(a.Expr, w)
	} else {
		a.Series, a.Err = c.Range(a.Expr, w)
	}
	if a.Err == nil && !a.shows() {
		a.Err = fmt.Errorf("an empty answer: %d series, none with a number in it", len(a.Series))
	}
	return a
}

// shows reports whether the panel would show anything: a number, or a non-empty histogram.
func (a *Answer) shows() bool {
	for _, s := range a.Series {
		for _, v := range s.Samples {
			if len(v.Histogram) > 0 || v.Histogram == nil && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
				return true
			}
		}
	}
	return false
}

// Last is the last sample of the first series that has a number, and its series.
func (a *Answer) Last() (Series, Sample) {
	for _, s := range a.Series {
		for i := len(s.Samples) - 1; i >= 0; i-- {
			if v := s.Samples[i]; len(v.Histogram) > 0 || !math.IsNaN(v.Value) {
				return s, v
			}
		}
	}
	return Series{}, Sample{Value: math.NaN()}
}

var inLegend = regexp.MustCompile(`\{\{\s*([a-zA-Z_]+)\s*\}\}`)

// Name of a series in its legend.
func (a *Answer) Name(s Series) string {
	if a.Legend == "" {
		return fmt.Sprint(s.Labels)
	}
	return inLegend.ReplaceAllStringFunc(a.Legend, func(field string) string { return s.Labels[inLegend.FindStringSubmatch(field)[1]] })
}
