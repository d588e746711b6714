// Package htmlreport makes one HTML file of the reports of a run: verdicts, tables and plots,
// self-contained. It loads nothing, runs no script, follows the reader's light or dark theme and
// prints on paper. The output is deterministic.
package htmlreport

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

//go:embed page.gohtml style.css
var files embed.FS

// Text in results comes from other machines; html/template escapes it. Only drawings, which escape
// their text themselves, and the style sheet are inserted verbatim.
var page = template.Must(template.ParseFS(files, "page.gohtml"))

// Write writes the page. Cost is the cost of replication, and may be empty.
func Write(w io.Writer, reports []*report.Report, cost []report.Cost) error {
	css, err := files.ReadFile("style.css")
	if err != nil { // impossible: go:embed names the file
		return err
	}
	var names []string
	p := pageData{Style: template.CSS(plot.CSS() + string(css))} //nolint:gosec // both are constant
	for i, r := range reports {
		names = append(names, r.Scenario)
		p.Sections = append(p.Sections, newSection(r, fmt.Sprintf("report-%d", i+1)))
	}
	if t := report.CostTable(cost); t != nil {
		p.Cost = newTable(t)
	}
	p.Title = strings.Join(names, ", ") + ": order probe"
	if len(reports) == 1 {
		p.Title = fmt.Sprintf("%s %s: order probe, run %s", names[0], strings.ToLower(reports[0].Verdict), reports[0].Result.RunID)
	}
	return page.Execute(w, p)
}

type pageData struct {
	Title    string
	Style    template.CSS
	Suite    *suite
	System   *system
	Sections []section
	Cost     *table
}

// section is one report.
type section struct {
	ID       string
	R        *report.Report
	Started  string
	Headline []headline
	Parts    []part
	Manifest []fact
}

// part is one chapter of a report.
type part struct {
	Title, Intro string
	Figures      []figure
	Tables       []*table
	Remarks      []report.Remark
	Words        string
}

type figure struct {
	ID, Title, Caption string
	Wide, Narrow       template.HTML
}

func newSection(r *report.Report, id string) section {
	s := section{ID: id, R: r, Started: started(r.Result.StartedAt), Headline: newHeadline(r), Manifest: manifest(r)}
	figures := map[string]figure{}
	for _, f := range Figures(r) {
		figures[f.Name] = figure{
			ID: id + "-" + f.Name, Title: f.Title, Caption: f.Caption,
			Wide: template.HTML(f.Draw(Wide).Inline()), Narrow: template.HTML(f.Draw(Narrow).Inline()), //nolint:gosec // drawings escape their text
		}
	}
	tables := map[string]*table{}
	var more []*table // tables without a fixed place on this page
	placed := map[string]bool{"c2e": true, "s2e": true, "i2e": true, "scaling": true, "runs": true, "checks": true, "servers": true, "flow": true, "rtt": true, "gs": true, "gs-cost": true, "worst": true}
	for _, t := range r.Tables(true) {
		if x := newTable(t); placed[t.Name] {
			tables[t.Name] = x
		} else {
			more = append(more, x)
		}
	}
	add := func(p part, figureNames, tableNames string) {
		for _, name := range strings.Fields(figureNames) {
			if f, ok := figures[name]; ok {
				p.Figures = append(p.Figures, f)
			}
		}
		for _, name := range strings.Fields(tableNames) {
			if t := tables[name]; t != nil && len(t.Rows) > 0 {
				p.Tables = append(p.Tables, t)
			}
		}
		if len(p.Figures)+len(p.Tables) > 0 {
			s.Parts = append(s.Parts, p)
		}
	}
	cpu, _ := r.ServerCPU()
	latencies := part{Title: "Measured here", Intro: "Published figures: " + r.Source + "."}
	write := r.Scenario == published.WriteScenario
	if !write && slices.ContainsFunc(r.Rows, func(row report.Row) bool { return row.Published != nil }) {
		latencies.Title = "Published and here"
		latencies.Intro += " A ratio below 1 is faster here. Figures are compared only at equal rates."
	}
	if write {
		add(part{Title: "Published and here: one write at a time", Intro: latencies.Intro + " Send-to-end, as the report measured it. A ratio below 1 is faster here. The report names no rate."}, "", "rtt gs gs-cost")
	}
	add(latencies, "rates scaling", "c2e s2e i2e scaling")
	add(part{Title: "What was offered"}, "", "flow")
	if len(more) > 0 {
		s.Parts = append(s.Parts, part{Title: "More figures", Tables: more})
	}
	add(part{Title: "Distribution of latencies"}, "histograms percentiles stages", "")
	add(part{Title: "Latency over time"}, "first-seconds whole-run spikes", "worst")
	add(part{Title: "Processors", Words: sentence(cpu)}, "cpu", "servers")
	add(part{Title: "Every run", Remarks: r.Remarks()}, "", "checks runs")
	return s
}

// started formats a time without fractions of a second; an invalid time is not changed.
func started(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.UTC().Format("2 January 2006, 15:04:05 UTC")
}

func sentence(s string) string {
	if s == "" {
		return ""
	}
	return upperFirst(s) + "."
}

// headline is one of the few figures at the top.
type headline struct{ Name, Value, Unit, Beside string }

// newHeadline uses the highest valid rate that the published report has too, or the highest valid
// one; nothing without a valid rate.
func newHeadline(r *report.Report) []headline {
	v := newView(r)
	var g *report.Group
	compared := false
	for i := range v.main {
		_, comparable := v.published(v.main[i], "c2e mean")
		if valid(v.main[i]) && (comparable || !compared) {
			g, compared = &v.main[i], comparable
		}
	}
	if g == nil {
		return nil
	}
	var out []headline
	for _, m := range []struct{ metric, name string }{{"c2e mean", "mean"}, {"c2e p50", "median"}, {"c2e p99", "99th percentile"}} {
		us, ok := v.here(*g, m.metric)
		if !ok {
			continue
		}
		h := headline{Name: fmt.Sprintf("Create-to-end %s at %s", m.name, rateText(*g)), Value: numtext.Short(us), Unit: "µs", Beside: "not in the published report"}
		if pub, ok := v.published(*g, m.metric); ok {
			h.Beside = fmt.Sprintf("published %s µs", numtext.Short(pub))
			if pub > 0 {
				h.Beside += fmt.Sprintf(", ratio %.2f", us/pub)
			}
		}
		out = append(out, h)
	}
	var acked, wrong int64
	for _, c := range r.Checks {
		acked += c.Acked
		wrong += c.Ledger.Violations() + c.Backups.Violations() + c.Disorder
	}
	return append(out, headline{Name: "Orders acknowledged and read back", Value: numtext.Thousands(float64(acked)), Beside: numtext.Thousands(float64(wrong)) + " lost, duplicated or out of place"})
}
