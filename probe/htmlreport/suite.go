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

// WriteSuite writes the page of a suite. Its links are to the pages of the scenarios, in directories of their names beside
// it.
func WriteSuite(w io.Writer, s *report.Suite) error {
	css, err := files.ReadFile("style.css")
	if err != nil { // impossible: go:embed names the file
		return err
	}
	return page.Execute(w, pageData{
		Title: "Published and here: order probe, suite",
		Style: template.CSS(plot.CSS() + string(css)), //nolint:gosec // both are constant
		Suite: &suite{Suite: s, Started: started(s.StartedAt), Table: newTable(s.Overview())},
	})
}
