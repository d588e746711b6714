package report

import (
	"fmt"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// writeTables are the round trips, the writes, and the additional costs.
func (r *Report) writeTables() []*Table {
	tables := []*Table{r.writeTable(), r.writeCostTable()}
	if len(r.Result.RoundTrips) > 0 {
		tables = append([]*Table{r.roundTripTable()}, tables...)
	}
	return tables
}

func (r *Report) roundTripTable() *Table {
	t := &Table{Name: "rtt", Title: "first, the way to the server and back: Pings, microseconds: published, of 1 KB | here, empty (not compared)",
		Columns: []Column{{Name: "pings/s"}, {Name: "grid", Left: true}, {Group: "mean", Name: "pub", gap: 3}, {Group: "mean", Name: "here"},
			{Group: "here", Name: "best 80 %", gap: 3}, {Group: "here", Name: "p50"}, {Group: "here", Name: "p90"}, {Group: "here", Name: "p99"}, {Group: "here", Name: "max"}}}
	for _, x := range r.Result.RoundTrips {
		g := &group{rate: x.Rate, label: scenario.WriteLabel("ping", x.Replicas)}
		mean, _ := r.figureOf(g, rttMean)
		cells := []Cell{{Text: thousands(float64(x.Rate))}, {Text: copiesText(x.Replicas)}, publishedCell(mean), hereCell(mean)}
		for _, m := range []string{"best80", "p50", "p90", "p99", "max"} {
			row, _ := r.figureOf(g, "rtt "+m)
			cells = append(cells, hereCell(row))
		}
		t.add(cells...)
	}
	return t
}

func copiesText(n int) string { return fmt.Sprintf("%d %s", n, scenario.Plural(n, "copy", "copies")) }

// writeTable has the published statistic beside the rest that it leaves out.
func (r *Report) writeTable() *Table {
	best := fmt.Sprintf("mean of the best %.0f %%", 100*published.WriteBestShare)
	over := best + " over Pings"
	t := &Table{Name: "gs", Title: "one writer, one order on its way; send-to-end, microseconds: published | here | here/published",
		Columns: append(r.rateColumns(), Column{Group: best, Name: "pub", gap: 3}, Column{Group: best, Name: "here"}, Column{Group: best, Name: "ratio"},
			Column{Group: "all of them, here", Name: "mean", gap: 3})}
	shown := r.shown("s2e")
	for _, m := range append([]string{"p50"}, shown...) {
		t.Columns = append(t.Columns, Column{Group: "all of them, here", Name: m})
	}
	t.Columns = append(t.Columns, Column{Group: "all of them, here", Name: "mean/best"}, Column{Group: over, Name: "pub", gap: 3}, Column{Group: over, Name: "here"})
	for _, g := range r.groups {
		row, _ := r.figureOf(g, writeBest)
		mean, _ := r.figureOf(g, "s2e mean")
		cells := append(r.rateCells(g), publishedCell(row), hereCell(row), ratioCell(row), hereCell(mean))
		for _, m := range append([]string{"p50"}, shown...) {
			row, _ := r.figureOf(g, "s2e "+m)
			cells = append(cells, hereCell(row))
		}
		skew, _ := r.figureOf(g, writeSkew)
		above, _ := r.figureOf(g, writeOver)
		t.add(append(cells, hereCell(skew), publishedCell(above), hereCell(above))...)
	}
	return t
}

// writeCostTable has the quotients and the differences at each rate.
func (r *Report) writeCostTable() *Table {
	best := fmt.Sprintf("%.0f %%", 100*published.WriteBestShare)
	t := &Table{Name: "gs-cost", Title: "what replication costs, and what eight fields do; means of the best " + best + " of send-to-end: published | here",
		Columns: []Column{{Name: "orders/s"}, {Name: "dearer", Left: true}, {Name: "than", Left: true},
			{Group: "times", Name: "pub", gap: 3}, {Group: "times", Name: "here"}, {Group: "microseconds more", Name: "pub", gap: 3}, {Group: "microseconds more", Name: "here"}}}
	for _, g := range r.groups {
		for _, c := range []struct {
			times, more string
			than        string
		}{
			{writeCopies, writeCopiesUs, scenario.WriteLabel(string(g.record), scenario.WriteCopies[0])},
			{writeFields, writeFieldsUs, scenario.WriteLabel(string(fixorder.Empty), g.replicas)},
		} {
			times, ok := r.figureOf(g, c.times)
			if !ok {
				continue
			}
			more, _ := r.figureOf(g, c.more)
			t.add(Cell{Text: thousands(float64(g.rate))}, Cell{Text: g.label}, Cell{Text: c.than}, publishedCell(times), hereCell(times), publishedCell(more), hereCell(more))
		}
	}
	return t
}
