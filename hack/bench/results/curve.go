package results

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Curve is how one figure changes while one thing grows.
type Curve struct {
	Name   string // such as held-rate-6000
	Title  string
	Grows  string // what the x axis counts
	Figure cases.Better
	Series []Series
}

// Series is one system.
type Series struct {
	System string
	Points []Point
}

// Point is one case.
type Point struct {
	X   float64 // how much of what grows
	Row Row
}

var names = regexp.MustCompile(`^growth/(held|connections|partitions|copies|payload)-[0-9]+[km]?(?:-(.+))?$`)

var grows = map[string]string{"held": "orders held", "connections": "synchronous clients", "partitions": "partitions", "copies": "copies", "payload": "bytes of an order"}

// Curves of the rows, in the order of the cases; rows of other cases and rows
// without a figure are left out.
func Curves(rows []Row) (all []Curve) {
	known := map[string]*cases.Case{}
	for _, c := range cases.Growth() {
		known[c.Name] = &c
	}
	index := map[string]int{}
	for i := range rows {
		c, m := known[rows[i].Case], names.FindStringSubmatch(rows[i].Case)
		if c == nil || m == nil || rows[i].Rounds == 0 {
			continue
		}
		name := strings.TrimSuffix(m[1]+"-"+m[2], "-")
		at, seen := index[name]
		if !seen {
			at = len(all)
			index[name] = at
			title := grows[m[1]]
			if m[2] != "" {
				title += ", " + m[2]
			}
			all = append(all, Curve{Name: name, Title: title, Grows: grows[m[1]], Figure: c.Judged})
		}
		all[at].add(x(m[1], c), rows[i])
	}
	return all
}

func x(what string, c *cases.Case) float64 {
	switch what {
	case "held":
		return float64(c.Held)
	case "connections":
		return float64(c.Shape.Threads)
	case "partitions":
		return float64(c.Partitions)
	case "copies":
		return float64(c.Copies)
	}
	return float64(c.Size)
}

func (c *Curve) add(at float64, row Row) {
	for i := range c.Series {
		if s := &c.Series[i]; s.System == row.System {
			s.Points = append(s.Points, Point{at, row})
			slices.SortFunc(s.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
			return
		}
	}
	c.Series = append(c.Series, Series{row.System, []Point{{at, row}}})
}

// Value is the figure of the curve at a point.
func (c *Curve) Value(p *Point) float64 {
	if c.Figure == cases.HighRate {
		return p.Row.OrdersPerS
	}
	return p.Row.P50
}

// Unit of Value.
func (c *Curve) Unit() string {
	if c.Figure == cases.HighRate {
		return "orders/s"
	}
	return "p50, microseconds"
}

// Cost is what one order costs at a point, in microseconds: less is better.
func (c *Curve) Cost(p *Point) float64 {
	if c.Figure == cases.HighRate {
		return 1e6 / p.Row.OrdersPerS
	}
	return p.Row.P50
}

// Table writes the curve in Markdown.
func (c *Curve) Table(w io.Writer) error {
	t := report.NewTable(c.Grows, "system", "p50 us", "p99 us", "orders/s", "CPU us/order", "bytes/order", "Go heap of the primary")
	t.Columns[1].Left = true
	for _, s := range c.Series {
		for i := range s.Points {
			p := &s.Points[i]
			r := &p.Row
			memory, heap := "", ""
			if r.BytesPerOrder > 0 {
				memory = fmt.Sprintf("%.0f", r.BytesPerOrder)
			}
			if r.GoHeap > 0 {
				heap = fmt.Sprintf("%.1f MiB", float64(r.GoHeap)/(1<<20))
			}
			t.Add(short(p.X), s.System+mark(r), fmt.Sprintf("%.1f", r.P50), fmt.Sprintf("%.1f", r.P99), fmt.Sprintf("%.0f", r.OrdersPerS), fmt.Sprintf("%.2f", r.CPU), memory, heap)
		}
	}
	if _, err := fmt.Fprintf(w, "\n**growth/%s**: %s\n\n", c.Name, c.Title); err != nil {
		return err
	}
	return t.Markdown(w)
}

// short is a number with k or M where it is round.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}
