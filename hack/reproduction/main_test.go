package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// The page is what the results of the tree give, and has each published table: with figures, or with the reason why not.
func TestPageIsOfTheResults(t *testing.T) {
	drifted, err := run("", true)
	if err != nil {
		t.Fatal(err)
	}
	if len(drifted) > 0 {
		t.Errorf("%s differs; run `go run ./hack/reproduction` and read the difference", page)
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	_, missing, ok := strings.Cut(string(text), "\n## Not reproduced\n")
	if !ok {
		t.Fatal("no list of what was not reproduced")
	}
	for _, table := range d.Tables {
		place := table.Report + " " + table.Name
		figures := strings.Contains(string(text), "\n### "+place+": "+table.Title+"\n")
		reason := strings.Contains(missing, "\n| "+place+" | ")
		if figures == reason {
			t.Errorf("%s: has figures: %v, is listed as not reproduced: %v; want one of both", place, figures, reason)
		}
	}
}

// Results that do not fit the published data, or that hide something, are refused.
func TestWrongResultsAreRefused(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	ratio := 1.0
	for want, change := range map[string]func(s *report.Suite){
		"table stac 3-1 has 0 rows, want 1":               func(s *report.Suite) { s.Rows = s.Rows[1:] },
		"table stac 3-1 has 2 rows, want 1":               func(s *report.Suite) { s.Rows = append(s.Rows, s.Rows[0]) },
		"table stac 9-9 is not published":                 func(s *report.Suite) { s.Rows[0].Table = "9-9" },
		"table stac 3-1 has neither figures nor a reason": func(s *report.Suite) { s.Rows[0].Reason = "" },
		"table stac 3-1 has no figure 986":                func(s *report.Suite) { s.Rows[0].Figures = []report.Comparison{{Published: 986}} },
		"a ratio of a figure that does not count": func(s *report.Suite) {
			s.Rows[0].Figures = []report.Comparison{{Published: 987, Invalid: "noise", Ratio: &ratio}}
		},
		"contradictions of the reports": func(s *report.Suite) { s.Notes = nil },
		"": func(s *report.Suite) {
			s.Rows[0].Figures = []report.Comparison{{Published: 987}, {Published: 0.987}, {Published: 986, Derived: true}}
		},
	} {
		s := report.NewSuite(d, nil, nil)
		for i := range s.Rows {
			s.Rows[i].Reason = "not run"
		}
		change(s)
		if err := check(d, s); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
