package htmlreport

import (
	"html/template"
	"io"

	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/report"
)

type suite struct {
	*report.Suite
	Started string
	Table   *table
}

// WriteSuite writes the page of a suite, with links to the pages of the scenarios, in directories of their names beside it,
// or without.
func WriteSuite(w io.Writer, s *report.Suite, links bool) error {
	t := s.Overview()
	if !links {
		t.NoLinks()
	}
	return execute(w, pageData{Title: "Published and here: order probe, suite", Suite: &suite{Suite: s, Started: started(s.StartedAt), Table: newTable(t)}})
}

type system struct {
	Run            report.SuiteRun
	Shows, Started string
	Style          string
	Table          *table
	Charts         []template.HTML
}

// WriteSystem writes the page of a scenario about a system of processes: what it measured, its verdict and its control.
func WriteSystem(w io.Writer, run report.SuiteRun, shows string, t *report.Table, charts []*plot.Lines) error {
	var drawn []template.HTML
	for _, c := range charts {
		d, err := c.Draw()
		if err != nil {
			return err
		}
		drawn = append(drawn, template.HTML(d.Inline())) //nolint:gosec // texts in it are escaped
	}
	style := report.SuiteReason{Verdict: run.Verdict}.Style()
	return execute(w, pageData{Title: run.Scenario + ": order probe", System: &system{Run: run, Shows: shows, Started: started(run.StartedAt), Style: style, Table: newTable(t), Charts: drawn}})
}

func execute(w io.Writer, p pageData) error {
	css, err := files.ReadFile("style.css")
	if err != nil { // impossible: go:embed names the file
		return err
	}
	p.Style = template.CSS(plot.CSS() + string(css)) //nolint:gosec // both are constant
	return page.Execute(w, p)
}
