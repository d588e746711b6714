package report

import "fmt"

// Table is one table of a report. Text and HTML print the same cells, so a
// figure reads the same in both.
type Table struct {
	Name    string // stable: c2e, s2e, i2e, scaling, flow, runs, checks, servers, cost, search, rtt, gs, gs-cost, worst
	Title   string
	Columns []Column
	Rows    [][]Cell // each as long as Columns
}

// Column of a table. Neighbours with the same group share a heading.
type Column struct {
	Group string
	Name  string
	Left  bool // text, not figures
	gap   int  // spaces before it; 0 is two, noGap none
}

// Cell is a figure as printed.
type Cell struct {
	Text string
	// Style is "", "good", "doubt", "bad", "dim" or "head".
	Style string
	// Of is the row the figure was taken from, if it is one of Report.Rows, and
	// Part which of its figures: published, here or ratio.
	Of   *Row
	Part string
	// Link is the page that has more, "" for none.
	Link string
}

func (g *Table) add(cells ...Cell) { g.Rows = append(g.Rows, cells) }

// NoLinks takes the links out of the table, where what they lead to is not beside it.
func (g *Table) NoLinks() {
	for _, row := range g.Rows {
		for i := range row {
			row[i].Link = ""
		}
	}
}

// Tables are all tables of the report, in the order they are printed.
func (r *Report) Tables(perRun bool) (out []*Table) {
	if r.Result.Plan.Search != nil {
		out = append(out, r.searchTable())
	}
	if r.Result.isWrite() {
		out = append(out, r.writeTables()...)
	}
	for _, l := range latencies {
		out = append(out, r.latencyTable(l))
	}
	if r.Scenario == "stac-scale" {
		out = append(out, r.scalingTable())
	}
	if t := r.flowTable(); t != nil {
		out = append(out, t)
	}
	if r.Result.isTimeplot() {
		out = append(out, r.worstTable())
	}
	if perRun {
		out = append(out, r.perRunTable())
	}
	out = append(out, r.checksTable())
	if t := r.serversTable(); t != nil {
		out = append(out, t)
	}
	return out
}

// figureOf finds a row of the merged figures.
func (r *Report) figureOf(g *group, metric string) (Row, bool) {
	for _, row := range r.Rows {
		if row.Run == 0 && row.Pairs == g.pairs && row.Rate == g.rate && row.label() == g.label && row.Metric == metric {
			return row, true
		}
	}
	return Row{}, false
}

// compared are the statistics the reports have; alone those they do not.
var (
	compared = []string{"mean", "p50", "p90", "p95"}
	alone    = []string{"p99", "p99.9", "p99.99", "min", "max", "sd"}
)

// shown leaves out statistics for which no row has enough samples.
func (r *Report) shown(latency string) (names []string) {
	for _, m := range alone {
		for _, g := range r.groups {
			if row, _ := r.figureOf(g, latency+" "+m); row.Here != nil {
				names = append(names, m)
				break
			}
		}
	}
	return names
}

func (r *Report) latencyTable(l latency) *Table {
	hasPublished := false
	for _, g := range r.groups {
		if _, ok := publishedTable(r.Scenario, g.pairs, l.name); ok {
			hasPublished = true
		}
	}
	title := l.long + ", microseconds"
	if hasPublished {
		title += ": published | here | here/published"
	} else {
		title += " (not in the published report)"
	}
	g := &Table{Name: l.name, Title: title, Columns: r.rateColumns()}
	for _, m := range compared {
		if hasPublished {
			g.Columns = append(g.Columns, Column{Group: m, Name: "pub", gap: 3}, Column{Group: m, Name: "here"}, Column{Group: m, Name: "ratio"})
		} else {
			g.Columns = append(g.Columns, Column{Group: "here", Name: m})
		}
	}
	shown := r.shown(l.name)
	for i, m := range shown {
		c := Column{Group: "here", Name: m}
		if i == 0 && hasPublished {
			c.gap = 3
		}
		g.Columns = append(g.Columns, c)
	}
	if l.name == "c2e" {
		g.Columns = append(g.Columns, Column{Group: "here", Name: ">1 ms %"}, Column{Group: "here", Name: "mean/p50"})
	}
	for _, gr := range r.groups {
		cells := r.rateCells(gr)
		for _, m := range compared {
			row, _ := r.figureOf(gr, l.name+" "+m)
			if hasPublished {
				cells = append(cells, publishedCell(row), hereCell(row), ratioCell(row))
			} else {
				cells = append(cells, hereCell(row))
			}
		}
		for _, m := range shown {
			row, _ := r.figureOf(gr, l.name+" "+m)
			cells = append(cells, hereCell(row))
		}
		if l.name == "c2e" {
			over, _ := r.figureOf(gr, "c2e >1ms")
			skew, _ := r.figureOf(gr, "c2e mean/p50")
			cells = append(cells, hereCell(over), hereCell(skew))
		}
		g.add(cells...)
	}
	return g
}

func (r *Report) rateColumns() []Column {
	cols := []Column{{Group: "orders/s", Name: "total"}, {Group: "orders/s", Name: "probe"}}
	if r.Scenario == "stac-scale" {
		cols = append([]Column{{Name: "pairs"}}, cols...)
	}
	if what := r.Result.differIn(); what != "" {
		cols = append(cols, Column{Name: what, Left: true})
	}
	if r.Result.Plan.Arrival != nil {
		cols = append(cols, Column{Name: "arrival", Left: true})
	}
	return cols
}

func (r *Report) rateCells(g *group) []Cell {
	cells := []Cell{{Text: thousands(float64(g.total))}, {Text: thousands(float64(g.rate))}}
	if r.Scenario == "stac-scale" {
		cells = append([]Cell{{Text: fmt.Sprint(g.pairs)}}, cells...)
	}
	if r.Result.Plan.Arrival != nil || r.Result.differIn() != "" {
		cells = append(cells, Cell{Text: g.label})
	}
	return cells
}

func (r *Report) scalingTable() *Table {
	g := &Table{Name: "scaling", Title: "create-to-end mean against one pair at the same rate per probe, per cent: published | here",
		Columns: append(r.rateColumns(), Column{Name: "pub", gap: 3}, Column{Name: "here"})}
	for _, gr := range r.groups {
		if row, ok := r.figureOf(gr, "c2e mean vs 1 pair"); ok {
			pub := Cell{Text: "-", Style: "dim", Of: &row, Part: "published"}
			if row.Published != nil {
				pub.Text, pub.Style = fmt.Sprintf("%+.1f", row.Published.Value), ""
			}
			here := hereCell(row)
			switch {
			case row.Here == nil:
			case row.Verdict == OK:
				here.Text = fmt.Sprintf("%+.1f", *row.Here)
			case row.Verdict != Incorrect:
				here.Text = notCounted + fmt.Sprintf("%+.1f", *row.Here)
			}
			g.add(append(r.rateCells(gr), pub, here)...)
		}
	}
	return g
}

func (r *Report) perRunTable() *Table {
	g := &Table{Name: "runs", Title: "create-to-end of every probe and run, microseconds: published | here | here/published",
		Columns: append(r.rateColumns(), Column{Name: "probe", Left: true}, Column{Name: "run"})}
	for _, m := range compared[:2] {
		g.Columns = append(g.Columns, Column{Group: m, Name: "pub", gap: 3}, Column{Group: m, Name: "here"}, Column{Group: m, Name: "ratio"})
	}
	for i := 0; i+1 < len(r.Rows); i++ {
		first, second := r.Rows[i], r.Rows[i+1]
		if first.Run == 0 || first.Metric != "c2e mean" {
			continue
		}
		cells := r.rateCells(&group{pairs: first.Pairs, rate: first.Rate, total: first.TotalRate, label: first.label()})
		cells = append(cells, Cell{Text: first.Probe}, Cell{Text: fmt.Sprint(first.Run)})
		for _, row := range []Row{first, second} {
			cells = append(cells, publishedCell(row), hereCell(row), ratioCell(row))
		}
		g.add(cells...)
	}
	return g
}

func publishedCell(row Row) Cell {
	c := Cell{Text: "-", Style: "dim", Of: &row, Part: "published"}
	if row.Published == nil {
		return c
	}
	c.Text, c.Style = short(row.Published.Value), ""
	if row.Published.Value >= 10 && row.Published.Value == float64(int64(row.Published.Value)) {
		c.Text = thousands(row.Published.Value) // as it was printed
	}
	for _, n := range row.Notes {
		c.Text += "[" + noteLetter(n-1) + "]"
	}
	return c
}

// noteLetter names a note, counted from 0.
func noteLetter(i int) string { return string(rune('a' + i)) }

// notCounted marks a figure of runs that are not valid: it is shown, and counts for no
// ratio and no verdict.
const notCounted = "~"

func hereCell(row Row) Cell {
	c := Cell{Of: &row, Part: "here"}
	switch {
	case row.Verdict == Invalid || row.Verdict == Contended:
		if c.Text, c.Style = NoValue, "dim"; row.Here != nil {
			c.Text = notCounted + short(*row.Here)
		}
	case row.Verdict == Incorrect:
		c.Text, c.Style = Incorrect, "bad"
	case row.Here == nil:
		c.Text, c.Style = NoValue, "dim"
	default:
		c.Text = short(*row.Here)
	}
	return c
}

func ratioCell(row Row) Cell {
	c := Cell{Text: "-", Style: "dim", Of: &row, Part: "ratio"}
	if row.Ratio == nil || row.Verdict != OK {
		return c
	}
	c.Text, c.Style = fmt.Sprintf("%.2f", *row.Ratio), "good"
	if *row.Ratio > 1 {
		c.Style = "doubt"
	}
	return c
}
