package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// Schema names the version of the Report encoding.
const Schema = "ordergrid.dev/probe-report/v1"

// Report is one scenario's result, ready to print.
type Report struct {
	Schema     string      `json:"schema"`
	Scenario   string      `json:"scenario"`
	Reproduces string      `json:"reproduces"`
	Source     string      `json:"source"`  // of the published figures
	Verdict    string      `json:"verdict"` // Valid, Invalid or Incorrect
	Reason     string      `json:"reason"`
	Judgements []Judgement `json:"judgements"`
	Rows       []Row       `json:"rows"`
	Checks     []Check     `json:"checks"`
	Notes      []string    `json:"notes"`
	// Result is the input of all of the above, histograms included.
	Result *Result `json:"result"`

	groups []*group
}

// Verdicts of a whole report, as OrderProbe.status has them.
const (
	ReportValid     = "Valid"
	ReportInvalid   = "Invalid"
	ReportIncorrect = "Incorrect"
)

// Check is the result of one step over all its probes: counts, and the state of the machine.
type Check struct {
	Pairs       int          `json:"pairs,omitempty"`
	Rate        int          `json:"ratePerProbe"`
	TotalRate   int          `json:"totalRate"`
	Arrival     string       `json:"arrival,omitempty"`
	Record      string       `json:"record,omitempty"` // as in Row
	Run         int          `json:"run"`
	Created     int64        `json:"created"`
	Acked       int64        `json:"acked"`
	Rejected    int64        `json:"rejected"`
	Unknown     int64        `json:"unknown"`
	Unsent      int64        `json:"unsent"`
	Ledger      LedgerCounts `json:"ledger"`  // against the primaries' logs
	Backups     LedgerCounts `json:"backups"` // against the other copies' logs
	Disorder    int64        `json:"disorder"`
	MinCopies   int          `json:"minCopies"`
	AckedRate   float64      `json:"ackedRate"` // orders/s, all probes
	LagP99Us    float64      `json:"lagP99Us"`
	LatePct     float64      `json:"latePct"` // orders created more than 1 ms late
	Samples     int64        `json:"samples"`
	ServerCores float64      `json:"serverCores"` // cores busy, mean over nodes; negative if unknown
	// ServerPauses are collections a second, mean over nodes; negative if unknown.
	ServerPauses float64  `json:"serverPauses"`
	ProbePct     float64  `json:"probePct"`
	ForeignPct   float64  `json:"foreignPct"`
	StealPct     float64  `json:"stealPct"`
	Verdict      string   `json:"verdict"`
	Reasons      []Reason `json:"reasons,omitempty"`
	// Violations are examples, in words.
	Violations []string `json:"violations,omitempty"`
}

// New makes the report of a result.
func New(d *published.Data, r *Result) (*Report, error) {
	s, ok := d.Scenario(r.Plan.Scenario)
	if !ok || !s.IsRun() {
		return nil, fmt.Errorf("report: unknown scenario %q", r.Plan.Scenario)
	}
	gs := groups(r)
	if len(gs) == 0 {
		return nil, fmt.Errorf("report: the result of %s has no step", r.Plan.Scenario)
	}
	b := &builder{data: d, res: r}
	for _, g := range gs {
		b.group(g)
	}
	if r.Plan.Scenario == "stac-scale" {
		b.scaling(gs)
	}
	b.againstSteady(gs)
	b.writeRatios(gs)
	b.pauseRatio(gs)
	b.wayThere()
	out := &Report{
		Schema: Schema, Scenario: s.Name, Reproduces: s.Reproduces, Source: source(d, s),
		Rows: b.rows, Notes: b.notes, Result: r, groups: gs,
	}
	for _, g := range gs {
		for _, run := range g.runs {
			out.Checks = append(out.Checks, check(g, run))
		}
	}
	if r.Plan.Search != nil {
		out.Rows = append(out.kneeRows(d), out.Rows...)
	}
	out.Judgements = judge(out, d)
	out.Verdict, out.Reason = overall(out)
	if names := out.Failed(); out.Verdict == ReportValid && len(names) > 0 {
		out.Reason += "; not as the scenario asks: " + strings.Join(names, ", ")
	}
	return out, nil
}

// source names the source of published figures.
func source(d *published.Data, s published.Scenario) string {
	if s.IsFlowScenario() {
		return "nothing: the published tests had steady rates of identical orders"
	}
	if s.Name == published.WriteScenario {
		t, _ := d.Table(published.WriteReport, published.WriteTable)
		return d.Reports[published.WriteReport] + ": " + t.Configuration
	}
	return d.Reports[stac]
}

func check(g *group, r run) Check {
	row := g.row(OK, "")
	c := Check{Pairs: g.pairs, Rate: g.rate, TotalRate: g.total, Arrival: row.Arrival, Record: row.Record, Run: r.step.Run, Verdict: OK, Reasons: r.reasons, ServerCores: -1, ServerPauses: -1, ForeignPct: -1}
	var lag Histogram
	late, intended := int64(0), int64(0)
	for i, p := range r.probes {
		c.Created += p.Created
		c.Acked += p.Acked
		c.Rejected += p.Rejected
		c.Unknown += p.Unknown
		c.Unsent += p.Unsent
		c.Ledger.Add(p.Ledger)
		c.Backups.Add(p.Backups)
		c.Disorder += p.Disorder
		c.AckedRate += p.AckedRate
		c.Samples += p.Samples
		late, intended = late+p.LateCreated, intended+p.Intended
		if i == 0 || p.MinCopies < c.MinCopies {
			c.MinCopies = p.MinCopies
		}
		lag.Merge(p.Lag)
		if p.Violations() > 0 {
			c.Violations = append(c.Violations, p.Notes...)
		}
	}
	c.LagP99Us, c.LatePct = float64(lag.Percentile(99))/1e3, 100*ratio(late, intended)
	var cores, pauses []float64
	for _, k := range r.conditions {
		c.ProbePct, c.ForeignPct, c.StealPct = max(c.ProbePct, k.ProbePct), max(c.ForeignPct, k.ForeignPct), max(c.StealPct, k.StealPct)
		for _, n := range k.Nodes {
			cores = append(cores, n.CPUCores)
			if n.PausesPerSec >= 0 {
				pauses = append(pauses, n.PausesPerSec)
			}
		}
	}
	if len(cores) > 0 {
		c.ServerCores = mean(cores)
	}
	if len(pauses) > 0 {
		c.ServerPauses = mean(pauses)
	}
	if len(r.reasons) > 0 {
		c.Verdict = worst(r.reasons)
	}
	if c.Ledger.Violations()+c.Backups.Violations()+c.Disorder > 0 {
		c.Verdict = Incorrect
	}
	return c
}

// scaling adds how the mean at a rate per probe changes as pairs are added. The published
// percentages do not always follow from the published means, so the means are compared.
func (b *builder) scaling(gs []*group) {
	one := map[int]*group{}
	for _, g := range gs {
		if g.pairs == 1 {
			one[g.rate] = g
		}
	}
	for _, g := range gs {
		base := one[g.rate]
		if g.pairs == 1 || base == nil || base.c2e.Mean() == 0 {
			continue
		}
		verdict, reason := g.verdict()
		if verdict == OK {
			verdict, reason = base.verdict()
		}
		row := valueRow(Row{Pairs: g.pairs, Rate: g.rate, TotalRate: g.total, Verdict: verdict, Reason: reason},
			"c2e mean vs 1 pair", "%", 100*(g.c2e.Mean()/base.c2e.Mean()-1))
		if p := b.publishedScaling(g.pairs, g.rate); p != nil {
			row.Published = p
		}
		// A quotient of two percentages is meaningless.
		b.rows = append(b.rows, row)
	}
}

func (b *builder) publishedScaling(pairs, rate int) *Published {
	few, ok1 := b.data.Cell(stac, "3-3", float64(rate), "mean_2srv_us")
	many, ok2 := b.data.Cell(stac, "3-3", float64(rate), fmt.Sprintf("mean_%dsrv_us", 2*pairs))
	if !ok1 || !ok2 {
		return nil
	}
	return &Published{Value: 100 * (many.Value/few.Value - 1), Table: "3-3", Row: few.Row, SameRate: true}
}

func overall(r *Report) (verdict, reason string) {
	var lost, dup, gaps, other int64
	invalid, total, first := 0, 0, ""
	for _, c := range r.Checks {
		for _, l := range []LedgerCounts{c.Ledger, c.Backups} {
			lost, dup, gaps = lost+l.Lost, dup+l.Duplicates, gaps+l.Gaps
			other += l.Violations() - l.Lost - l.Duplicates - l.Gaps
		}
		other += c.Disorder
		total++
		if len(c.Reasons) > 0 {
			invalid++
			if first == "" {
				first = c.Reasons[0].Text
			}
		}
	}
	if lost+dup+gaps+other > 0 {
		return ReportIncorrect, fmt.Sprintf("%d lost, %d duplicates, %d gaps, %d other violations", lost, dup, gaps, other)
	}
	rows, _, why := r.invalidRates()
	switch {
	case rows > 0:
		return ReportInvalid, fmt.Sprintf("%d of %d rates have no valid run: %s", rows, len(r.groups), why)
	case invalid > 0:
		return ReportValid, fmt.Sprintf("no order lost, duplicated or out of sequence; %d of %d runs were not valid and are left out: %s", invalid, total, first)
	}
	return ReportValid, "no order lost, duplicated or out of sequence; every run met the guards"
}

// JSON writes the report, indented, with its result.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
