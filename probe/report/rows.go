package report

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/probe/published"
)

// Row is one printed figure: published | here | ratio, with its verdict.
type Row struct {
	Pairs     int    `json:"pairs,omitempty"`
	Rate      int    `json:"ratePerProbe"` // orders/s
	TotalRate int    `json:"totalRate"`    // orders/s, all probes
	Arrival   string `json:"arrival,omitempty"`
	Record    string `json:"record,omitempty"` // what was written, and to how many copies, in gs-write; how many servers, in stac-timeplot
	Probe     string `json:"probe,omitempty"`
	Run       int    `json:"run,omitempty"` // 0 is all valid runs merged

	Metric    string     `json:"metric"` // such as "c2e p99"
	Unit      string     `json:"unit"`
	Published *Published `json:"published,omitempty"`
	Here      *float64   `json:"here,omitempty"` // absent when it means nothing, see Reason
	Ratio     *float64   `json:"ratio,omitempty"`
	Samples   int64      `json:"samples,omitempty"`
	Verdict   string     `json:"verdict"` // ok, n/a, INVALID, INVALID-CONTENDED, INCORRECT
	Reason    string     `json:"reason,omitempty"`
	Notes     []int      `json:"notes,omitempty"` // Report.Notes, from 1
}

// label distinguishes the row from others at its rate.
func (r *Row) label() string { return r.Arrival + r.Record }

// builder collects rows and numbers the notes they refer to.
type builder struct {
	data  *published.Data
	res   *Result
	rows  []Row
	notes []string
}

func (b *builder) note(text string) int {
	i := slices.Index(b.notes, text)
	if i < 0 {
		b.notes = append(b.notes, text)
		i = len(b.notes) - 1
	}
	return i + 1
}

// add completes a row: the ratio follows from its two figures, and only when the two are of the
// same rate.
func (b *builder) add(r Row) {
	if r.Published != nil {
		for _, n := range r.Published.notes {
			r.Notes = append(r.Notes, b.note(n))
		}
		if r.Here != nil && r.Published.SameRate && r.Published.Value != 0 && !r.Published.differs {
			q := *r.Here / r.Published.Value
			r.Ratio = &q
		}
	}
	b.rows = append(b.rows, r)
}

func (b *builder) group(g *group) {
	verdict, reason := g.verdict()
	base := g.row(verdict, reason)
	for _, l := range latencies {
		h := l.of(g)
		t, has := publishedTable(b.res.Plan.Scenario, g.pairs, l.name)
		for _, m := range metrics {
			row := figure(base, l.name, m, h)
			if has {
				row.Published = lookup(b.data, t, m.column, g.rate)
			}
			b.add(row)
		}
	}
	b.add(valueRow(base, "c2e >1ms", "%", 100*ratio(g.over1ms, g.c2e.Count())))
	if mid := g.c2e.Percentile(50); mid > 0 {
		b.add(valueRow(base, "c2e mean/p50", "", g.c2e.Mean()/float64(mid)))
	}
	b.add(valueRow(base, "lag p99", "us", float64(g.lag.Percentile(99))/1e3))
	b.offered(g, base)
	b.writes(g, base)
	b.servers(base, g)
	for _, r := range g.runs {
		for _, p := range r.probes {
			b.perRun(g, r, p)
		}
	}
}

// figure is one statistic of a histogram, or n/a when there are too few samples.
func figure(base Row, latency string, m metric, h Histogram) Row {
	base.Metric, base.Unit, base.Samples = latency+" "+m.name, "us", h.Count()
	if h.Count() < m.samples {
		if base.Verdict == OK {
			base.Verdict = NoValue
			base.Reason = fmt.Sprintf("n=%d, %d needed", h.Count(), m.samples)
		}
		return base
	}
	v := m.value(h) / 1e3
	base.Here = &v
	return base
}

func valueRow(base Row, metric, unit string, v float64) Row {
	base.Metric, base.Unit = metric, unit
	if finite(v) {
		base.Here = &v
	}
	return base
}

// servers adds the use of a grid node, the mean over nodes and valid runs. The report gives one
// figure: about 13 % of a server's eight cores at 6,000 orders/s in total.
func (b *builder) servers(base Row, g *group) {
	var cores, pauses []float64
	for _, node := range g.servers() {
		cores, pauses = append(cores, node.cores...), append(pauses, node.pauses...)
	}
	if len(cores) > 0 {
		row := valueRow(base, "server cpu", "cores", mean(cores))
		if pub, ok := b.publishedCPU(); ok && base.Rate == 3000 && b.res.Plan.Scenario == "stac-pair" {
			row.Published = pub
		}
		b.add(row)
	}
	if len(pauses) > 0 {
		b.add(valueRow(base, "server pauses", "1/s", mean(pauses)))
	}
}

// serverCores is what a published server had: two quad-core Xeon 5355.
const serverCores = 8

func (b *builder) publishedCPU() (*Published, bool) {
	pct, ok := b.data.FactNumber("stac.cpu")
	if !ok {
		return nil, false
	}
	return &Published{Value: pct / 100 * serverCores, Table: "prose", Row: "6000", SameRate: true,
		notes: []string{fmt.Sprintf("published as about %.0f %% of a server, which had two quad-core Xeon 5355", pct)}}, true
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// perRun adds the rows of the report's appendix: mean and median of every
// probe and run, valid or not.
func (b *builder) perRun(g *group, r run, p probeRun) {
	base := g.row(OK, "")
	base.Probe, base.Run = p.name, r.step.Run
	if len(r.reasons) > 0 {
		base.Verdict, base.Reason = worst(r.reasons), r.reasons[0].Text
	}
	if p.Violations() > 0 {
		base.Verdict, base.Reason = Incorrect, fmt.Sprintf("%d violations", p.Violations())
	}
	t, has := runTable(b.res.Plan.Scenario, g.pairs, p.name)
	for _, m := range metrics[:2] {
		row := figure(base, "c2e", m, p.CreateToEnd)
		if has {
			row.Published = lookup(b.data, table{name: t}, fmt.Sprintf("%s_run%d_%s", p.name, r.step.Run, m.column), g.rate)
			if row.Published != nil && !row.Published.SameRate {
				row.Published = nil // the merged rows show the nearest one
			}
		}
		b.add(row)
	}
}
