package report

import (
	"fmt"
	"io"
	"strings"
)

// TextOptions change how Text prints.
type TextOptions struct {
	Color bool
	// PerRun also prints mean and median of every probe and run.
	PerRun bool
}

// Text writes the report as people read it on a terminal.
func (r *Report) Text(w io.Writer, o TextOptions) error {
	p := paint(plain)
	if o.Color {
		p = coloured
	}
	t := &text{r: r, w: w, p: p}
	t.head()
	for _, l := range latencies {
		t.latency(l)
	}
	if r.Scenario == "stac-scale" {
		t.scaling()
	}
	if o.PerRun {
		t.perRun()
	}
	t.checks()
	t.judgements()
	t.notes()
	return t.err
}

type text struct {
	r   *Report
	w   io.Writer
	p   paint
	err error
}

func (t *text) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

func (t *text) grid(g *grid) {
	if t.err == nil {
		t.err = g.write(t.w, t.p)
	}
}

func (t *text) head() {
	r := t.r
	t.printf("%s\n", t.p("head", r.Scenario+": "+r.Reproduces))
	mode := "the parameters of the published run"
	if len(r.Result.Plan.Differences) > 0 {
		mode = strings.Join(r.Result.Plan.Differences, "; ")
	}
	t.printf("  run        %s, %s\n", r.Result.Plan.Mode, mode)
	t.printf("  published  %s\n", r.Source)
	for _, m := range r.Result.Manifests {
		where := fmt.Sprintf("%s, %d cores, %d MiB, Linux %s, order-probe %s, %s", m.CPU, m.Cores, m.MemoryMiB, m.Kernel, m.Version, m.GoVersion)
		if m.Virtual {
			where += ", virtual machine"
		}
		t.printf("  here       probe %s: %s\n", m.Probes, where)
	}
	if r.Result.shared() {
		t.printf("             probes and servers share these cores and talk over loopback or a local bridge; the published ones had\n" +
			"             a blade each with eight cores and InfiniBand between them\n")
	}
	if r.Result.Plan.Replicas > 1 {
		t.printf("  an order   is in the memory of %d servers before it is acknowledged: here as one replicated log, in the report as a\n"+
			"             region and a queue, each replicated\n", r.Result.Plan.Replicas)
	}
}

// figureOf finds a row of the merged figures.
func (t *text) figureOf(g *group, metric string) (Row, bool) {
	for _, row := range t.r.Rows {
		if row.Run == 0 && row.Pairs == g.pairs && row.Rate == g.rate && row.Metric == metric {
			return row, true
		}
	}
	return Row{}, false
}

// compared are the statistics the reports have; alone those they do not.
var (
	compared = []string{"mean", "p50", "p90", "p95"}
	alone    = []string{"p99", "p99.9", "p99.99", "max", "sd"}
)

// shown leaves out statistics that no row has the samples for.
func (t *text) shown(latency string) (names []string) {
	for _, m := range alone {
		for _, g := range t.r.groups {
			if row, _ := t.figureOf(g, latency+" "+m); row.Here != nil {
				names = append(names, m)
				break
			}
		}
	}
	return names
}

func (t *text) latency(l latency) {
	hasPublished := false
	for _, g := range t.r.groups {
		if _, ok := publishedTable(t.r.Scenario, g.pairs, l.name); ok {
			hasPublished = true
		}
	}
	title := l.long + ", microseconds"
	if hasPublished {
		title += ": published | here | here/published"
	} else {
		title += " (not in the published report)"
	}
	t.printf("\n%s\n", t.p("head", title))
	g := &grid{columns: t.rateColumns()}
	for _, m := range compared {
		if hasPublished {
			g.columns = append(g.columns, column{group: m, name: "pub", gap: 3}, column{group: m, name: "here"}, column{group: m, name: "ratio"})
		} else {
			g.columns = append(g.columns, column{group: "here", name: m})
		}
	}
	shown := t.shown(l.name)
	for i, m := range shown {
		c := column{group: "here", name: m}
		if i == 0 && hasPublished {
			c.gap = 3
		}
		g.columns = append(g.columns, c)
	}
	if l.name == "c2e" {
		g.columns = append(g.columns, column{group: "here", name: ">1 ms %"}, column{group: "here", name: "mean/p50"})
	}
	for _, gr := range t.r.groups {
		cells := t.rateCells(gr)
		for _, m := range compared {
			row, _ := t.figureOf(gr, l.name+" "+m)
			if hasPublished {
				cells = append(cells, t.publishedCell(row), hereCell(row), ratioCell(row))
			} else {
				cells = append(cells, hereCell(row))
			}
		}
		for _, m := range shown {
			row, _ := t.figureOf(gr, l.name+" "+m)
			cells = append(cells, hereCell(row))
		}
		if l.name == "c2e" {
			over, _ := t.figureOf(gr, "c2e >1ms")
			skew, _ := t.figureOf(gr, "c2e mean/p50")
			cells = append(cells, hereCell(over), hereCell(skew))
		}
		g.add(cells...)
	}
	t.grid(g)
}

func (t *text) rateColumns() []column {
	cols := []column{{group: "orders/s", name: "total"}, {group: "orders/s", name: "probe"}}
	if t.r.Scenario == "stac-scale" {
		cols = append([]column{{name: "pairs"}}, cols...)
	}
	return cols
}

func (t *text) rateCells(g *group) []cell {
	cells := []cell{{text: thousands(float64(g.total))}, {text: thousands(float64(g.rate))}}
	if t.r.Scenario == "stac-scale" {
		cells = append([]cell{{text: fmt.Sprint(g.pairs)}}, cells...)
	}
	return cells
}

func (t *text) publishedCell(row Row) cell {
	if row.Published == nil {
		return cell{"-", "dim"}
	}
	s := short(row.Published.Value)
	if row.Published.Value >= 10 && row.Published.Value == float64(int64(row.Published.Value)) {
		s = thousands(row.Published.Value) // as it was printed
	}
	for _, n := range row.Notes {
		s += "[" + string(rune('a'+n-1)) + "]"
	}
	return cell{s, ""}
}

func hereCell(row Row) cell {
	switch row.Verdict {
	case Invalid, Contended:
		return cell{"INVALID", "doubt"}
	case Incorrect:
		return cell{Incorrect, "bad"}
	}
	if row.Here == nil {
		return cell{NoValue, "dim"}
	}
	return cell{short(*row.Here), ""}
}

func ratioCell(row Row) cell {
	if row.Ratio == nil || row.Verdict != OK {
		return cell{"-", "dim"}
	}
	style := "good"
	if *row.Ratio > 1 {
		style = "doubt"
	}
	return cell{fmt.Sprintf("%.2f", *row.Ratio), style}
}

func (t *text) scaling() {
	t.printf("\n%s\n", t.p("head", "create-to-end mean against one pair at the same rate per probe, per cent: published | here"))
	g := &grid{columns: append(t.rateColumns(), column{name: "pub", gap: 3}, column{name: "here"})}
	for _, gr := range t.r.groups {
		if row, ok := t.figureOf(gr, "c2e mean vs 1 pair"); ok {
			pub := cell{"-", "dim"}
			if row.Published != nil {
				pub = cell{fmt.Sprintf("%+.1f", row.Published.Value), ""}
			}
			here := hereCell(row)
			if row.Verdict == OK && row.Here != nil {
				here.text = fmt.Sprintf("%+.1f", *row.Here)
			}
			g.add(append(t.rateCells(gr), pub, here)...)
		}
	}
	t.grid(g)
}

func (t *text) perRun() {
	t.printf("\n%s\n", t.p("head", "create-to-end of every probe and run, microseconds: published | here | here/published"))
	g := &grid{columns: append(t.rateColumns(), column{name: "probe", left: true}, column{name: "run"})}
	for _, m := range compared[:2] {
		g.columns = append(g.columns, column{group: m, name: "pub", gap: 3}, column{group: m, name: "here"}, column{group: m, name: "ratio"})
	}
	for i := 0; i+1 < len(t.r.Rows); i++ {
		first, second := t.r.Rows[i], t.r.Rows[i+1]
		if first.Run == 0 || first.Metric != "c2e mean" {
			continue
		}
		cells := t.rateCells(&group{pairs: first.Pairs, rate: first.Rate, total: first.TotalRate})
		cells = append(cells, cell{text: first.Probe}, cell{text: fmt.Sprint(first.Run)})
		for _, row := range []Row{first, second} {
			cells = append(cells, t.publishedCell(row), hereCell(row), ratioCell(row))
		}
		g.add(cells...)
	}
	t.grid(g)
}

func (t *text) notes() {
	if len(t.r.Notes) > 0 {
		t.printf("\n")
	}
	for i, n := range t.r.Notes {
		t.printf("  [%c] %s\n", 'a'+i, n)
	}
}
