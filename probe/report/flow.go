package report

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// flowGuard returns why the offered orders do not match the plan.
func flowGuard(r *Result, v run, p probeRun, say sayFunc) {
	a := r.Plan.Arrival
	if a == nil || v.step.Arrival != flow.Hawkes || a.Branching != flow.DefaultBranching || p.Offered == nil {
		return
	}
	if f, ok := p.Offered.fano(100); ok && (f < minBurstFano || f > maxBurstFano) {
		say("arrival", Invalid, "probe %s offered bursts with a Fano factor of %.1f at 100 ms (allowed %d to %d)", p.name, f, minBurstFano, maxBurstFano)
	}
}

// asked is the rate a probe was to create in the measured time: the one of the step, or, where
// arrivals are not even, the intended one.
func asked(r *Result, v run, p probeRun) float64 {
	if r.Plan.Arrival == nil || p.Offered == nil {
		return float64(v.step.Rate)
	}
	return float64(p.Intended) / r.Plan.MeasureTime().Seconds()
}

// late describes late orders, and names bursts as the cause if most late ones were in them.
func late(p probeRun) string {
	if p.Offered == nil || 2*p.Offered.LateInBursts < p.LateCreated {
		return ""
	}
	return fmt.Sprintf("; most of them in bursts, of up to %s orders/s in 10 ms: more than its cores could make", thousands(p.Offered.PeakRate))
}

// offered adds the rows that describe the flow of a group.
func (b *builder) offered(g *group, base Row) {
	var peaks []float64
	for _, p := range g.counted() {
		if p.Offered != nil {
			peaks = append(peaks, p.Offered.PeakRate)
		}
	}
	if len(peaks) == 0 {
		return
	}
	for _, ms := range []int64{10, 100, 1000, 10000} {
		if v, ok := g.fano(ms); ok {
			b.add(valueRow(base, fmt.Sprintf("fano %d ms", ms), "", v))
		}
	}
	b.add(valueRow(base, "peak rate 10 ms", "1/s", mean(peaks)))
	if h := g.peakMinute(); h.Count() > 0 {
		for _, m := range metrics {
			if m.name == "mean" || m.name == "p99" {
				b.add(figure(base, "peak minute c2e", m, h))
			}
		}
	}
}

// counted are the probes of the runs that count.
func (g *group) counted() (out []probeRun) {
	for _, r := range g.runsThatCount() {
		out = append(out, r.probes...)
	}
	return out
}

// fano is the mean factor at a window over probes and runs that count.
func (g *group) fano(ms int64) (float64, bool) {
	var all []float64
	for _, p := range g.counted() {
		if p.Offered == nil {
			continue
		}
		if v, ok := p.Offered.fano(ms); ok {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return mean(all), true
}

func (g *group) peakMinute() (h Histogram) {
	for _, p := range g.counted() {
		if p.Offered != nil && p.Offered.PeakMinute != nil {
			h.Merge(p.Offered.PeakMinute.CreateToEnd)
		}
	}
	return h
}

// againstSteady adds how much worse p99 is in bursts than at a steady rate with the same mean.
func (b *builder) againstSteady(gs []*group) {
	for _, g := range gs {
		base := g.steadyPeer(gs)
		if base == nil {
			continue
		}
		verdict, reason := g.verdict()
		if verdict == OK {
			verdict, reason = base.verdict()
		}
		row := g.row(verdict, reason)
		steady := base.c2e.Percentile(99)
		if g.c2e.Count() < 1000 || base.c2e.Count() < 1000 || steady == 0 {
			continue
		}
		b.add(valueRow(row, "c2e p99 / steady", "x", float64(g.c2e.Percentile(99))/float64(steady)))
	}
}

// steadyPeer is the group of the same rate with steady arrivals; nil if this is it, or there is
// none.
func (g *group) steadyPeer(gs []*group) *group {
	for _, o := range gs {
		if o != g && o.pairs == g.pairs && o.rate == g.rate && o.label == string(flow.Steady) {
			return o
		}
	}
	return nil
}

// ordersText describes the orders of a plan.
func ordersText(p scenario.Plan) string {
	if !p.Varied {
		return "one and the same order"
	}
	return "new orders, cancels and replaces of many symbols, sizes and prices"
}

// flowTable describes the offered orders; nil where orders arrive as in the published tests.
func (r *Report) flowTable() *Table {
	if r.Result.Plan.Arrival == nil {
		return nil
	}
	g := &Table{Name: "flow", Title: "what was offered, in the measured time (Fano factor: variance/mean of orders in a window; 0 evenly spaced, 1 at random, more in bursts)",
		Columns: append(r.rateColumns(), Column{Group: "messages %", Name: "new"}, Column{Group: "messages %", Name: "cancel"}, Column{Group: "messages %", Name: "replace"},
			Column{Group: "Fano factor", Name: "10 ms"}, Column{Group: "Fano factor", Name: "100 ms"}, Column{Group: "Fano factor", Name: "1 s"}, Column{Group: "Fano factor", Name: "10 s"},
			Column{Group: "orders/s of a probe", Name: "busiest 10 ms"})}
	ratio, minute := r.hasRow("c2e p99 / steady"), r.hasRow("peak minute c2e mean")
	if ratio {
		g.Columns = append(g.Columns, Column{Group: "c2e p99", Name: "/ steady"})
	}
	if minute {
		g.Columns = append(g.Columns, Column{Group: "c2e, peak minute", Name: "mean us"}, Column{Group: "c2e, peak minute", Name: "p99 us"})
	}
	for _, gr := range r.groups {
		cells := append(r.rateCells(gr), gr.mixCells()...)
		figures := []string{"fano 10 ms", "fano 100 ms", "fano 1000 ms", "fano 10000 ms", "peak rate 10 ms"}
		if ratio {
			figures = append(figures, "c2e p99 / steady")
		}
		if minute {
			figures = append(figures, "peak minute c2e mean", "peak minute c2e p99")
		}
		for _, m := range figures {
			row, ok := r.figureOf(gr, m)
			cell := Cell{Text: "-", Style: "dim"}
			if ok {
				cell = hereCell(row)
			}
			cells = append(cells, cell)
		}
		g.add(cells...)
	}
	return g
}

func (r *Report) hasRow(metric string) bool {
	for _, g := range r.groups {
		if _, ok := r.figureOf(g, metric); ok {
			return true
		}
	}
	return false
}

// mixCells are the shares of new orders, cancels and replaces.
func (g *group) mixCells() []Cell {
	var n [3]int64
	for _, p := range g.counted() {
		if o := p.Offered; o != nil {
			n[0], n[1], n[2] = n[0]+o.New, n[1]+o.Cancelled, n[2]+o.Replaced
		}
	}
	all := n[0] + n[1] + n[2]
	if all == 0 { // identical orders
		return []Cell{{Text: "100"}, {Text: "0"}, {Text: "0"}}
	}
	cells := make([]Cell, len(n))
	for i, v := range n {
		cells[i] = Cell{Text: fmt.Sprintf("%.2f", 100*ratio(v, all))}
	}
	return cells
}

// judgeBursts prints the effect of bursts on p99. The scenario sets no limit.
func judgeBursts(r *Report) Judgement {
	j := Judgement{Name: "BURSTS", Status: NotJudged, Detail: "needs valid runs with steady and with bursty arrivals"}
	var texts []string
	for _, row := range r.Rows {
		if row.Metric == "c2e p99 / steady" && row.Here != nil && row.Verdict == OK {
			texts = append(texts, fmt.Sprintf("%.2f at %s orders/s", *row.Here, thousands(float64(row.TotalRate))))
		}
	}
	if len(texts) > 0 {
		j.Detail = "c2e p99 in bursts / steady at the same mean rate: " + strings.Join(texts, ", ") + "; the scenario sets no limit"
	}
	return j
}

// judgePeak judges the SLO in the busiest minute of the day: the mean over the day would hide it.
func judgePeak(r *Report) Judgement {
	j := Judgement{Name: "SLO", Status: NotJudged, Detail: "no order in the busiest minute"}
	for _, g := range r.groups {
		h := g.peakMinute()
		if h.Count() == 0 {
			continue
		}
		us := h.Mean() / 1e3
		j.Detail = fmt.Sprintf("c2e mean %s us in the busiest minute of the day at %s orders/s per probe on average (whole day %s us), limit %s",
			short(us), thousands(float64(g.rate)), short(g.c2e.Mean()/1e3), thousands(sloMeanUs))
		switch {
		case g.invalid():
			j.Status, j.Detail = Invalid, j.Detail+disturbed(g)
		case us <= sloMeanUs:
			j.Status = Pass
		default:
			j.Status = Fail
			return j
		}
	}
	return j
}

// notSteady replaces the verdicts of a published scenario that was run with
// other arrivals than the published ones.
func notSteady(r *Report, names ...string) (out []Judgement) {
	for _, n := range names {
		out = append(out, Judgement{Name: n, Status: NotJudged, Detail: fmt.Sprintf("the published run had steady arrivals, this one %s", r.Result.Plan.Arrival)})
	}
	return out
}
