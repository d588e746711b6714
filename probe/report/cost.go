package report

import (
	"fmt"
	"io"
)

// Cost compares a run with replication to one without: what the report calls the latency cost of
// replication. The published "66 % to 88 % lower" holds at equal rates per server; at equal total
// rates it is 41 to 53 %. Both are printed, from the published means and from the measured ones.
type Cost struct {
	// Basis is "per server" or "in total".
	Basis string `json:"basis"`
	Rate  int    `json:"rate"` // orders/s on that basis
	// Reductions of the mean create-to-end latency without replication, per
	// cent; absent without valid figures.
	Published *float64 `json:"published,omitempty"`
	Here      *float64 `json:"here,omitempty"`
}

// ReplicationCost finds every pair of rates that can be compared.
func ReplicationCost(single, pair *Report) (out []Cost) {
	for _, basis := range []struct {
		name  string
		probe int // rate of a pair's probe for one order/s of the single server's, in halves
	}{{"per server", 2}, {"in total", 1}} {
		for _, s := range single.groups {
			for _, p := range pair.groups {
				if 2*p.rate != basis.probe*s.rate {
					continue
				}
				a, b := single.mean(s), pair.mean(p)
				c := Cost{Basis: basis.name, Rate: s.rate}
				if a.Published != nil && b.Published != nil && a.Published.SameRate && b.Published.SameRate {
					c.Published = reduction(a.Published.Value, b.Published.Value)
				}
				if a.Here != nil && b.Here != nil && a.Verdict == OK && b.Verdict == OK {
					c.Here = reduction(*a.Here, *b.Here)
				}
				out = append(out, c)
			}
		}
	}
	return out
}

func reduction(without, with float64) *float64 {
	v := 100 * (1 - without/with)
	if !finite(v) {
		return nil
	}
	return &v
}

func (r *Report) mean(g *group) Row {
	row, _ := r.figureOf(g, "c2e mean")
	return row
}

// CostTable is the comparison as a table; nil if there is none.
func CostTable(costs []Cost) *Table {
	if len(costs) == 0 {
		return nil
	}
	g := &Table{Name: "cost", Title: "cost of replication: how much lower the create-to-end mean is without it: published | here",
		Columns: []Column{{Name: "orders/s"}, {Name: "equal", Left: true}, {Name: "pub", gap: 3}, {Name: "here"}}}
	percent := func(v *float64) Cell {
		if v == nil {
			return Cell{Text: NoValue, Style: "dim"}
		}
		return Cell{Text: fmt.Sprintf("%.0f %%", *v)}
	}
	for _, c := range costs {
		g.add(Cell{Text: thousands(float64(c.Rate))}, Cell{Text: c.Basis}, percent(c.Published), percent(c.Here))
	}
	return g
}

// CostText writes the comparison; nothing if there is none.
func CostText(w io.Writer, costs []Cost, color bool) error {
	g := CostTable(costs)
	if g == nil {
		return nil
	}
	p := paint(plain)
	if color {
		p = coloured
	}
	if _, err := fmt.Fprintf(w, "%s\n", p("head", g.Title)); err != nil {
		return err
	}
	return g.write(w, p)
}
