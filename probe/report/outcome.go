package report

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// Outcome is what a scenario of any kind has for a Suite.
type Outcome struct {
	Run     SuiteRun
	Figures []Comparison
}

// SuiteRun is one scenario of a suite: how it was run, and what came of it.
type SuiteRun struct {
	Scenario string `json:"scenario"`
	Mode     string `json:"mode"`    // exact, scaled or quick
	Command  string `json:"command"` // that repeats it
	// StartedAt is RFC 3339.
	StartedAt string `json:"startedAt"`
	Version   string `json:"version"` // of order-probe
	Machine   string `json:"machine"`
	// Verdict is on the shape that the report claims, not on absolute time.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	// Control is the negative control, in words, where the scenario has one.
	Control string `json:"control,omitempty"`
	// Earlier are runs of the scenario in the same suite that were INVALID, for which it was run again: when, and why.
	Earlier []string `json:"earlier,omitempty"`
	// Differences from the published run.
	Differences []string `json:"differences,omitempty"`
}

// ProsePrefix begins the Table of a figure that a report has in its text.
const ProsePrefix = "prose:"

// Comparison is a published figure beside the one that stands for it here.
type Comparison struct {
	Table  string `json:"table"` // of the report of the scenario
	Row    string `json:"row"`   // as published
	Metric string `json:"metric"`
	Unit   string `json:"unit,omitempty"`
	// At is what is different here, such as fewer rows.
	At string `json:"at,omitempty"`
	// TotalRate is orders/s here, where the figure has a rate.
	TotalRate int     `json:"totalRate,omitempty"`
	Published float64 `json:"published"`
	// Derived: the published figure is computed from others of the table.
	Derived bool     `json:"derived,omitempty"`
	Here    *float64 `json:"here,omitempty"`
	// Ratio is here / published of a figure that counts and is of the same kind.
	Ratio *float64 `json:"ratio,omitempty"`
	// Invalid is why the figure counts for nothing; empty if it counts.
	Invalid string `json:"invalid,omitempty"`
	// Reason is why there is no figure here.
	Reason string `json:"reason,omitempty"`
}

// Outcome is the report as a part of a Suite.
func (r *Report) Outcome(d *published.Data) *Outcome {
	o := &Outcome{Run: SuiteRun{
		Scenario: r.Scenario, Mode: string(r.Result.Plan.Mode), StartedAt: r.Result.StartedAt, Differences: r.Result.Plan.Differences,
		Command: fmt.Sprintf("order-probe run --scenario %s --dev --%s", r.Scenario, r.Result.Plan.Mode),
	}}
	o.Run.Verdict, o.Run.Reason = r.shape()
	for i, m := range r.Result.Manifests {
		if i == 0 {
			o.Run.Machine, o.Run.Version = m.Machine(), m.Version
		}
	}
	for i := range r.Rows {
		if c, ok := r.Rows[i].comparison(); ok {
			o.Figures = append(o.Figures, c)
		}
	}
	if s, ok := d.Scenario(r.Scenario); ok && s.Seed == "STAC" {
		o.Figures = append(o.Figures, twins(d, o.Figures)...)
	}
	if r.Verdict == ReportIncorrect {
		for i := range o.Figures {
			o.Figures[i].Ratio, o.Figures[i].Invalid = nil, r.Reason
		}
	}
	return o
}

// Machine is what a reader of a figure needs to know of it.
func (m *Manifest) Machine() string {
	return fmt.Sprintf("%s, %d cores, %d MiB, %s %s", m.CPU, m.Cores, m.MemoryMiB, m.OS, m.Kernel)
}

func (r *Row) comparison() (Comparison, bool) {
	p := r.Published
	if p == nil {
		return Comparison{}, false
	}
	c := Comparison{Table: p.Table, Row: p.Row, Metric: r.Metric, Unit: r.Unit, TotalRate: r.TotalRate, Published: p.Value, Here: r.Here, Ratio: r.Ratio, Derived: p.differs || p.Table == "3-3"}
	if p.Table == "prose" { // such as the processors of a server
		c.Table = ProsePrefix + r.Metric
	}
	for _, more := range []string{r.label(), r.of()} {
		if more != "" {
			c.Metric += ", " + more
		}
	}
	if !p.SameRate {
		c.At = fmt.Sprintf("at %s/s, which is not published", thousands(float64(r.TotalRate)))
	}
	switch {
	case r.Here == nil:
		c.Reason = r.Reason
	case r.Verdict != OK:
		c.Ratio, c.Invalid = nil, r.Reason
	}
	return c, true
}

// of names the probe and the run that a row is about.
func (r *Row) of() string {
	var words []string
	if r.Probe != "" {
		words = append(words, "probe "+r.Probe)
	}
	if r.Run > 0 {
		words = append(words, fmt.Sprintf("run %d", r.Run))
	}
	return strings.Join(words, " ")
}

// twin is a table that prints figures of another one again.
type twin struct {
	name, of string
	factor   float64 // of the other's row
	means    bool    // it has no other figures
}

var stacTwins = []twin{{"3-1", "3-5", 1, false}, {"A-2srv-C2E", "3-5", 1, false}, {"3-4", "A-6srv-C2E", 6, true}}

// twins are figures beside tables that repeat the figures of others.
func twins(d *published.Data, figures []Comparison) (out []Comparison) {
	columns := map[string]string{}
	for _, m := range metrics {
		columns["c2e "+m.name] = m.column
	}
	for _, t := range stacTwins {
		for _, c := range figures {
			column := columns[c.Metric]
			if c.Table != t.of || column == "" || c.At != "" || t.means && c.Metric != "c2e mean" {
				continue
			}
			var row float64
			if _, err := fmt.Sscan(c.Row, &row); err != nil {
				continue
			}
			cell, ok := d.Cell(stac, t.name, row*t.factor, column)
			if !ok {
				continue
			}
			c.Table, c.Row, c.Published = t.name, cell.Row, cell.Value
			if c.Ratio != nil && c.Here != nil {
				q := *c.Here / c.Published
				c.Ratio = &q
			}
			out = append(out, c)
		}
	}
	return out
}
